"""torchdata's StatefulDataLoader over a PlanBatchSampler: its state is the plan's, on any ranks."""

import json
from typing import Any

import pytest

import indexplan as ip
from tests.trainers.ranks import run_ranks

IMPORTED_BY_RANKS = ("torchdata.stateful_dataloader",)

PLAN = ip.Plan(ip.Shuffle(103, seed=5), batch_size=5, sub_epochs=2)
KINDS = {
    "none": {"num_workers": 0},
    "two": {"num_workers": 2},
    "persistent": {"num_workers": 2, "persistent_workers": True},
}


def sampler_state(state: dict[str, Any]) -> dict[str, Any]:
    """The part of a StatefulDataLoader's state that is our iterator's."""
    main = state["_snapshot"]["_main_snapshot"] if "_snapshot" in state else state
    found: dict[str, Any] = main["_sampler_iter_state"]
    return found


def fits(kind: str) -> dict[str, Any]:
    """Iterate three passes, keep states, and go on from each of them in loaders of their own."""
    import torch
    from torchdata.stateful_dataloader import StatefulDataLoader

    from indexplan_torch import PlanBatchSampler

    dataset = torch.arange(103.0)

    def fresh() -> Any:
        sampler = PlanBatchSampler(PLAN)
        return StatefulDataLoader(dataset, batch_sampler=sampler, **KINDS[kind])

    def one_pass(loader: Any) -> list[list[int]]:
        return [batch.int().tolist() for batch in loader]

    loader = fresh()
    states = {}
    fit = []
    for number in range(3):
        for step, batch in enumerate(loader):
            fit.append(batch.int().tolist())
            if (number, step) in {(0, 0), (1, 3)}:
                states[f"{number}, {step}"] = loader.state_dict()
        states[f"{number}, end"] = loader.state_dict()
    seen: dict[str, Any] = {"fit": fit, "length": len(loader), "resumed": {}, "again": {}}
    states = json.loads(json.dumps(states))  # as a checkpoint would keep them
    for name, state in states.items():
        loader = fresh()
        loader.load_state_dict(state)
        seen["resumed"][name] = one_pass(loader) + one_pass(loader)
        loader.load_state_dict(state)  # into a loader that has already run
        seen["again"][name] = one_pass(loader)
    loader = fresh()
    seen["set"] = []
    for number in (2, 3, 0):
        loader.batch_sampler.set_epoch(number)
        seen["set"] += one_pass(loader)
    seen["states"] = states
    return seen


def every() -> dict[str, Any]:
    """All kinds of workers, in one process."""
    import torch.distributed

    torch.distributed.init_process_group("gloo")
    seen = {kind: fits(kind) for kind in KINDS}
    torch.distributed.destroy_process_group()
    return seen


def elastic(states: dict[str, Any]) -> dict[str, Any]:
    """Go on from states of another world size, loaded into the sampler or into the loader."""
    import torch
    import torch.distributed
    from torchdata.stateful_dataloader import StatefulDataLoader

    from indexplan_torch import PlanBatchSampler

    torch.distributed.init_process_group("gloo")
    seen = {}
    for kind, state in states.items():
        for way in ("sampler", "loader"):
            sampler = PlanBatchSampler(PLAN)
            loader: Any = StatefulDataLoader(
                torch.arange(103.0), batch_sampler=sampler, **KINDS[kind]
            )
            if way == "sampler":
                sampler.load_state_dict(sampler_state(state))
            else:
                loader.load_state_dict(state)
            seen[f"{kind}, {way}"] = [b.int().tolist() for _ in range(2) for b in loader]
    torch.distributed.destroy_process_group()
    return seen


def batches(plan: ip.Plan, passes: Any, rank: int) -> list[list[int]]:
    """The batches that a rank has to receive in some passes, numbered through all sub-epochs."""
    numbers = [divmod(number, PLAN.sub_epochs) for number in passes]
    return [b.tolist() for number in numbers for b in plan.batches(*number, rank=rank)]


@pytest.fixture(scope="module")
def ranks() -> list[Any]:
    """What two ranks saw of it all."""
    return run_ranks("tests.trainers.test_torchdata:every", 2)


@pytest.mark.parametrize("kind", KINDS)
def test_states_resume_exactly(ranks: list[Any], kind: str) -> None:
    """States of mid-pass and of a pass's end go on with what the loop has not received."""
    plan = PLAN.replace(world_size=2)
    ends = {
        "0, 0": (0, plan.cursor(0, 0, step=1)),
        "1, 3": (1, plan.cursor(0, 1, step=4)),
        **{
            f"{number}, end": (number + 1, plan.cursor(*divmod(number + 1, 2), step=0))
            for number in range(3)
        },
    }
    for rank, result in enumerate(ranks):
        seen = result[kind]
        assert batches(plan, range(3), rank) == seen["fit"]
        assert plan.steps(1, 0).stop == seen["length"]
        assert batches(plan, [2, 3, 0], rank) == seen["set"]
        for name, (number, cursor) in ends.items():
            resumed = plan.resume(cursor)
            assert cursor.to_dict() == sampler_state(seen["states"][name])["cursor"]
            assert batches(resumed, [number, number + 1], rank) == seen["resumed"][name]
            assert batches(resumed, [number], rank) == seen["again"][name]


def test_states_go_on_under_other_ranks(ranks: list[Any]) -> None:
    """A state of two ranks, taken in mid-pass, goes on under three: each sample exactly once."""
    states = {kind: ranks[0][kind]["states"]["1, 3"] for kind in KINDS}
    results = run_ranks("tests.trainers.test_torchdata:elastic", 3, states)
    two = PLAN.replace(world_size=2)
    resumed = PLAN.replace(world_size=3).resume(two.cursor(0, 1, step=4))
    before = [index for rank in range(2) for index in two.indices(0, 0, rank=rank).tolist()]
    before += [i for r in range(2) for i in two.indices(0, 1, rank=r, stop_step=4).tolist()]
    after = [index for rank in range(3) for index in resumed.indices(0, 1, rank=rank).tolist()]
    assert list(range(103)) == sorted(before + after)
    for rank, seen in enumerate(results):
        for kind in KINDS:
            for way in ("sampler", "loader"):
                assert batches(resumed, [1, 2], rank) == seen[f"{kind}, {way}"]
