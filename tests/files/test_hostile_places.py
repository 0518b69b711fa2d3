"""What lies where a plan's files should: pipes, sockets, devices, links; refused, never followed.

Each test is stopped by an alarm, since a reader that opens a named pipe waits for ever.
"""

import os
import shutil
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import indexplan as ip
from tests.support.bins import Bins
from tests.support.trees import PLAN, tree

CHUNK = "epoch-00000/chunk-00001.npy"
FILES = ["plan.json", "epoch-00000/chunk-00001.xxh64", CHUNK]
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


def refused(function: Callable[..., object], *args: object) -> str:
    """The one line with which something is refused."""
    with pytest.raises(ip.PlanFileError) as error:
        function(*args)
    assert "\n" not in str(error.value)
    return str(error.value)


def make_socket(path: Path) -> None:
    """Bind a socket to a path, which is too long for it as it is."""
    with socket.socket(socket.AF_UNIX) as server:
        here = Path.cwd()
        os.chdir(path.parent)
        try:
            server.bind(path.name)
        finally:
            os.chdir(here)


def move_and_link(path: Path) -> None:
    """Put a link to a file in its place."""
    path.rename(path.parent.parent / "moved.npy")
    path.symlink_to(path.parent.parent / "moved.npy")


KINDS: dict[str, Callable[[Path], None]] = {
    "a named pipe": os.mkfifo,
    "a socket": make_socket,
    "a folder": Path.mkdir,
    "a link": lambda path: path.symlink_to("/dev/zero"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", FILES)
def test_other_things_than_files(saved: Path, name: str, kind: str) -> None:
    """A plan with something else in the place of one of its files is not opened."""
    (saved / name).unlink()
    KINDS[kind](saved / name)
    assert f"{saved / name} must be a plain file; got {kind}; {CURE}" == refused(ip.load, saved)


@pytest.mark.parametrize("name", FILES)
def test_links_to_the_right_file(saved: Path, name: str) -> None:
    """A link is not followed even where it leads to just the right bytes."""
    move_and_link(saved / name)
    assert f"{saved / name} must be a plain file; got a link; {CURE}" == refused(ip.load, saved)


@pytest.mark.parametrize("target", ["/etc", "../a.plan", "moved"])
def test_link_in_place_of_an_epoch(saved: Path, target: str) -> None:
    """The folder of an epoch is a folder, not a link to one, even to the right one."""
    folder = saved / "epoch-00000"
    folder.rename(saved / "moved")
    folder.symlink_to(target)
    said = CURE.replace("the file", "the folder")
    assert f"{folder} must be a plain folder; got a link; {said}" == refused(ip.load, saved)


@pytest.mark.parametrize("name", [CHUNK, "epoch-00000"])
def test_swapped_after_opening(saved: Path, name: str) -> None:
    """What is swapped for a link or a pipe after a plan was opened is refused when it is read."""
    order = ip.types.Stored(saved)
    plan = ip.load(saved)
    (saved / name).rename(saved / "moved")
    (saved / name).symlink_to(saved / "moved")
    for read in (lambda: order.take(0, 256, 300), lambda: ip.verify(plan)):
        assert "must be a plain f" in refused(read)
        assert "; got a link; " in refused(read)
    (saved / name).unlink()
    os.mkfifo(saved / name)
    assert "; got a named pipe; " in refused(order.take, 0, 256, 300)
    assert "; got a named pipe; " in refused(ip.verify, plan)


def test_device_in_place_of_a_plan(saved: Path) -> None:
    """A path that is no folder at all is refused."""
    assert "must be a plan directory; got a file" in refused(ip.load, Path("/dev/zero"))
    os.mkfifo(saved.parent / "pipe")
    assert "must be a plan directory; got a file" in refused(ip.load, saved.parent / "pipe")
    assert "File name too long" in refused(ip.load, Path("x" * 300))


@pytest.mark.parametrize("kind", ["a named pipe", "a link", "a folder"])
def test_other_things_than_plan_json(saved: Path, kind: str) -> None:
    """A build does not go on where plan.json is something else."""
    (saved / "plan.json").unlink()
    KINDS[kind](saved / "plan.json")
    said = refused(lambda: ip.save(PLAN, saved, units_per_chunk=256))
    assert f"{saved}/plan.json must be a plain file; got {kind}; {CURE}" == said


@pytest.mark.parametrize("kind", ["a named pipe", "a link", "a folder"])
def test_other_things_than_chunks_found_by_a_build(saved: Path, kind: str) -> None:
    """A build that finds something else in the place of a chunk stops."""
    (saved / CHUNK).unlink()
    KINDS[kind](saved / CHUNK)
    said = refused(lambda: ip.save(PLAN, saved, units_per_chunk=256))
    assert f"{saved / CHUNK} must be a plain file; got {kind}; {CURE}" == said


def test_builds_write_nowhere_else(saved: Path, tmp_path: Path) -> None:
    """A build does not write through a link in the place of an epoch's folder."""
    folder = saved / "epoch-00000"
    shutil.rmtree(folder)
    (tmp_path / "elsewhere").mkdir()
    folder.symlink_to(tmp_path / "elsewhere")
    said = refused(lambda: ip.save(PLAN, saved, units_per_chunk=256))
    assert f"{folder} must be a plain folder; got a link; " in said
    assert [] == list((tmp_path / "elsewhere").iterdir())


def test_linked_plan(saved: Path, tmp_path: Path) -> None:
    """The plan directory itself may be a link, and its files may have other names too."""
    (tmp_path / "link.plan").symlink_to("a.plan")
    (tmp_path / "other.npy").hardlink_to(saved / CHUNK)
    plan = ip.load(tmp_path / "link.plan")
    assert PLAN.indices(0, 0, rank=0).tolist() == plan.indices(0, 0, rank=0).tolist()
    assert ip.verify(plan).ok


@pytest.mark.parametrize("change", [-1, 1, -1000])
def test_sizes_that_change_after_opening(saved: Path, change: int) -> None:
    """A chunk that grew or shrank between opening and its first read is refused."""
    order, plan = ip.types.Stored(saved), ip.load(saved)
    data = (saved / CHUNK).read_bytes()
    (saved / CHUNK).write_bytes((data + b"\0" * 9)[: len(data) + change])
    size = len(data) + change
    cure = "restore it, or delete it and run the same build again"
    assert f"{saved / CHUNK} must hold 1152 bytes; got {size}; {cure}" == (
        refused(order.take, 0, 256, 300)
    )
    problems = [problem for check in ip.verify(plan).checks for problem in check.problems]
    assert [f"{CHUNK}, block 0: the file must hold 1152 bytes; got {size}"] == problems


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


def test_bins_of_another_kind(tmp_path: Path) -> None:
    """The files of offsets are looked at like the others."""
    ip.save(ip.Plan(Bins(50), batch_size=2), tmp_path / "a.plan")
    path = tmp_path / "a.plan/epoch-00000/chunk-00000.offsets.npy"
    move_and_link(path)
    assert f"{path} must be a plain file; got a link; {CURE}" == refused(
        ip.load, tmp_path / "a.plan"
    )
    assert tree(tmp_path / "a.plan")
