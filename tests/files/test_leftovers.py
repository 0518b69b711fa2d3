"""Temporary files: of dead builders, which go with the next build; of live ones, and users'."""

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import indexplan as ip
from indexplan.stores.open import store_of
from indexplan.stores.publish import publish
from indexplan.stores.temporary import PATIENCE, sweep
from tests.support.children import in_child
from tests.support.refused_calls import refuse
from tests.support.trees import PLAN, tree

TWO = {"epochs": range(2), "units_per_chunk": 256}
EPOCH = "epoch-00001"
NAMED = "indexplan-01234567-1234-0123456789ab"

ENDS: dict[str, Callable[[Path], Any]] = {
    "save": lambda root: ip.save(PLAN, root, **TWO),
    "a part": lambda root: ip.save(PLAN, root, part=(2, 2), **TWO),
}


def save_and_die(root: Path, part: tuple[int, int] | None) -> None:
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


def killed(root: Path, part: tuple[int, int] | None = (2, 2)) -> Path:
    """Kill a builder; return the temporary file that it leaves."""
    with pytest.raises(EOFError):
        in_child(save_and_die, root, part)
    (left,) = (root / EPOCH).glob(".chunk-00003*")
    return left


@pytest.mark.parametrize("end", ENDS)
def test_leftovers_of_a_finished_plan(tmp_path: Path, end: str) -> None:
    """What a killed part leaves beside a plan that is finished goes with whatever runs next."""
    root = tmp_path / "a.plan"
    ip.save(PLAN, root, **TWO)
    whole = tree(root)
    left = killed(root)
    chunk = root / EPOCH / "chunk-00003.npy"
    chunk.write_bytes(whole[f"{EPOCH}/chunk-00003.npy"])
    ENDS[end](root)
    assert not left.exists()
    assert whole == tree(root)


def test_leftovers_of_a_plan_that_is_not_finished(tmp_path: Path) -> None:
    """What a killed part leaves goes with the next part that has the same folder."""
    root = tmp_path / "a.plan"
    left = killed(root, (3, 3))
    ip.save(PLAN, root, part=(3, 3), **TWO)
    assert not left.exists()
    assert not [name for name in tree(root) if name.endswith(".tmp")]


@pytest.mark.parametrize("end", ENDS)
def test_files_of_users(tmp_path: Path, end: str) -> None:
    """Hidden files that only end as temporary ones do are a user's, and stay; other things too."""
    root = tmp_path / "a.plan"
    ip.save(PLAN, root, **TWO)
    names = [".x.tmp", ".notes.json.tmp", ".chunk-00000.npy.tmp", "x.tmp", ".x.1234-ab.tmp"]
    names += [".plan.json.1234-0123456789ab.tmp", ".plan.json.my-01234567-1-0123456789ab.tmp"]
    names += [f"{EPOCH}/{name}" for name in names]
    for name in names:
        old(root / name)
    (root / f".plan.json.{NAMED}.tmp").mkdir()
    os.mkfifo(root / EPOCH / f".chunk-00000.npy.{NAMED}.tmp")
    before = sorted(root.rglob("*"))
    ENDS[end](root)
    assert before == sorted(root.rglob("*"))


def test_links_are_not_followed(tmp_path: Path) -> None:
    """A link in the place of an epoch's folder leads no sweep to other folders."""
    root = tmp_path / "a.plan"
    ip.save(PLAN, root, **TWO)
    old(tmp_path / f".chunk-00000.npy.{NAMED}.tmp")
    (root / EPOCH).rename(tmp_path / "moved")
    (root / EPOCH).symlink_to(tmp_path)
    store_of(root).tidy([f"{EPOCH}/chunk-00000.npy"])
    assert (tmp_path / f".chunk-00000.npy.{NAMED}.tmp").exists()


def old(path: Path, seconds: float = PATIENCE + 60) -> Path:
    """Write a file that nobody has written to for so long."""
    path.write_bytes(b"left")
    os.utime(path, (time.time() - seconds,) * 2)
    return path


def test_leftovers_of_other_machines(tmp_path: Path) -> None:
    """Where a lock may be out of sight, a file is dead an hour after it was last written to."""
    young = old(tmp_path / f".chunk-00000.npy.{NAMED}.tmp", PATIENCE - 60)
    dead = [
        old(tmp_path / f".{name}.{NAMED}.tmp")
        for name in ("chunk-00001.offsets.npy", "chunk-00001.xxh64", "plan.json")
    ]
    sweep(tmp_path)
    assert young.exists()
    assert [] == [file for file in dead if file.exists()]


def publish_while_others_sweep(path: Path, without_locks: bool) -> bytes:
    """Publish a file, in whose folder somebody sweeps up after every block."""
    if without_locks:
        refuse("flock", errno.ENOLCK)

    def blocks() -> Iterator[bytes]:
        for block in (b"a", b"b", b"c"):
            yield block
            sweep(path.parent)

    assert publish(path, blocks())
    return path.read_bytes()


@pytest.mark.parametrize("without_locks", [False, True])
def test_live_builders(tmp_path: Path, without_locks: bool) -> None:
    """A file that somebody is writing is not swept up, on file systems without locks neither."""
    path = tmp_path / "chunk-00000.npy"
    assert b"abc" == in_child(publish_while_others_sweep, path, without_locks)
    assert ["chunk-00000.npy"] == [file.name for file in tmp_path.iterdir()]


def test_a_stopped_builder(tmp_path: Path) -> None:
    """A builder that stands still while others finish the plan goes on where it stood."""
    root, said = tmp_path / "a.plan", tmp_path / "said"
    code = (
        "import os, signal, sys, indexplan as ip\n"
        "from tests.support.trees import PLAN\n"
        "def progress(done, total):\n"
        "    if done: os.kill(os.getpid(), signal.SIGSTOP)\n"
        "print(ip.save(PLAN, sys.argv[1], progress=progress, **eval(sys.argv[2])).num_bytes)\n"
    )
    with said.open("w") as output:
        command = [sys.executable, "-c", code, str(root), repr(TWO)]
        builder = subprocess.Popen(command, cwd=Path(__file__).parents[2], stdout=output)
        stopped = 0
        while True:
            status = os.waitpid(builder.pid, os.WUNTRACED)[1]
            if not os.WIFSTOPPED(status):
                break
            stopped += 1
            if stopped == 1:
                ip.save(PLAN, root, **TWO)
            os.kill(builder.pid, signal.SIGCONT)
    builder.returncode = os.waitstatus_to_exitcode(status)
    assert (0, "9024\n", 8) == (builder.returncode, said.read_text(), stopped)
    assert not [name for name in tree(root) if name.endswith(".tmp")]


def test_sweeper_before_the_lock(tmp_path: Path) -> None:
    """A file that is swept up between its making and its locking is made again."""
    assert b"abc" == in_child(publish_swept_at_once, tmp_path / "chunk-00000.npy")


def publish_swept_at_once(path: Path) -> bytes:
    """Publish a file; before its first lock, somebody sweeps up."""
    swept = []

    def event(call: str, _: tuple[object, ...]) -> None:
        if call == "fcntl.flock" and not swept:
            swept.append(call)
            sweep(path.parent)
            swept.extend(file.name for file in path.parent.iterdir())

    sys.addaudithook(event)
    assert publish(path, [b"abc"])
    assert ["fcntl.flock"] == swept
    return path.read_bytes()
