"""The documentation is true: its code runs, its picture is drawn from a plan."""

import contextlib
import importlib
import io
import itertools
import os
import re
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

import indexplan as ip
from benchmarks.render import rows, summary
from benchmarks.render.pages import PAGES, short
from benchmarks.render.tables import markdown
from indexplan.orders.registry import _REGISTRY, registered
from indexplan_torch import PlanBatchSampler, PlanLoader
from tests.support.ports import free_port

ROOT = Path(__file__).parents[1]

BLOCK = re.compile(
    r"^```(python|sh)\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE
)


def blocks(name: str) -> list[str]:
    """The Python blocks of a page."""
    return re.findall(r"```python\n(.*?)```", (ROOT / name).read_text(), re.DOTALL)


def anchors(page: Path) -> set[str]:
    """The names that GitHub gives to the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings}


def test_readme_runs(tmp_path: Path) -> None:
    """README's loop trains for three epochs; run again, it goes on where the saved state stands.

    tests/trainers/test_readme.py runs it under torchrun.
    """
    (loop,) = blocks("README.md")
    steps: list[object] = []
    counting = register_optimizer_step_post_hook(lambda *given: steps.append(given))
    out = io.StringIO()
    with (
        contextlib.chdir(tmp_path),
        contextlib.ExitStack() as stack,
        contextlib.redirect_stdout(out),
    ):
        stack.callback(counting.remove)
        exec(loop, names := dict[str, Any]())  # noqa: S102 (our own README)
        assert 3 * 313 == len(steps)
        said = re.findall(r"^epoch (\d), next step (\d+): loss \d\.", out.getvalue(), re.MULTILINE)
        assert [(e, at) for e in "012" for at in ("100", "200", "300", "0")] == said
        loader = PlanLoader(range(10_000), names["plan"])
        loader.set_epoch(1)
        for _ in itertools.islice(loader, 5):
            pass
        torch.save({**torch.load("run.pt"), "loader": loader.state_dict()}, "run.pt")
        exec(loop, {})  # noqa: S102
    assert 3 * 313 + (313 - 5) + 313 == len(steps)


def test_home_says_what_to_write(tmp_path: Path) -> None:
    """What the home page's table tells to write makes a plan, or reads one."""
    (tmp_path / "data").mkdir()
    pq.write_table(pa.table({"id": np.arange(10)}), tmp_path / "data" / "0.parquet")
    (tmp_path / "tars").mkdir()
    with tarfile.open(tmp_path / "tars/0.tar", "w") as tar:
        tar.addfile(tarfile.TarInfo("0.txt"))
    names = {
        "ip": ip,
        "PlanBatchSampler": PlanBatchSampler,
        "dataset": range(10),
        "num_tokens": 9_000,
    }
    names |= {"weights": np.ones(10), "labels": np.arange(10) % 2, "lengths": np.full(10, 700)}
    text = (ROOT / "docs" / "index.md").read_text()
    (table,) = re.findall(r"^\| you have, or want .*\n\|.*\n((?:\|.*\n)+)", text, re.MULTILINE)
    for _, code, _ in (row.strip("|").split("|") for row in table.splitlines()):
        plan = names["plan"] = ip.Plan(ip.Shuffle(1000), batch_size=2)
        for written in re.findall(r"`(.*?)`", code):
            with contextlib.chdir(tmp_path):
                found = eval(written.removeprefix("batch_sampler="), names)  # noqa: S307 (ours)
            if isinstance(found, ip.Order):
                found = plan.replace(order=found, world_size=1).batch(epoch=0, step=0, rank=0)
            assert 0 < len(found), written


def printed_by_python(code: str, names: dict[str, object]) -> str:
    """Run a block and return what it printed."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(code, names)  # noqa: S102 (our own page)
    return out.getvalue()


def test_plan_file_is_readable_without_this_library(tmp_path: Path) -> None:
    """The plain NumPy of the format's page reads what the library reads."""
    (block,) = blocks("docs/plan-file.md")
    assert "indexplan" not in block
    order = ip.BlockShuffle(1_281_167, block_size=4096, window=8)
    plan = ip.Plan(order, world_size=8, remainder="drop", batch_size=15)
    ip.save(plan, tmp_path / "run.plan")
    with contextlib.chdir(tmp_path):
        printed = printed_by_python(block, {})
    expected = plan.batch(epoch=0, step=17, rank=2).tolist()
    assert expected == [int(number) for number in re.findall(r"\d+", printed)]


def printed_by_shell(code: str) -> str:
    """Run a block with this project's `indexplan`, and return what it printed.

    `torchrun` is this Python's too, and takes a port that is free for 29500, its usual one.
    """
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "adapters")]),
        "COLUMNS": "80",
        "GLOO_SOCKET_IFNAME": "lo",
        "OMP_NUM_THREADS": "1",
    }
    command = f"""
        indexplan() {{ "{sys.executable}" -m indexplan "$@"; }}
        torchrun() {{ "{sys.executable}" -m torch.distributed.run "${{@/29500/{free_port()}}}"; }}
        {code}"""
    done = subprocess.run(
        ["/usr/bin/env", "bash", "-euo", "pipefail", "-c", command],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    # torchrun's agents wait for each other in the store of the first, which may end first.
    lost = "Error waiting on exit barrier"
    said = "" if "--nnodes" in code and lost in done.stderr else done.stderr
    assert (0, "") == (done.returncode, said)
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


def check_page(page: str, folder: Path, section: str = "") -> dict[str, Any]:
    """Check that a page's blocks print what it shows: in a text block after, or in comments.

    A block that begins with the name of a file is that file, for the blocks after it. Returns the
    names that the blocks leave behind. A `section` is checked alone, by its heading.
    """
    names: dict[str, Any] = {}
    text = (ROOT / "docs" / f"{page}.md").read_text()
    if section:
        (text,) = re.findall(rf"^## {re.escape(section)}\n(?:(?!## ).*\n)+", text, re.MULTILINE)
    assert text.count("```python") + text.count("```sh") == len(BLOCK.findall(text))
    with contextlib.chdir(folder):
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
    return names


def test_every_page_and_picture_is_found() -> None:
    """A page names every picture and example."""
    everywhere = named("README.md", *map(str, (ROOT / "docs").rglob("*.md")))
    everywhere |= set(re.findall(r"[\w-]+\.svg", pages_of_results()))
    for folder in ("images", "examples"):
        assert not {file.name for file in (ROOT / "docs" / folder).glob("*.*")} - everywhere


def test_every_page_has_a_place_in_the_site() -> None:
    """The navigation names each page and notebook once; design.md is for who builds this."""
    said = re.findall(r"^ *- .*: (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    folder = ROOT / "docs"
    specified = {"specification.md", "plan-file.md"}
    pages = {path.relative_to(folder).as_posix() for path in folder.rglob("*.md")}
    expected = [*(pages - specified - {"design.md"}), *(f"repository/docs/{p}" for p in specified)]
    expected += [f"{path.relative_to(folder).as_posix()}.md" for path in folder.rglob("*.ipynb")]
    expected += [f"repository/{name}.md" for name in ("CHANGELOG", "CONTRIBUTING", "SECURITY")]
    results = (ROOT / "benchmarks" / "results").iterdir()
    expected += [f"repository/benchmarks/results/{path.name}.md" for path in results]
    assert sorted(expected) == sorted(said)


def named(*pages: str) -> set[str]:
    """The names of the files that pages link to, or that their commands run."""
    texts = [(ROOT / page).read_text() for page in pages]
    found = [re.findall(r"(?:\]\(|\b(?=docs/examples/))([^)#:\s]+)", text) for text in texts]
    return {Path(target).name for each in found for target in each}


def test_picture() -> None:
    """The first picture of README and of the home page is that of a real plan, and of a resume."""
    plan = ip.Plan(ip.Shuffle(13, seed=1), world_size=2, batch_size=2)
    rest = plan.replace(world_size=3).resume(plan.cursor(epoch=0, step=2))
    expected: list[tuple[str | None, str, list[int]]] = []
    order = plan.order.take(0, np.arange(13)).tolist()
    expected += [(None, "order", [sample]) for sample in order]
    for plans in ([plan] * 4, [plan, plan, rest]):
        read = []
        for step, each in enumerate(plans):
            for rank in range(each.world_size):
                batch = each.batch(0, step=step, rank=rank).tolist()
                expected.append((str(step), f"rank{rank}", batch))
                read += batch
        assert order == read
    drawn = (ROOT / "docs" / "images" / "stop-and-resume.svg").read_text()
    cell = r'<rect class="(\w+)"(?: data-step="(\d)")? x="\d+" y="\d+" width="\d+" height="34"/>\n'
    cells = re.findall(rf"{cell}<text [^>]*>(\d+)</text>", drawn)
    found = [(step or None, kind, int(sample)) for kind, step, sample in cells]
    assert [(step, kind, each) for step, kind, batch in expected for each in batch] == found
    for page in ("README.md", "docs/index.md"):
        assert "images/stop-and-resume.svg" in (ROOT / page).read_text()


def test_promised_files() -> None:
    """The top level is what was promised, and nothing else."""
    tracked = {
        name
        for name in (path.name for path in ROOT.iterdir())
        if not name.startswith(".")
        and name not in {"build", "dist"}
        and not name.endswith((".egg-info", ".plan"))  # of README's commands
    }
    expected = {"pyproject.toml", "indexplan", "adapters", "benchmarks", "tests", "README.md"}
    expected |= {"LICENSE", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "CITATION.cff"}
    expected |= {"docs", "mkdocs.yml"}
    assert expected == tracked


def test_trainers_page_runs() -> None:
    """The first example of the trainers' page reads two epochs; tests/trainers runs the others."""
    block, *_, on_a_gpu = blocks("docs/trainers.md")
    exec(on_a_gpu, {})  # noqa: S102 (our own page)
    names: dict[str, object] = {}
    exec(block, names)  # noqa: S102 (our own page)
    state = names["state"]
    assert isinstance(state, dict)
    assert (2, 0, 0) == tuple(state["cursor"][name] for name in ("epoch", "sub_epoch", "step"))


def test_links_lead_somewhere() -> None:
    """Every relative link of a page names a file that is there, and a heading that it has."""
    for page in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")):
        for target, anchor in re.findall(r"\]\(([^)#:]*)(#[^)]*)?\)", page.read_text()):
            file = page.parent / target if target else page
            assert file.exists(), f"{page.name}: {target}"
            if anchor and not anchor.startswith("#indexplan."):  # the strict build checks names
                assert anchor[1:] in anchors(file), f"{page.name}: {target}{anchor}"


NUMBER = r"(?<![\w.-])\d[\d,]*(?:\.\d+)?(?:e-\d+)?"
UNITS = "ns|us|ms|s|ns per index|M/s|GB|MB|%|times"


def pages_of_results() -> str:
    """Return the pages that the site makes of benchmarks/results."""
    files = (ROOT / "benchmarks" / "results").glob("*.json")
    return "\n".join(
        [*(markdown(page, rows.read(name)) for name, page in PAGES.items())]
        + [file.read_text() for file in files]
    )


def test_the_table_of_benchmarks_is_made_of_results() -> None:
    """The page's table, and README's, say what the kept rows do; the page's prose stays short."""
    text = (ROOT / "docs/benchmarks.md").read_text()
    before, table, after = re.split(r"<!-- /?measured -->\n", text)
    assert summary.measured() == table.rstrip("\n")
    prose = before + after
    assert 600 > len(prose.split())
    assert "|" not in prose
    run, *_ = rows.runs(rows.read("planning"))
    block = f"<!-- benchmarks -->\n{short(run)}\n<!-- /benchmarks -->"
    assert block in (ROOT / "README.md").read_text()


def test_words_on_benchmarks_have_their_numbers_from_results() -> None:
    """Each number that is written by hand is in some result."""
    *sections, by_hand, last = (ROOT / "docs/benchmarks.md").read_text().split("\n## ")
    assert by_hand.startswith("JAX, C and devices\n\nMeasured once, by hand.")  # keeps no results
    answers = (ROOT / "benchmarks/pages/objections.md").read_text()
    text = " ".join("\n".join([*sections, last, answers]).split())
    known = set(re.findall(NUMBER, pages_of_results()))
    found = re.findall(rf"({NUMBER}) ?(?:{UNITS}|per million)(?![\w/])", text)
    assert 20 < len(found)
    assert [] == [number for number in found if number not in known]
