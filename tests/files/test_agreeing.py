"""Builders of one path agree on the plan; what they find there is compared, never trusted."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest

import indexplan as ip
from tests.support.trees import PLAN, tree

TWO = {"epochs": range(2), "units_per_chunk": 256}  # 8 chunks
OTHER = PLAN.replace(world_size=7, batch_size=5)
ANOTHER = " must be a build of the same plan and epochs; got one with "
CURE = "choose another path; if only its partition is another, load it and use plan.replace"


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


# Another plan.


def test_another_partition_is_refused(path: str) -> None:
    """Saved where a plan is, or part of one, another partition is an error that shows both."""
    said = "plan.batch_size 16, not 5; plan.world_size 3, not 7; "
    ip.save(PLAN, path, part=(1, 2), **TWO)
    for part in (None, (1, 2), (2, 2)):
        assert path + ANOTHER + said + CURE == refused(ip.save, OTHER, path, part=part, **TWO)
    ip.save(PLAN, path, part=(2, 2), **TWO)
    for part in (None, (1, 2)):
        assert path + ANOTHER + said + CURE == refused(ip.save, OTHER, path, part=part, **TWO)
    assert PLAN == ip.load(path)
    assert OTHER == ip.load(path).replace(world_size=7, batch_size=5)  # the cure
    assert 8 == ip.save(PLAN, path, **TWO).num_kept


def test_a_resumed_plan_is_another(path: str) -> None:
    """Where a plan goes on from is part of what is saved."""
    ip.save(PLAN, path)
    resumed = PLAN.resume(PLAN.cursor(0, 1, step=1))
    said = "plan.resumed none, not {'epoch': 0, 'sub_epoch': 1, 'step': 1, 'position': 546}; "
    assert path + ANOTHER + said + CURE == refused(ip.save, resumed, path)


def test_a_loaded_plan_is_saved_again(path: str) -> None:
    """A loaded plan may be saved at its own path, as it is; elsewhere with any partition."""
    ip.save(PLAN, path, **TWO)
    plan = ip.load(path)
    assert (0, 8) == ((again := ip.save(plan, path, **TWO)).num_written, again.num_kept)
    other = plan.replace(world_size=7, batch_size=5)
    assert path + ANOTHER in refused(ip.save, other, path, **TWO)
    ip.save(other, f"{path}2", **TWO)
    assert OTHER == ip.load(f"{path}2")


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
    root = next(folder for folder in file.parents if (folder / "plan.json").exists())
    ip.save(other, root.with_name("other.plan"), **TWO)
    shutil.copy(root.with_name("other.plan") / file.relative_to(root), file)


DAMAGE = [flipped, emptied, of_another_plan]


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("name", ["chunk-00002.npy", "chunk-00002.xxh64"])
def test_damaged_files_that_are_there(
    root: Path, name: str, damage: Callable[[Path], None]
) -> None:
    """What is there is compared with what belongs there; what the error advises mends it."""
    before = tree(root)
    file = root / "epoch-00000" / name
    damage(file)
    message = refused(ip.save, PLAN, root, **TWO)
    assert message.startswith(f"{file} must hold ")
    assert message.endswith("; delete the file and run the same build again")
    assert message == refused(ip.save, PLAN, root, part=(1, 2), **TWO)
    ip.save(PLAN, root, part=(2, 2), **TWO)  # which does not write it
    file.unlink()  # the cure
    ip.save(PLAN, root, part=(1, 2), **TWO)
    assert before == tree(root)
    assert ip.verify(ip.load(root)).ok


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_plan_json(root: Path, damage: Callable[[Path], None]) -> None:
    """No builder goes on from a plan.json that is not its own; the cure is another path."""
    before = tree(root)
    damage(root / "plan.json")
    for part in (None, (1, 2)):
        message = refused(ip.save, PLAN, root, part=part, **TWO)
        assert message.startswith(f"{root}")
        assert "another path" in message
    ip.save(PLAN, root.with_name("b.plan"), **TWO)  # the cure
    assert before == tree(root.with_name("b.plan"))


def test_every_file_that_is_lost_is_written_again(root: Path) -> None:
    """A build that lacks any file is refused, until the same build has been run again."""
    before = tree(root)
    for name in sorted({*before} - {"plan.json"}):
        (root / name).unlink()
        assert (
            f"{root} must have all of its 17 files; got none named {name}; run the same "
            "build again, or each of its parts"
        ) == refused(ip.load, root)
        ip.save(PLAN, root, part=(int(name[10]) + 1, 2), **TWO)
        assert before == tree(root)
