"""What `finish` says of parts that are missing."""

import json
import shutil
import tracemalloc
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import indexplan as ip
from indexplan.canonical import canonical_json
from tests.support.bins import Bins
from tests.support.parted import TWELVE, build, expected, unfinished
from tests.support.trees import PLAN, tree

__all__ = ["expected"]  # a fixture


def test_finish_names_what_is_missing(tmp_path: Path, expected: dict[str, bytes]) -> None:
    """What is missing is named by epoch and chunk, with the parts that have to run again."""
    path = tmp_path / "a.plan"
    build(path, 2, 5)
    assert (
        "PLAN must have all of its chunks; got no record of chunks 0, 1 and 2 of epoch 0, chunks 2 "
        "and 3 of epoch 1, chunks 0, 1, 2 and 3 of epoch 2; run parts 1/5, 3/5, 4/5 and 5/5 again"
    ) == unfinished(path)
    for number in (1, 3, 5):
        build(path, number, 5)
    said = "PLAN must have all of its chunks; got no record of chunks 0 and 1 of epoch 2; "
    assert said + "run part 4/5 again" == unfinished(path)
    (path / "epoch-00000/chunk-00003.npy").unlink()
    said = "PLAN must have all of its chunks; got no record of chunks 0 and 1 of epoch 2; "
    assert said + "run part 4/5 again" == unfinished(path)
    assert not build(path, 4, 5).finished
    said = "PLAN must have all of its chunks; got none of chunk 3 of epoch 0; "
    assert said + "run part 2/5 again" == unfinished(path)
    assert build(path, 2, 5).finished
    assert expected == tree(path)


def test_finish_names_no_more_than_one_can_read(tmp_path: Path) -> None:
    """Of many epochs, chunks and parts the first are named, and the rest is counted."""
    plan = ip.Plan(ip.Shuffle(20), batch_size=2)
    ip.save(plan, tmp_path / "a.plan", epochs=range(9), units_per_chunk=1, part=(20, 20))
    assert (
        "PLAN must have all of its chunks; got no record of chunks 0, 1, 2, 3, 4, 5, 6, 7 and 12 "
        "more of epoch 0, chunks 0, 1, 2, 3, 4, 5, 6, 7 and 12 more of epoch 1, chunks 0, 1, 2, 3, "
        "4, 5, 6, 7 and 12 more of epoch 2, those of 6 epochs more; run parts 1/20, 2/20, 3/20, "
        "4/20, 5/20, 6/20, 7/20, 8/20 and 11 more again"
    ) == unfinished(tmp_path / "a.plan")
    ip.save(plan, tmp_path / "b.plan", epochs=range(5), part=(5, 5))
    said = "chunk 0 of epoch 0, chunk 0 of epoch 1, chunk 0 of epoch 2, those of 1 epoch more; run"
    assert said in unfinished(tmp_path / "b.plan")


def test_finish_of_a_build_without_parts(tmp_path: Path) -> None:
    """What a killed build has left is not taken at its word: the build has to run again."""
    path = tmp_path / "a.plan"
    ip.save(PLAN, path, **TWELVE)
    (path / "manifest.json").unlink()
    every = ", ".join(f"chunks 0, 1, 2 and 3 of epoch {epoch}" for epoch in range(3))
    said = f"PLAN must have all of its chunks; got no record of {every}; run the same build again"
    assert said == unfinished(path)
    with pytest.raises(ip.PlanFileError) as error:
        ip.finish(tmp_path / "nothing")
    assert (
        f"{tmp_path}/nothing must be a plan directory; got nothing there; check the path, or build "
        "it with `indexplan build`"
    ) == str(error.value)


def rewritten_build(path: Path, **changes: object) -> None:
    """Change build.json."""
    content = json.loads((path / "build.json").read_text())
    (path / "build.json").write_text(canonical_json({**content, **changes}))


def test_builds_of_very_many_chunks(tmp_path: Path) -> None:
    """What is missing of millions of chunks is named without holding a list of them."""
    path = tmp_path / "a.plan"
    build(path, 1, 2)
    rewritten_build(path, num_units=[2**62] * 3, units_per_chunk=1)
    assert (
        f"PLAN: the number of chunk files must be at most 2**26; got {3 * 2**62}; build fewer "
        "epochs, or leave units_per_chunk out"
    ) == unfinished(path)
    rewritten_build(path, num_units=[2**24] * 3, units_per_chunk=1)
    tracemalloc.start()
    assert (
        "PLAN must have all of its chunks; got no record of chunks 8388608, 8388609, 8388610, "
        "8388611, 8388612, 8388613, 8388614, 8388615 and 8388600 more of epoch 1, chunks 0, 1, 2, "
        "3, 4, 5, 6, 7 and 16777208 more of epoch 2; run part 2/2 again"
    ) == unfinished(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**20


def test_what_is_missing_of_bins(tmp_path: Path) -> None:
    """A chunk whose offsets alone are missing is named once."""
    plan = ip.Plan(Bins(500), batch_size=7)
    chunks = {"units_per_chunk": 50, "epochs": range(2)}
    ip.save(plan, tmp_path / "a.plan", part=(3, 9), **chunks)
    assert (
        "PLAN must have all of its chunks; got no record of chunks 0, 1, 2, 4 and 5 of epoch 0, "
        "chunks 0, 1, 2, 3, 4 and 5 of epoch 1; run parts 1/9, 2/9, 4/9, 5/9, 6/9, 7/9, 8/9 and "
        "9/9 again"
    ) == unfinished(tmp_path / "a.plan")
    for number in (1, 2, 4, 5, 6, 7, 8):
        ip.save(plan, tmp_path / "a.plan", part=(number, 9), **chunks)
    (tmp_path / "a.plan/epoch-00000/chunk-00002.offsets.npy").unlink()
    assert unfinished(tmp_path / "a.plan").endswith("; run part 9/9 again")
    ip.save(plan, tmp_path / "a.plan", part=(9, 9), **chunks)
    said = "PLAN must have all of its chunks; got none of chunk 2 of epoch 0; run part 2/9 again"
    assert said == unfinished(tmp_path / "a.plan")


@dataclass(frozen=True, eq=False)
class Unregistered(ip.Sequential):
    """An order that no registry knows."""

    algorithm = "unregistered-test"


def test_finish_needs_no_order(tmp_path: Path) -> None:
    """An order whose algorithm is unknown here is finished like any other."""
    for number in (1, 2):
        plan = ip.Plan(Unregistered(1000), batch_size=2)
        ip.save(plan, tmp_path / f"{number}.plan", part=(number, 2), **TWELVE)
        shutil.copytree(tmp_path / f"{number}.plan", tmp_path / "a.plan", dirs_exist_ok=True)
    ip.finish(tmp_path / "a.plan")
    first = np.load(tmp_path / "a.plan/epoch-00002/chunk-00003.npy")
    assert [*range(768, 1000)] == first.tolist()
