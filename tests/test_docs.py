"""The documentation is true: its code runs, its picture is drawn from a plan."""

import contextlib
import importlib
import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image  # which matplotlib brings

import indexplan as ip
from indexplan.orders.registry import _REGISTRY, registered

ROOT = Path(__file__).parents[1]

# pages whose every Python and shell block runs, in the page's order, and says what it prints
PAGES = (
    "index",
    "idea",
    "pictures",
    "remainders",
    "resume",
    "sub-epochs",
    "schedules",
    "determinism",
    "faq",
    "orders",
    "weights",
    "classes",
    "class-batches",
    "mixtures",
    "tokens",
    "lengths",
    "packing",
    "balance",
    "shards",
    "shard-sizes",
    "subsets",
    "migrate/distributed-sampler",
    "migrate/weighted-random-sampler",
)
BLOCK = re.compile(
    r"^```(python|sh)\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE
)


@contextlib.contextmanager
def inside(folder: object) -> Iterator[None]:
    """Run in a folder, and come back; contextlib.chdir needs Python 3.11."""
    before = Path.cwd()
    os.chdir(str(folder))
    try:
        yield
    finally:
        os.chdir(before)


def blocks(name: str) -> list[str]:
    """The Python blocks of a page."""
    return re.findall(r"```python\n(.*?)```", (ROOT / name).read_text(), re.DOTALL)


@pytest.fixture(scope="module")
def readme(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """The names that README's examples leave behind, in the folder that they ran in."""
    names: dict[str, object] = {"folder": tmp_path_factory.mktemp("readme")}
    with inside(names["folder"]):
        for block in blocks("README.md"):
            exec(block, names)  # noqa: S102 (our own README)
    return names


def test_readme_runs(readme: dict[str, object]) -> None:
    """README's examples run, one after another, and say what they compute."""
    batch, rest = readme["batch"], readme["rest"]
    assert (np.dtype(np.int64), (256,)) == (batch.dtype, batch.shape)  # type: ignore[attr-defined]
    assert 12 == rest.world_size  # type: ignore[attr-defined]
    plan = readme["plan"]
    assert isinstance(plan, ip.Plan)
    micro = plan.micro_batches(epoch=0, sub_epoch=7, step=2, rank=1)
    assert [3] * 5 == [len(part) for part in micro]
    assert 192 == plan.phase(epoch=3, sub_epoch=0, step=0)["resolution"]


def test_plan_file_is_readable_without_this_library(readme: dict[str, object]) -> None:
    """The plain NumPy of the format's page reads what the library reads."""
    (block,) = blocks("docs/plan-file.md")
    assert "indexplan" not in block
    out = io.StringIO()
    with inside(readme["folder"]), contextlib.redirect_stdout(out):
        exec(block, {})  # noqa: S102 (our own page)
    plan = readme["plan"]
    assert isinstance(plan, ip.Plan)
    flat = plan.replace(sub_epochs=1, remainder="drop", batch_size=15)
    expected = flat.batch(epoch=0, step=17, rank=2).tolist()
    assert expected == [int(number) for number in re.findall(r"\d+", out.getvalue())]


def printed_by_python(code: str, names: dict[str, object]) -> str:
    """Run a block and return what it printed."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(code, names)  # noqa: S102 (our own page)
    return out.getvalue()


def printed_by_shell(code: str) -> str:
    """Run a block with this project's `indexplan`, and return what it printed."""
    paths = os.pathsep.join([str(ROOT), str(ROOT / "adapters")])
    environment = {**os.environ, "PYTHONPATH": paths, "COLUMNS": "80"}
    command = f'indexplan() {{ "{sys.executable}" -m indexplan "$@"; }}\n{code}'
    done = subprocess.run(
        ["/usr/bin/env", "bash", "-euo", "pipefail", "-c", command],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (0, "") == (done.returncode, done.stderr)
    return done.stdout


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Forget, after a test, which modules and orders it brought."""
    monkeypatch.syspath_prepend(tmp_path)
    with monkeypatch.context() as patch:
        registered()  # ours have to be there already, as they are imported once
        patch.setattr("indexplan.orders.registry._REGISTRY", dict(_REGISTRY))
        yield
    for path in tmp_path.glob("*.py"):
        sys.modules.pop(path.stem, None)


@pytest.mark.usefixtures("modules")
@pytest.mark.parametrize("page", PAGES)
def test_page_runs(page: str, tmp_path: Path) -> None:
    """What a page's blocks print is what it shows."""
    check_page(page, tmp_path)


def check_page(page: str, folder: Path) -> None:
    """Check that a page's blocks print what it shows: in a text block after, or in comments.

    A block that begins with the name of a file is that file, for the blocks after it.
    """
    names: dict[str, object] = {}
    text = (ROOT / "docs" / f"{page}.md").read_text()
    assert text.count("```python") + text.count("```sh") == len(BLOCK.findall(text))
    with inside(folder):
        for kind, code, shown in BLOCK.findall(text):
            if file := re.match(r"# (\w+\.py)\n", code):
                Path(file[1]).write_text(code)
                importlib.invalidate_caches()
                continue
            printed = printed_by_python(code, names) if kind == "python" else printed_by_shell(code)
            said = re.findall(r"^ *print\(.*\) *# (.*)$", code, re.MULTILINE)
            assert (shown or "".join(f"{line}\n" for line in said)) == printed, code
        for drawn in Path().glob("plan-*.png"):  # by a command, and by the line of Python below it
            assert drawn.read_bytes() == Path(drawn.name[len("plan-") :]).read_bytes()


def test_pictures_and_help_are_drawn_by_the_command(tmp_path: Path) -> None:
    """`python docs/refresh.py` draws the pictures that there are, and leaves README as it is."""
    (readme,) = re.findall(
        r"(.*<!-- help -->\n```text\n).*?\n(```\n.*)", (ROOT / "README.md").read_text(), re.DOTALL
    )
    (tmp_path / "README.md").write_text("outdated\n".join(readme))
    paths = os.pathsep.join([str(ROOT), str(ROOT / "adapters")])
    command = [sys.executable, str(ROOT / "docs" / "refresh.py"), str(tmp_path)]
    subprocess.run(command, env={**os.environ, "PYTHONPATH": paths}, check=True)
    assert (ROOT / "README.md").read_text() == (tmp_path / "README.md").read_text()
    drawn = {file.name: file for file in (tmp_path / "docs" / "images").iterdir()}
    assert {file.name for file in (ROOT / "docs" / "images").glob("plan-*.png")} == set(drawn)
    for name, file in drawn.items():
        (there, old), (new, now) = (pixels(ROOT / "docs" / "images" / name), pixels(file))
        # another matplotlib draws letters a little differently
        assert there.shape == new.shape
        assert old != now or np.array_equal(there, new), f"{name}: run python docs/refresh.py"


def pixels(path: Path) -> tuple[np.ndarray, str]:
    """A picture's pixels, and the matplotlib that drew it."""
    with Image.open(path) as image:
        return np.asarray(image), str(image.info["Software"])


def test_words_on_mixing_are_true() -> None:
    """What pages say of the pictures of mixing is what they show."""
    texts = [(ROOT / "docs" / page).read_text() for page in ("idea.md", "pictures.md")]
    for window, low, high, said in ((1, 0, 100, "anywhere between"), (16, 0, 51, "between")):
        order = ip.BlockShuffle(100_000, block_size=1000, window=window)
        axes = ip.plot.mixing(ip.Plan(order, world_size=4, batch_size=64)).axes
        points = np.concatenate([line.get_ydata() for each in axes for line in each.lines[1:]])
        assert (low, high) == (points.min(), np.ceil(points.max()))
        words = f"[Window {window}: each quarter's share lies {said} {low} and {high} %"
        assert all(words in text for text in texts)


def test_every_page_and_picture_is_found() -> None:
    """README leads to all pages but the site's home, and a page to every picture and example."""
    pages = {page.name for page in (ROOT / "docs").glob("*.md")}
    assert {"index.md"} == pages - linked("README.md")
    everywhere = linked("README.md", *map(str, (ROOT / "docs").rglob("*.md")))
    for folder in ("images", "examples"):
        assert not {file.name for file in (ROOT / "docs" / folder).glob("*.*")} - everywhere


def test_every_page_has_a_place_in_the_site() -> None:
    """The navigation of mkdocs.yml names each page and notebook once."""
    named = re.findall(r"^ *- .*: (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    folder = ROOT / "docs"
    expected = [path.relative_to(folder).as_posix() for path in folder.rglob("*.md")]
    expected += [f"{path.relative_to(folder).as_posix()}.md" for path in folder.rglob("*.ipynb")]
    assert sorted([*expected, "repository/CHANGELOG.md"]) == sorted(named)


def linked(*pages: str) -> set[str]:
    """The names of the files that pages link to."""
    links = [re.findall(r"\]\(([^)#:]+)", (ROOT / page).read_text()) for page in pages]
    return {Path(target).name for each in links for target in each}


def picture() -> str:
    """README's picture of a small plan."""
    plan = ip.Plan(ip.Shuffle(13, seed=1), world_size=2, batch_size=2)
    order = plan.order.take(0, np.arange(13)).tolist()
    rule = "           +" + "----+" * 13
    cells = "|".join(f" {index:>2} " for index in order)
    steps, ranks = "", ""
    for step in range(plan.num_steps(0)):
        sizes = [plan.batch(0, step=step, rank=rank).size for rank in range(2)]
        steps += f"step {step}".center(5 * sum(sizes) - 1) + "|"
        for rank, size in enumerate(sizes):
            ranks += (f"rank {rank}" if size > 1 else f"r{rank}").center(5 * size - 1) + "|"
    positions = " ".join(f"{position:>3} " for position in range(13)).rstrip()
    lines = [f" position   {positions}", rule, f" order     |{cells}|", rule]
    return "\n".join([*lines, f" step      |{steps}", f" rank      |{ranks}"])


def test_picture() -> None:
    """README's picture is that of a real plan."""
    assert picture() in (ROOT / "README.md").read_text()


def test_promised_files() -> None:
    """The top level is what was promised, and nothing else."""
    tracked = {
        name
        for name in (path.name for path in ROOT.iterdir())
        if not name.startswith(".") and name not in {"build", "dist"} and ".egg-info" not in name
    }
    expected = {"pyproject.toml", "indexplan", "adapters", "benchmarks", "tests", "README.md"}
    expected |= {"mkdocs.yml"}
    assert expected | {"LICENSE", "CHANGELOG.md", "docs"} == tracked


def test_runtime_dependencies() -> None:
    """Users get NumPy and numba, and nothing else."""
    (listed,) = re.findall(
        r"^dependencies = \[(.*)\]$", (ROOT / "pyproject.toml").read_text(), re.MULTILINE
    )
    assert ["numpy", "numba"] == re.findall('"([a-z]+)', listed)


def test_trainers_page_runs() -> None:
    """The example of the trainers' page reads every sample twice in two epochs."""
    (block,) = blocks("docs/trainers.md")
    names: dict[str, object] = {}
    exec(block, names)  # noqa: S102 (our own page)
    state = names["state"]
    assert isinstance(state, dict)
    assert (2, 0, 0) == tuple(state["cursor"][name] for name in ("epoch", "sub_epoch", "step"))


def test_links_lead_somewhere() -> None:
    """Every relative link of a page names a file that is there, and a heading that it has."""
    for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")):
        for target, anchor in re.findall(r"\]\(([^)#:]*)(#[^)]*)?\)", page.read_text()):
            file = page.parent / target if target else page
            assert file.exists(), f"{page.name}: {target}"
            assert not anchor or anchor[1:] in anchors(file), f"{page.name}: {target}{anchor}"


def anchors(page: Path) -> set[str]:
    """The names that GitHub gives to the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
