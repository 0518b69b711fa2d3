"""Builders of one path agree on the plan; what they find there is compared, never trusted."""

import hashlib
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest

import indexplan as ip
from tests.support.forging import rewritten
from tests.support.trees import PLAN, tree

TWO = {"epochs": range(2), "units_per_chunk": 256}  # 8 chunks
OTHER = PLAN.replace(world_size=7, batch_size=5)
DIFFER = "got one with batch_size 16, not 5; world_size 3, not 7; "
SAME = " must be a build of the same partition; "
LOAD = "load that plan and use plan.replace or plan.resume, or choose another path"
PARTS = "give all parts the same partition, or delete part-*.json and run every part again"


@pytest.fixture(autouse=True)
def alarm() -> Iterator[None]:
    """Fail a test that hangs, as one does that opens a named pipe."""

    def stop(*_: object) -> None:
        raise TimeoutError("the test hangs")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(params=["folder", "store"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A path where nothing is yet: of a folder, and in an object store."""
    yield f"{tmp_path}/a.plan" if request.param == "folder" else f"memory://{tmp_path}/a.plan"
    fsspec.filesystem("memory").store.clear()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A plan directory of 8 chunks."""
    ip.save(PLAN, tmp_path / "a.plan", **TWO)
    return tmp_path / "a.plan"


def refused(function: Callable[..., object], *arguments: Any, **options: Any) -> str:
    """The message with which a call is refused."""
    with pytest.raises(ip.PlanFileError) as error:
        function(*arguments, **options)
    assert "\n" not in str(error.value)
    return str(error.value)


# Partitions.


def test_another_partition_is_refused(path: str) -> None:
    """Saved where the plan is finished, another partition is an error that shows both."""
    ip.save(PLAN, path, **TWO)
    for part in (None, (1, 2)):
        assert path + SAME + DIFFER + LOAD == refused(ip.save, OTHER, path, part=part, **TWO)
    assert PLAN == ip.load(path)
    assert OTHER == ip.load(path).replace(world_size=7, batch_size=5)  # the cure
    assert ip.save(PLAN, path, **TWO).finished


def test_a_resumed_plan_is_another(path: str) -> None:
    """Where a plan goes on from is part of what is saved."""
    ip.save(PLAN, path)
    resumed = PLAN.resume(PLAN.cursor(0, 1, step=1))
    said = "got one with resumed None, not {'epoch': 0, 'sub_epoch': 1, 'step': 1, 'position': 546}"
    assert f"{path}{SAME}{said}; {LOAD}" == refused(ip.save, resumed, path)


@pytest.mark.parametrize("part", [None, (2, 2)])
def test_parts_of_another_partition(path: str, part: tuple[int, int] | None) -> None:
    """A part, or a whole build, of another partition than a part before it is refused at once."""
    ip.save(PLAN, path, part=(1, 2), **TWO)
    assert path + SAME + DIFFER + PARTS == refused(ip.save, OTHER, path, part=part, **TWO)
    assert not ip.save(PLAN, path, part=(1, 2), **TWO).finished
    assert ip.save(PLAN, path, part=(2, 2), **TWO).finished
    assert PLAN == ip.load(path)


def overtaken_by(
    plan: ip.Plan, path: str, part: tuple[int, int] | None = None
) -> Callable[[int, int], None]:
    """A progress that saves another plan to the path, when all chunks are written."""

    def progress(done: int, total: int) -> None:
        if done == total:
            ip.save(plan, path, part=part, **TWO)

    return progress


@pytest.mark.parametrize("part", [None, (1, 1)])
def test_two_partitions_at_once(path: str, part: tuple[int, int] | None) -> None:
    """Of two builders at once with other partitions, the one that finishes first wins."""
    late = overtaken_by(OTHER, path)
    said = "got one with batch_size 5, not 16; world_size 7, not 3; "
    message = refused(ip.save, PLAN, path, part=part, progress=late, **TWO)
    assert path + SAME + said + LOAD == message
    assert OTHER == ip.load(path)
    assert ip.verify(ip.load(path)).ok


def test_parts_of_two_partitions_at_once(path: str) -> None:
    """Parts that could not see each other's records do not make a plan; the cure does."""
    late = overtaken_by(OTHER, path, part=(2, 2))
    message = refused(ip.save, PLAN, path, part=(1, 2), progress=late, **TWO)
    expected = path + SAME + "got one with batch_size 16, not 5; world_size 3, not 7; " + PARTS
    assert expected == message == refused(ip.finish, path)
    assert "got a half-built one" in refused(ip.load, path)
    remove(path, "part-00001-of-00002.json")
    remove(path, "part-00002-of-00002.json")
    assert [False, True] == [ip.save(OTHER, path, part=(i, 2), **TWO).finished for i in (1, 2)]
    assert OTHER == ip.load(path)


def test_the_same_part_of_two_partitions_at_once(path: str) -> None:
    """Two copies of one part with other partitions: the second finds the first one's record."""
    late = overtaken_by(OTHER, path, part=(1, 2))
    said = "got one with batch_size 5, not 16; world_size 7, not 3; "
    message = refused(ip.save, PLAN, path, part=(1, 2), progress=late, **TWO)
    assert path + SAME + said + PARTS == message


def test_another_partition_over_stored_plans(path: str) -> None:
    """A loaded plan may be saved again at its own path, as it is; elsewhere with any partition."""
    ip.save(PLAN, path, **TWO)
    plan = ip.load(path)
    assert (0, 8) == ((again := ip.save(plan, path, **TWO)).num_written, again.num_kept)
    other = plan.replace(world_size=7, batch_size=5)
    assert path + SAME + DIFFER + LOAD == refused(ip.save, other, path, **TWO)
    ip.save(other, f"{path}2", **TWO)
    assert OTHER == ip.load(f"{path}2")


def remove(path: str, name: str) -> None:
    """Remove a file of a plan directory."""
    from indexplan.stores.open import store_of

    store_of(path).remove(name)


# What is there already.


def flipped(file: Path) -> None:
    """Flip a bit in the middle of a file."""
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)


def emptied(file: Path) -> None:
    """Cut a file to nothing."""
    file.write_bytes(b"")


def of_another_plan(file: Path) -> None:
    """Put the file of another plan there, which is whole in itself."""
    other = PLAN.replace(order=ip.Shuffle(1000, seed=6))
    ip.save(other, file.parent.parent / "other.plan", **TWO)
    shutil.copy(file.parent.parent / "other.plan" / file.name, file)


DAMAGE = [flipped, emptied, of_another_plan]


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("name", ["blocks.npy", "manifest.json"])
@pytest.mark.parametrize("part", [None, (1, 2)])
def test_damaged_files_of_a_finished_plan(
    root: Path, name: str, damage: Callable[[Path], None], part: tuple[int, int] | None
) -> None:
    """Neither `save` nor `finish` calls a plan finished that is not; what they advise mends it."""
    before = tree(root)
    damage(root / name)
    message = refused(ip.save, PLAN, root, part=part, **TWO)
    assert message.startswith((f"{root}/{name} must ", f"{root}: {name} must "))
    assert "run the same build again" in message
    assert name in refused(ip.finish, root)
    (root / name).unlink()  # the cure
    ip.save(PLAN, root, **TWO)
    assert before == tree(root)
    assert ip.verify(ip.load(root)).ok


@pytest.mark.parametrize("kind", ["a named pipe", "a folder"])
@pytest.mark.parametrize("name", ["blocks.npy", "manifest.json"])
@pytest.mark.parametrize("part", [None, (1, 2)])
def test_other_things_than_files(
    root: Path, name: str, kind: str, part: tuple[int, int] | None
) -> None:
    """A pipe or a folder in the place of a file is refused, and never waited for."""
    before = tree(root)
    (root / name).unlink()
    {"a named pipe": os.mkfifo, "a folder": Path.mkdir}[kind](root / name)
    cure = "put the file itself in its place, or choose another path"
    expected = f"{root}/{name} must be a plain file; got {kind}; {cure}"
    assert expected == refused(ip.save, PLAN, root, part=part, **TWO) == refused(ip.finish, root)
    ip.save(PLAN, root.with_name("b.plan"), **TWO)  # the cure
    assert before == tree(root.with_name("b.plan"))


@pytest.mark.parametrize("damage", [*DAMAGE, "a named pipe"])
@pytest.mark.parametrize("last", ["part", "finish"])
def test_damaged_block_table_of_parts(root: Path, damage: Any, last: str) -> None:
    """A block table that lies there before a plan of parts is finished does not become its."""
    before = tree(root)
    for name in ("manifest.json", "epoch-00001/chunk-00003.npy"):
        (root / name).unlink()
    if damage == "a named pipe":
        (root / "blocks.npy").unlink()
        os.mkfifo(root / "blocks.npy")
    else:
        damage(root / "blocks.npy")
    assert not ip.save(PLAN, root, part=(1, 2), **TWO).finished
    assert "blocks.npy must " in refused(ip.save, PLAN, root, part=(2, 2), **TWO)
    assert not (root / "manifest.json").exists()
    assert "blocks.npy must " in refused(ip.finish, root)
    (root / "blocks.npy").unlink()  # the cure
    ip.save(PLAN, root, part=(2, 2), **TWO) if last == "part" else ip.finish(root)
    assert before == tree(root)


@pytest.mark.parametrize("what", ["a chunk", "build.json", "another build.json"])
def test_what_else_is_missing_of_a_finished_plan(root: Path, what: str) -> None:
    """A part that comes late, and `finish`, miss the chunks of others, and build.json."""
    before = tree(root)
    if what == "a chunk":
        (root / "epoch-00001/chunk-00003.npy").unlink()
        expected = "epoch-00001/chunk-00003.npy must be there; got 'No such file or directory'; "
        assert expected in refused(ip.save, PLAN, root, part=(1, 2), **TWO)
        (root / "manifest.json").unlink()  # the cure
        ip.save(PLAN, root, **TWO)
        assert before == tree(root)
    elif what == "build.json":
        (root / "build.json").unlink()
        expected = "build.json must be readable; got 'No such file or directory'; check the path"
    else:
        of_another_plan(root / "build.json")
        expected = "build.json must hold the build that manifest.json holds; got another; "
    if what != "a chunk":
        assert expected in refused(ip.finish, root)


def test_another_block_table_with_right_digests(root: Path) -> None:
    """A block table that agrees with its manifest is compared with what the builder generates."""
    table = (root / "blocks.npy").read_bytes()[:-8] + bytes(8)
    (root / "blocks.npy").write_bytes(table)
    blocks_sha256 = hashlib.sha256(table).hexdigest()
    rewritten(root, lambda manifest: {**manifest, "blocks_sha256": blocks_sha256})
    assert ip.save(PLAN, root, part=(1, 2), **TWO).finished  # whose share of it is right
    said = "must hold what its build writes; got other bytes; delete"
    both = f"{root}/manifest.json {said} it and blocks.npy, and run the same build again"
    assert both == refused(ip.save, PLAN, root, part=(2, 2), **TWO)
    table_alone = f"{root}/blocks.npy {said} the file and run the same build again"
    assert table_alone == refused(ip.save, PLAN, root, **TWO)
    (root / "blocks.npy").unlink()
    assert refused(ip.save, PLAN, root, **TWO).endswith(
        "; delete blocks.npy and manifest.json, and run the same build again"
    )
    for name in ("blocks.npy", "manifest.json"):
        (root / name).unlink()
    assert ip.save(PLAN, root, **TWO).finished
    assert ip.verify(ip.load(root)).ok


def test_plan_that_another_version_finished(root: Path) -> None:
    """Which version of the library has finished a plan makes no difference to it."""
    rewritten(root, lambda manifest: {**manifest, "library_version": "0.0.9"})
    for part in (None, (1, 2)):
        assert ip.save(PLAN, root, part=part, **TWO).finished
    assert "0.0.9" == ip.types.Stored(root).manifest.library_version


def test_record_of_other_hashes(root: Path) -> None:
    """A record that is there is compared with what its part has generated."""
    from tests.support.parted import forged

    (root / "manifest.json").unlink()
    ip.save(PLAN, root, part=(1, 2), **TWO)
    record = root / "part-00001-of-00002.json"
    forged(record, blocks="00" * 8 * 4)
    expected = f"{record} must hold what its part generates; got other hashes; "
    cure = "delete it and run the same part again"
    assert expected + cure == refused(ip.save, PLAN, root, part=(1, 2), **TWO)
    record.unlink()
    ip.save(PLAN, root, part=(1, 2), **TWO)
    assert ip.save(PLAN, root, part=(2, 2), **TWO).finished
    assert ip.verify(ip.load(root)).ok
