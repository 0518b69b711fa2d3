"""Builders of one path agree on the plan, overtake each other, and sweep up after the dead."""

import errno
import os
import re
import signal
import stat
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest

import indexplan as ip
from indexplan.stores.open import store_of
from indexplan.stores.publish import publish
from indexplan.stores.temporary import PATIENCE, sweep
from tests.support.children import before, in_child
from tests.support.fresh import printed
from tests.support.refused_calls import refuse
from tests.support.trees import PLAN, tree

TWO: dict[str, Any] = {"epochs": range(2), "units_per_chunk": 256}  # 8 chunks
EPOCH = "epoch-00001"
NAMED = "indexplan-01234567-1234-0123456789ab"

OTHER = PLAN.replace(world_size=7, batch_size=5)
ANOTHER = " must be a build of the same plan and epochs; got one with "
CURE = "choose another path; if only its partition is another, load it and use plan.replace"


@pytest.fixture(params=["folder", "store"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A path where nothing is yet: of a folder, and in an object store."""
    yield f"{tmp_path}/a.plan" if request.param == "folder" else f"memory://{tmp_path}/a.plan"
    fsspec.filesystem("memory").store.clear()


@pytest.fixture
def whole(tmp_path: Path) -> dict[str, bytes]:
    """The files of a build that nothing disturbs."""
    ip.save(PLAN, tmp_path / "whole.plan", **TWO)
    return tree(tmp_path / "whole.plan")


def said(function: Callable[..., Any], *arguments: Any, **options: Any) -> str:
    """The message of the error that a call ends with, or "built"."""
    try:
        function(*arguments, **options)
    except ip.PlanFileError as error:
        return str(error)
    return "built"


# Another plan.


def test_another_partition_is_refused(path: str) -> None:
    """Saved where a plan is, or part of one, another partition is an error that shows both."""
    expected = path + ANOTHER + "plan.batch_size 16, not 5; plan.world_size 3, not 7; " + CURE
    ip.save(PLAN, path, part=(1, 2), **TWO)
    for part in (None, (1, 2), (2, 2)):
        assert expected == said(ip.save, OTHER, path, part=part, **TWO)
    ip.save(PLAN, path, part=(2, 2), **TWO)
    for part in (None, (1, 2)):
        assert expected == said(ip.save, OTHER, path, part=part, **TWO)
    assert PLAN == ip.load(path)
    assert OTHER == ip.load(path).replace(world_size=7, batch_size=5)  # the cure


def test_a_plan_that_is_saved_again(path: str) -> None:
    """A loaded plan may be saved at its own path, as it is; elsewhere with any partition."""
    ip.save(PLAN, path, **TWO)
    plan = ip.load(path)
    assert (0, 8) == ((again := ip.save(plan, path, **TWO)).num_written, again.num_kept)
    resumed = PLAN.resume(PLAN.cursor(0, 1, step=1))  # where a plan goes on from is part of it
    place = "plan.resumed none, not {'epoch': 0, 'sub_epoch': 1, 'step': 1, 'position': 546}; "
    assert path + ANOTHER + place + CURE == said(ip.save, resumed, path, **TWO)
    other = plan.replace(world_size=7, batch_size=5)
    assert path + ANOTHER in said(ip.save, other, path, **TWO)
    ip.save(other, f"{path}2", **TWO)
    assert OTHER == ip.load(f"{path}2")


SEEDED = PLAN.replace(order=ip.Shuffle(1000, seed=6))


def save_another_without_links(root: Path, how: str) -> str:
    """Save where another plan is, or comes just now, on a file system that knows no links."""
    refuse("link", errno.EPERM)
    if how == "overtaken":  # no chunk is saved, so nothing is swept up
        before("os.rename", "plan.json", lambda: ip.save(PLAN, root, part=(2, 2)))
    else:
        sys.platform = how
        ip.save(PLAN, root)
    return said(ip.save, SEEDED, root)


@pytest.mark.parametrize("how", [sys.platform, "another", "overtaken"])
def test_another_plan_without_links(tmp_path: Path, how: str) -> None:
    """Where files get their names by renaming, no name that is taken is taken away either."""
    root = tmp_path / "a.plan"
    assert in_child(save_another_without_links, root, how).startswith(f"{root}{ANOTHER}")
    for each in (root, tmp_path / "b.plan"):
        ip.save(PLAN, each)
    assert tree(tmp_path / "b.plan") == tree(root)


@dataclass(frozen=True, eq=False)
class Unreadable(ip.Sequential):
    """An order that reads a file that is not there."""

    algorithm = "unreadable-test"

    def fill(self, epoch: int, starts: np.ndarray, stops: np.ndarray, out: np.ndarray) -> None:
        raise FileNotFoundError(errno.ENOENT, "nowhere", "table.bin")


@pytest.mark.parametrize("found", [False, True])
def test_errors_of_an_order(path: str, found: bool) -> None:
    """An error of the order's own is raised as it is, and not said to be the chunk's."""
    plan = ip.Plan(Unreadable(100), batch_size=8)
    if found:
        ip.save(plan, path, part=(2, 2))
        store_of(path).publish("epoch-00000/chunk-00000.npy", [b"something"])
    with pytest.raises(FileNotFoundError, match=re.escape("table.bin")):
        ip.save(plan, path)


# Other systems.


@pytest.mark.parametrize(
    ("call", "reason"), [("link", errno.EPERM), ("fsync", errno.EINVAL), ("fsync", errno.ENOTSUP)]
)
def test_file_systems_that_know_less(
    tmp_path: Path,
    whole: dict[str, bytes],
    monkeypatch: pytest.MonkeyPatch,
    call: str,
    reason: int,
) -> None:
    """Where there are no links, or folders cannot be synced, a build does without."""
    real = getattr(os, call)

    def refused(what: Any, *arguments: Any) -> Any:
        if call == "link" or stat.S_ISDIR(os.fstat(what).st_mode):
            raise OSError(reason, os.strerror(reason))
        return real(what, *arguments)

    monkeypatch.setattr(os, call, refused)
    ip.save(PLAN, tmp_path / "a.plan", **TWO)
    assert whole == tree(tmp_path / "a.plan")


@pytest.mark.slow
def test_systems_that_lack_what_linux_has(tmp_path: Path) -> None:
    """Where POSIX's flags, file locks and open folders are missing, folders can still be used."""
    code = (
        "import os, sys\n"
        "sys.modules['fcntl'] = None\n"
        "for name in ('CLOEXEC', 'NOFOLLOW', 'NONBLOCK', 'NOCTTY', 'DIRECTORY'):\n"
        "    delattr(os, 'O_' + name)\n"
        "os.supports_dir_fd = set()\n"
        "import indexplan as ip\n"
        "from tests.support.trees import PLAN\n"
        "print(ip.save(PLAN, 'a.plan', units_per_chunk=256).num_written)\n"
        "plan = ip.load('a.plan')\n"
        "print(plan == PLAN, ip.verify(plan).ok, plan.batch(0, 1, step=2, rank=1)[0])\n"
        "os.symlink(os.path.abspath('a.plan/plan.json'), 'link')\n"
        "os.replace('link', 'a.plan/plan.json')\n"
        "try: ip.load('a.plan')\n"
        "except ip.PlanFileError as error: print(error)\n"
    )
    assert (
        f"4\nTrue True {PLAN.batch(0, 1, step=2, rank=1)[0]}\n"
        f"{tmp_path}/a.plan/plan.json must be a plain file; got a link; put the file itself in "
        "its place, or choose another path\n"
    ) == printed("-c", code, cwd=tmp_path)


# Who comes first.


def save_overtaken(root: Path, part: tuple[int, int] | None, name: str) -> tuple[int, int]:
    """Build in one thread; before a file gets its name, another builder finishes and sweeps up."""
    before("os.link", name, lambda: ip.save(PLAN, root, **TWO))
    with ThreadPoolExecutor(1) as pool:
        saved = ip.save(PLAN, root, part=part, executor=pool, **TWO)
    return saved.num_written, saved.num_kept


@pytest.mark.parametrize(
    ("part", "name", "counted"),
    [
        (None, "plan.json", (0, 8)),
        (None, "chunk-00003.npy", (3, 5)),
        (None, "chunk-00003.xxh64", (4, 4)),
        ((2, 2), "chunk-00003.npy", (3, 1)),
        ((2, 2), "chunk-00003.xxh64", (4, 0)),
    ],
)
def test_overtaken(
    tmp_path: Path,
    whole: dict[str, bytes],
    part: tuple[int, int] | None,
    name: str,
    counted: tuple[int, int],
) -> None:
    """A builder whose file is swept up before it has its name, as the plan is done, succeeds.

    A chunk that the other builder named first counts as one that was there.
    """
    assert counted == in_child(save_overtaken, tmp_path / "a.plan", part, name)
    assert whole == tree(tmp_path / "a.plan")


# What the dead leave.


def save_and_die(root: Path, part: tuple[int, int]) -> None:
    """Save, and be killed when half of a chunk's temporary file is written."""
    from indexplan.stores import publish as module

    write = module.write_all

    def write_half(descriptor: int, block: Any) -> None:
        if len(block) > 500 and "chunk-00003" in str(
            Path(f"/proc/self/fd/{descriptor}").readlink()
        ):
            write(descriptor, block[: len(block) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
        write(descriptor, block)

    module.write_all = write_half
    (root / EPOCH / "chunk-00003.npy").unlink(missing_ok=True)
    ip.save(PLAN, root, part=part, **TWO)


@pytest.mark.parametrize("part", [None, (2, 2), (3, 3)])
def test_leftovers(tmp_path: Path, whole: dict[str, bytes], part: tuple[int, int] | None) -> None:
    """What a killed part leaves goes with the next one of its folder, or once a plan is finished.

    Hidden files that only end as temporary ones do are a user's, and stay; other things too.
    """
    root, names = tmp_path / "a.plan", []
    if part != (3, 3):  # beside a plan that is finished
        ip.save(PLAN, root, **TWO)
    with pytest.raises(EOFError):
        in_child(save_and_die, root, part or (2, 2))
    left = {*root.rglob(".*.tmp")}  # of other threads too
    assert "chunk-00003" in str(left)
    if part != (3, 3):
        (root / EPOCH / "chunk-00003.npy").write_bytes(whole[f"{EPOCH}/chunk-00003.npy"])
        names = [".x.tmp", ".notes.json.tmp", ".chunk-00000.npy.tmp", "x.tmp", ".x.1234-ab.tmp"]
        names += [".plan.json.1234-0123456789ab.tmp", ".plan.json.my-01234567-1-0123456789ab.tmp"]
        names += [f"{EPOCH}/{name}" for name in names]
        for name in names:
            old(root / name)
        (root / f".plan.json.{NAMED}.tmp").mkdir()
        os.mkfifo(root / EPOCH / f".chunk-00000.npy.{NAMED}.tmp")
    others = {*root.rglob("*")} - left
    ip.save(PLAN, root, part=part, **TWO)
    assert others <= {*root.rglob("*")}
    assert not any(each.exists() for each in left)
    ip.save(PLAN, root, **TWO)
    assert whole | dict.fromkeys(names, b"left") == tree(root)


def old(path: Path, seconds: float = PATIENCE + 60) -> Path:
    """Write a file that nobody has written to for so long."""
    path.write_bytes(b"left")
    os.utime(path, (time.time() - seconds,) * 2)
    return path


def test_links_are_not_followed(tmp_path: Path) -> None:
    """A link in the place of an epoch's folder leads no sweep to other folders."""
    root = tmp_path / "a.plan"
    ip.save(PLAN, root, **TWO)
    left = old(tmp_path / f".chunk-00000.npy.{NAMED}.tmp")
    (root / EPOCH).rename(tmp_path / "moved")
    (root / EPOCH).symlink_to(tmp_path)
    store_of(root).tidy([f"{EPOCH}/chunk-00000.npy"])
    assert left.exists()


def test_leftovers_of_other_machines(tmp_path: Path) -> None:
    """Where a lock may be out of sight, a file is dead an hour after it was last written to."""
    young = old(tmp_path / f".chunk-00000.npy.{NAMED}.tmp", PATIENCE - 60)
    for name in ("chunk-00001.offsets.npy", "chunk-00001.xxh64", "plan.json"):
        old(tmp_path / f".{name}.{NAMED}.tmp")
    sweep(tmp_path)
    assert [young] == [*tmp_path.iterdir()]


def publish_while_others_sweep(path: Path, without_locks: bool) -> bytes:
    """Publish a file, in whose folder somebody sweeps up at once, and after every block."""
    left: list[Path] = []
    if without_locks:
        refuse("flock", errno.ENOLCK)
    else:
        before("fcntl.flock", "", lambda: (sweep(path.parent), left.extend(path.parent.iterdir())))

    def blocks() -> Iterator[bytes]:
        for block in (b"a", b"b", b"c"):
            yield block
            sweep(path.parent)

    assert publish(path, blocks())
    assert [] == left  # what was swept up between its making and its locking was made again
    return path.read_bytes()


@pytest.mark.parametrize("without_locks", [False, True])
def test_live_builders(tmp_path: Path, without_locks: bool) -> None:
    """A file that somebody is writing is not swept up, on file systems without locks neither."""
    path = tmp_path / "chunk-00000.npy"
    assert b"abc" == in_child(publish_while_others_sweep, path, without_locks)
    assert ["chunk-00000.npy"] == [file.name for file in tmp_path.iterdir()]


def publish_swept(path: Path, there: bool) -> str:
    """Publish a file; when half of it is written, its temporary file is gone, as NFS says it."""

    def blocks() -> Iterator[bytes]:
        yield b"half"
        if there:
            assert publish(path, [b"half and half"])
        refuse("write", errno.ESTALE)
        yield b" and half"

    try:
        return str(publish(path, blocks()))
    except ip.PlanFileError as error:
        return str(error)


@pytest.mark.parametrize("there", [True, False])
def test_temporary_file_that_was_swept(tmp_path: Path, there: bool) -> None:
    """A file that cannot be written any more is an error, unless another builder has named it."""
    message = in_child(publish_swept, tmp_path / "a", there)
    reason = os.strerror(errno.ESTALE)
    cure = "check its permissions and its file system"
    failed = f"{tmp_path / 'a'} must be written; got '{reason}'; {cure}"
    assert ("False" if there else failed) == message
    assert ({"a": b"half and half"} if there else {}) == tree(tmp_path)
