"""The Composer example; run by path, in the environment of Composer's own checks."""

import contextlib
import io
import runpy

import pytest

import indexplan as ip
from tests.trainers.ranks import ROOT, run_ranks

pytestmark = pytest.mark.composer

IMPORTED_BY_RANKS = ("tests.runs.frameworks.composer_trainer", "torchmetrics", "torch._dynamo")


def example(name: str) -> list[str]:
    """Run an example in this rank, as Composer's launcher does; return what it printed."""
    with contextlib.redirect_stdout(io.StringIO()) as said:
        runpy.run_path(str(ROOT / "docs" / "examples" / name), run_name="__main__")
    return said.getvalue().splitlines()


def test_composer_epochs() -> None:
    """Each Composer epoch is a sub-epoch of the plan, on both ranks, over the epoch's end too."""
    function = "tests.trainers.composer_examples_checks:example"
    lines, _ = run_ranks(function, 2, "composer_epochs.py")
    plan = ip.Plan(ip.Shuffle(103, seed=0), world_size=2, batch_size=8, sub_epochs=3)
    expected = []
    for rank in range(2):
        passes = [plan.batches(number // 3, number % 3, rank=rank) for number in range(4)]
        batches = [batch.tolist() for batches in passes for batch in batches]
        expected += [f"rank {rank} step {step} reads {b}" for step, b in enumerate(batches)]
    assert expected == [line for line in lines if line.startswith("rank")]
