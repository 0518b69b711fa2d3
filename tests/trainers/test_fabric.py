"""Fabric with its default settings: two ranks over gloo, resumed on two and on three."""

from pathlib import Path
from typing import Any

import pytest

import indexplan as ip
from tests.trainers.ranks import run_ranks

RUNS = "tests.trainers.fabric_runs"
RANKS = range(2)

# passes of 6, 5, 5, 5 steps
PLAN = ip.Plan(
    ip.Shuffle(103, seed=7), batch_size=[ip.Phase(0, 3), ip.Phase((0, 1), 4)], sub_epochs=3
)
PASSES = 5
WORKERS = ["0", "2", "2p"]  # p: persistent

# name: (checkpoint, workers, its place as (pass, step))
RESUMES: dict[str, Any] = {
    "in the middle": ("middle-0", "0", (2, 2)),
    "in the middle, with workers": ("middle-2", "2p", (2, 2)),
    "in the middle, with workers now": ("middle-0", "2", (2, 2)),
    "in the middle, without workers now": ("middle-2p", "0", (2, 2)),
    "at a pass's end": ("end-0", "0", (2, 0)),
    "at a pass's end, with workers": ("end-2", "2", (2, 0)),
}


def read(plan: ip.Plan, rank: int, number: int, **steps: int) -> list[Any]:
    """A rank's batches of a pass."""
    epoch, sub_epoch = divmod(number, 3)
    return [batch.tolist() for batch in plan.batches(epoch, sub_epoch, rank=rank, **steps)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where checkpoints are."""
    return tmp_path_factory.mktemp("checkpoints")


@pytest.fixture(scope="module")
def told(folder: Path) -> list[Any]:
    """What two ranks tell: their batches by the name of the run, by rank."""
    return run_ranks(f"{RUNS}:train", 2, str(folder))


@pytest.mark.parametrize("workers", WORKERS)
def test_loops_read_the_plan(told: list[Any], workers: str) -> None:
    """Passes over a PlanLoader are the plan's."""
    plan = PLAN.replace(world_size=2)
    for rank in RANKS:
        expected = [read(plan, rank, number) for number in range(PASSES)]
        assert expected == told[rank][f"passes {workers}"]


@pytest.mark.parametrize("workers", WORKERS)
def test_lengths_are_the_passes(told: list[Any], workers: str) -> None:
    """The length of the loader that Fabric returns is that of the pass it reads."""
    plan = PLAN.replace(world_size=2)
    expected = [plan.steps(*divmod(number, 3)).stop for number in range(PASSES)]
    assert [expected, expected] == [told[rank][f"lengths {workers}"] for rank in RANKS]


@pytest.mark.parametrize("name", RESUMES)
def test_resume_reads_the_rest(told: list[Any], name: str) -> None:
    """A new loader goes on with the rest, though Fabric counts its passes from 0 again."""
    plan = PLAN.replace(world_size=2)
    number, step = RESUMES[name][2]
    for rank in RANKS:
        expected = [read(plan, rank, number, start_step=step), read(plan, rank, number + 1)]
        assert expected == told[rank][f"resumed {name}"]


@pytest.mark.parametrize("workers", WORKERS)
def test_rewind_reads_the_rest(told: list[Any], workers: str) -> None:
    """The same loader goes back to a saved state, though Fabric counts on."""
    plan = PLAN.replace(world_size=2)
    for rank in RANKS:
        expected = [read(plan, rank, 2), read(plan, rank, 3)]
        assert expected == told[rank][f"rewound {workers}"]
        expected[0] = expected[0][2:]
        assert expected == told[rank][f"rewound to the middle {workers}"]


def test_loaders_made_in_a_launched_function_read_the_plan(told: list[Any]) -> None:
    """In a function given to Fabric.launch, where it records attributes, loaders are the plan's."""
    plan = PLAN.replace(world_size=2)
    for rank in RANKS:
        expected = [read(plan, rank, number) for number in range(PASSES)]
        assert expected == told[rank]["launched"]
        for where in ("outside", "inside"):  # of a DataLoader around a PlanBatchSampler
            assert "a plan's batch sampler" == told[rank][f"plain {where}"]


@pytest.fixture(scope="module")
def elastic(
    folder: Path,
    told: list[Any],  # noqa: ARG001 (which leaves the checkpoints)
) -> list[Any]:
    """What three ranks tell of resuming what two have saved."""
    return run_ranks(f"{RUNS}:resume", 3, str(folder))


@pytest.mark.parametrize("name", RESUMES)
def test_elastic_resume_reads_the_rest(elastic: list[Any], name: str) -> None:
    """What two ranks have left three ranks read, each sample exactly once."""
    (number, step), saved = RESUMES[name][2], PLAN.replace(world_size=2)
    cursor = saved.cursor(*divmod(number, 3), step=step)
    plan = PLAN.replace(world_size=3).resume(cursor)
    for rank, batches in enumerate(elastic):
        expected = [read(plan, rank, number), read(plan, rank, number + 1)]
        assert expected == batches[f"resumed {name}"]
    before = [i for rank in RANKS for b in read(saved, rank, number, stop_step=step) for i in b]
    after = [i for told in elastic for b in told[f"resumed {name}"][0] for i in b]
    whole = [i for rank in RANKS for b in read(saved, rank, number) for i in b]
    assert sorted(whole) == sorted(before + after)
