"""Plan directories that are damaged, edited, or hold other things than files: refused, and mended.

Each test is stopped by an alarm, since a reader that opens a named pipe waits for ever.
"""

import json
import os
import shutil
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import indexplan as ip
from indexplan.canonical import canonical_json
from tests.support.forging import Trap, rewritten
from tests.support.refusals import refused_file as refused
from tests.support.trees import PLAN, tree

LENGTHS = [1 + 7 * i % 9 for i in range(60)]
EVERYTHING = ip.Plan(ip.DocumentWindows(LENGTHS, length=4, overlap=1), world_size=2, batch_size=3)
OTHER = EVERYTHING.replace(order=ip.DocumentWindows(LENGTHS[::-1], length=4, overlap=1, seed=1))
TWO: dict[str, Any] = {"epochs": range(2), "units_per_chunk": 60}  # two epochs, of two chunks
CHUNK = "epoch-00000/chunk-00001.npy"
KINDS = ["", ".offsets", ".spans"]
FILES = ["plan.json", "columns/*.npy"]  # and of the second part of a build:
FILES += [
    f"epoch-00001/chunk-00001{kind}.{ending}" for kind in KINDS for ending in ("npy", "xxh64")
]
CURE = "put the file itself in its place, or choose another path"


@pytest.fixture(autouse=True)
def alarm() -> Iterator[None]:
    """Fail a test that hangs."""

    def stop(*_: object) -> None:
        raise TimeoutError("the test hangs")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A plan directory of one epoch in 4 chunks."""
    ip.save(PLAN, tmp_path / "a.plan", units_per_chunk=256)
    return tmp_path / "a.plan"


def pickled(path: Path) -> None:
    """Put an array that holds a pickle in the place of a file."""
    with path.open("wb") as stream:  # given a path, NumPy adds .npy to its name
        np.save(stream, np.array([Trap()], dtype=object), allow_pickle=True)


def edited(change: Callable[[bytes], bytes]) -> Callable[[Path], Any]:
    """What changes the bytes of a file."""
    return lambda path: path.write_bytes(change(path.read_bytes()))


def of_another_plan(file: Path) -> None:
    """Put the file of another plan there, which is whole in itself."""
    root = next(folder for folder in file.parents if folder.name == "a.plan")
    ip.save(OTHER, root.with_name("other.plan"), **TWO)
    name = "columns/*.npy" if file.parent.name == "columns" else f"{file.relative_to(root)}"
    (found,) = root.with_name("other.plan").glob(name)
    shutil.copy(found, file)


def make_socket(path: Path) -> None:
    """Bind a socket to a path, which is too long for it as it is."""
    path.unlink()
    with socket.socket(socket.AF_UNIX) as server, pytest.MonkeyPatch.context() as patch:
        patch.chdir(path.parent)
        server.bind(path.name)


def move_and_link(path: Path) -> None:
    """Put a link in the place of a file, or a folder, which leads to just the right bytes."""
    there = path.rename(path.parents[1] / "moved")
    path.symlink_to(there)


DAMAGE: dict[str, Callable[[Path], Any]] = {
    "lost": Path.unlink,
    "emptied": edited(lambda _: b""),
    "cut": edited(lambda data: data[:-1]),
    "longer": edited(lambda data: data + b"\0"),
    "flipped": edited(lambda data: data[:-9] + bytes([data[-9] ^ 1]) + data[-8:]),
    "of another plan": of_another_plan,
    "pickled": pickled,
    "a named pipe": lambda path: (path.unlink(), os.mkfifo(path)),
    "a socket": make_socket,
    "a folder": lambda path: (path.unlink(), path.mkdir()),
    "a link": move_and_link,
}


def read(root: Path) -> None:
    """Open a plan directory, and read all that its files hold, the column for a third epoch."""
    order = ip.load(root).order
    for epoch in range(3):
        for ask in (order.take, order.offsets, order.spans):
            ask(epoch, 0, order.num_units(epoch))


def verified(root: Path) -> None:
    """Raise if `verify` finds anything, in a word about each problem."""
    report = ip.verify(ip.load(root))
    if not report.ok:
        raise ip.PlanFileError(str([each for check in report.checks for each in check.problems]))


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plan directory with files of all kinds, to be copied."""
    root = tmp_path_factory.mktemp("everything") / "a.plan"
    ip.save(EVERYTHING, root, **TWO)
    verified(root)
    return root


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("damage", DAMAGE)
def test_damage(
    damage: str, name: str, everything: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is wrong with a file, readers, `verify` and builds say so, and the cure mends it."""
    root = tmp_path / "a.plan"
    shutil.copytree(everything, root)
    before = tree(root)
    (file,) = root.glob(name)
    monkeypatch.chdir(root)
    DAMAGE[damage](file)
    said = [refused(ask, root) for ask in (read, verified)]
    if damage != "lost":
        said += [refused(ip.save, EVERYTHING, root, part=part, **TWO) for part in (None, (2, 2))]
    assert not (root / "sprung").exists()
    if name == "plan.json":  # no build goes on from one that is not its own
        assert all(each.startswith(str(root)) for each in said[:1] + said[2:])
        root = tmp_path / "b.plan"  # the cure
    else:
        assert all(file.with_suffix("").name in each for each in said)
        if damage == "lost":
            lacks = f"{root} must have all of its 26 files; got none named {file.relative_to(root)}"
            assert [f"{lacks}; run the same build again, or each of its parts"] * 2 == said
        elif damage.startswith("a "):
            kind = f"{file} must be a plain file; got {damage}; {CURE}"
            assert [kind] * 4 == said
        else:
            assert all(each.startswith(f"{file} must hold ") for each in said[2:])
        if "epoch" in name:
            ip.save(EVERYTHING, root, part=(1, 2), **TWO)  # which does not write it
        if os.path.lexists(file):
            file.rmdir() if damage == "a folder" else file.unlink()  # the cure
    ip.save(EVERYTHING, root, part=(2, 2), **TWO)
    ip.save(EVERYTHING, root, **TWO)
    (root.parent / "a.plan/moved").unlink(missing_ok=True)
    assert before == tree(root)  # which was verified


VALUES = [None, -1, 2**70, "../../x", "/etc/passwd", [], {}, True, [2**70], 0.5, 2.0, "x" * 9999]
VALUES += [[[]] * 99]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: repr(value)[:12])
def test_edited_plan_json(saved: Path, value: Any) -> None:
    """Whatever field of plan.json is changed to whatever value, missing or new, it is refused."""
    content = json.loads((saved / "plan.json").read_text())
    assert 11 == len(content)
    for field in [*content, "colour"]:
        rest = {name: content[name] for name in content if name != field}
        for edit in ({**rest, field: value}, rest):
            if edit != content:  # null is right for a dataset, and colour is no field
                (saved / "plan.json").write_text(canonical_json(edit))
                assert refused(ip.load, saved).startswith(f"{saved}: ")


TEXTS = ["", "{", "[]", "null", '{"a": 1, "a": 2}', '{"a": NaN}', '{"a": -Infinity}', "\x00"]
TEXTS += ['{"a": 1e999}', '{"a": ' + "9" * 5000 + "}", '{"a":' * 400 + "1" + "}" * 400]
TEXTS += ["[" * 9999, '{"a":' + "[" * 60 + "]" * 60 + "}"]


def test_plan_json_that_is_no_object(saved: Path) -> None:
    """What is not the text of one JSON object is refused."""
    for data in (*map(str.encode, TEXTS), b"\xff\xfe\x80" * 100):
        (saved / "plan.json").write_bytes(data)
        assert refused(ip.load, saved).startswith(f"{saved}: plan.json must ")


def test_plan_json_edited_with_its_digest(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that was edited with care still has to fit the files; the first that is lost ends it.

    What it asks for by a number alone costs nothing.
    """
    text = (saved / "plan.json").read_bytes()
    for edits in ({"epochs": [7]}, {"num_units": [2**60]}, {"units_per_chunk": 1}):
        (saved / "plan.json").write_bytes(text)
        rewritten(saved, lambda content, edits=edits: content | edits)  # type: ignore[misc]
        assert refused(ip.load, saved).startswith(f"{saved}")
    many = {"num_samples": 2**20, "num_units": [2**20], "units_per_chunk": 1}
    (saved / "plan.json").write_bytes(text)
    rewritten(saved, lambda content: content | many)
    (saved / "epoch-00000/chunk-00000.npy").unlink()
    lstat, looked = os.lstat, []

    def counted(*args: Any, **options: Any) -> os.stat_result:
        looked.append(args)
        assert len(looked) < 100
        return lstat(*args, **options)

    monkeypatch.setattr(os, "lstat", counted)
    said = refused(ip.load, saved)
    assert said.startswith(f"{saved} must have all of its {2**21 + 1} files; got none ")


@pytest.mark.parametrize("target", ["/etc", "../a.plan", "moved"])
def test_link_in_place_of_an_epoch(saved: Path, target: str) -> None:
    """An epoch's folder is no link, even to the right one; and no build writes through it."""
    folder = saved / "epoch-00000"
    folder.rename(saved / "moved")
    folder.symlink_to(target)
    before = tree(saved.parent)
    said = f"{folder} must be a plain folder; got a link; {CURE.replace('the file', 'the folder')}"
    assert said == refused(ip.load, saved) == refused(ip.save, PLAN, saved, units_per_chunk=256)
    assert before == tree(saved.parent)


@pytest.mark.parametrize("name", [CHUNK, "epoch-00000"])
def test_swapped_after_opening(saved: Path, name: str) -> None:
    """What is swapped for a link or a pipe after a plan was opened is refused when it is read."""
    order = ip.types.Stored(saved)
    plan = ip.load(saved)
    (saved / name).rename(saved / "moved")
    (saved / name).symlink_to(saved / "moved")
    for kind in ("a link", "a named pipe"):
        for read in (lambda: order.take(0, 256, 300), lambda: ip.verify(plan)):
            assert "must be a plain f" in (said := refused(read))
            assert f"; got {kind}; " in said
        (saved / name).unlink()
        os.mkfifo(saved / name)


@pytest.mark.parametrize("change", [-1, 1, -1000])
def test_sizes_that_change_after_opening(saved: Path, change: int) -> None:
    """A chunk that grew or shrank between opening and its first read is refused."""
    order, plan = ip.types.Stored(saved), ip.load(saved)
    data = (saved / CHUNK).read_bytes()
    size = len(data) + change
    (saved / CHUNK).write_bytes((data + b"\0" * 9)[:size])
    said = f"{saved / CHUNK} must hold 1152 bytes; got {size}; "
    assert refused(order.take, 0, 256, 300).startswith(said)
    problems = [problem for check in ip.verify(plan).checks for problem in check.problems]
    assert [f"{CHUNK}, block 0: the file must hold 1152 bytes; got {size}"] == problems


def test_what_is_no_folder(saved: Path) -> None:
    """A path of something else is refused; a link to a plan, and other names of files, are not."""
    os.mkfifo(saved.parent / "pipe")
    for path in (Path("/dev/zero"), saved.parent / "pipe"):
        assert "must be a plan directory; got a file" in refused(ip.load, path)
    assert "File name too long" in refused(ip.load, Path("x" * 300))
    (saved.parent / "link.plan").symlink_to("a.plan")
    (saved.parent / "other.npy").hardlink_to(saved / CHUNK)
    plan = ip.load(saved.parent / "link.plan")
    assert PLAN.indices(0, 0, rank=0).tolist() == plan.indices(0, 0, rank=0).tolist()
    assert ip.verify(plan).ok


def test_builders_never_change_a_published_file(saved: Path) -> None:
    """What a reader has mapped stays whole, since truncating it would kill the reader (SIGBUS)."""

    def facts() -> list[tuple[int, ...]]:
        files = [path.stat() for path in sorted(saved.rglob("chunk-*.npy"))]
        return [(file.st_ino, file.st_size, file.st_mtime_ns) for file in files]

    order, before = ip.types.Stored(saved), facts()
    expected = PLAN.order.take(0, 0, 1000).tolist()
    assert expected == order.take(0, 0, 1000).tolist()
    (saved / "epoch-00000/chunk-00002.xxh64").unlink()
    ip.save(PLAN, saved, units_per_chunk=256)
    assert before == facts()
    shutil.rmtree(saved)
    ip.save(PLAN, saved, units_per_chunk=256)
    assert expected == order.take(0, 0, 1000).tolist()  # of the old files, still mapped
