"""Plans of bins on real ranks: each bin whole, on two ranks and, after a stop, on three."""

from __future__ import annotations

from typing import Any

import pytest

import indexplan as ip
from tests.support.bins import Bins
from tests.trainers.ranks import run_ranks

IMPORTED_BY_RANKS = ("torchdata.stateful_dataloader",)

ORDER = Bins(103)
PLAN = ip.Plan(ORDER, batch_size=3, sub_epochs=2)
KINDS = ("PlanLoader", "StatefulDataLoader")
STOP = 4  # steps of the first pass


def sizes(index: int) -> int:
    """How many tokens a sample has."""
    return index % 4 + 1


def stream(kind: str, state: dict[str, Any] | None) -> dict[str, Any]:
    """Read to the stop, or from a state to the end; return bins as they came, and the state."""
    import torch

    import indexplan_torch
    from indexplan_torch import PlanBatchSampler, PlanLoader

    texts = indexplan_torch.Bins([torch.full((sizes(index),), index) for index in range(103)])
    options: dict[str, Any] = {"collate_fn": list}
    if kind == "PlanLoader":
        loader: Any = PlanLoader(texts, PLAN, **options)
    else:
        from torchdata.stateful_dataloader import StatefulDataLoader

        loader = StatefulDataLoader(texts, batch_sampler=PlanBatchSampler(PLAN), **options)
    if state is not None:
        loader.load_state_dict(state)
    batches, saved = [], None
    for _ in range(1 if state is None else 2):
        for batch in loader:
            rows = [(row["input_ids"], row["seq_lens"]) for row in batch]
            batches.append(
                [[part[0].item() for part in ids.split(lens.tolist())] for ids, lens in rows]
            )
            if state is None and len(batches) == STOP:
                saved = loader.state_dict()
                break
    return {"batches": batches, "state": saved}


def every(states: dict[str, Any] | None) -> dict[str, Any]:
    """Read by all kinds of loaders, in one process."""
    import torch.distributed

    torch.distributed.init_process_group("gloo")
    seen = {kind: stream(kind, None if states is None else states[kind]) for kind in KINDS}
    torch.distributed.destroy_process_group()
    return seen


@pytest.fixture(scope="module")
def runs() -> tuple[list[Any], list[Any]]:
    """What two ranks read to the stop, and three from there."""
    before = run_ranks("tests.trainers.test_bins:every", 2, None)
    states = {kind: before[0][kind]["state"] for kind in KINDS}
    return before, run_ranks("tests.trainers.test_bins:every", 3, states)


@pytest.mark.parametrize("kind", KINDS)
def test_bins_are_whole_on_two_ranks_and_then_three(kind: str, runs: tuple[Any, Any]) -> None:
    """Batches are the plan's bins; together, each bin of the epoch came once."""
    before, after = runs
    two = PLAN.replace(world_size=2)
    three = PLAN.replace(world_size=3).resume(two.cursor(0, 0, step=STOP))
    read = []
    for rank, result in enumerate(before):
        expected = [
            [unit.tolist() for unit in batch.bins]
            for batch in two.batches(0, 0, rank=rank, stop_step=STOP, units=True)
        ]
        assert expected == result[kind]["batches"]
        read += [unit for batch in expected for unit in batch]
    for rank, result in enumerate(after):
        expected = [
            [unit.tolist() for unit in batch.bins]
            for sub_epoch in (0, 1)
            for batch in three.batches(0, sub_epoch, rank=rank, units=True)
        ]
        assert expected == result[kind]["batches"]
        read += [unit for batch in expected for unit in batch]
    assert sorted(list(unit) for unit in ORDER.row(0)) == sorted(read)
