"""Every integer argument refuses text, bytes, booleans and floats; NumPy's integers are taken."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import indexplan as ip
from indexplan_torch import PlanBatchSampler, PlanLoader
from indexplan_torch.endless import PlanIterator

ORDER = ip.Shuffle(24)
PLAN = ip.Plan(ORDER, world_size=2, batch_size=2, sub_epochs=2)
OPEN = ip.Plan(ORDER, batch_size=2)
LENGTHS = [3, 5, 2, 8] * 6
AT: dict[str, Any] = {"epoch": 0, "sub_epoch": 1}
PLACE = {"epoch": 0, "sub_epoch": 0, "step": 0, "position": 0, "sub_epochs": 1}
ROW = {"epoch": 0, "starts": [0], "stops": [2]}
MEGATRON = {"micro_batch_size": 2, "consumed_samples": 0, "rank": 0, "world_size": 2}

# a call that is right, by keywords: each of its integers is replaced
RIGHT: dict[str, tuple[Any, dict[str, Any]]] = {
    "Plan": (ip.Plan, {"order": ORDER, "world_size": 2, "batch_size": 2, "sub_epochs": 1}),
    "Plan of all": (ip.Plan, {"order": ORDER, "global_batch_size": 2}),
    "Phase": (ip.Phase, {"at": 0, "size": 2}),
    "Cursor": (ip.Cursor, {**PLACE, "order": ORDER.to_dict()}),
    "Balance": (ip.Balance, {"lengths": LENGTHS, "linear": 1, "quadratic": 2}),
    "Sequential": (ip.Sequential, {"num_samples": 9}),
    "Shuffle": (ip.Shuffle, {"num_samples": 9, "seed": 1}),
    "BlockShuffle": (ip.BlockShuffle, {"num_samples": 9, "block_size": 2, "window": 2, "seed": 1}),
    "LocalShuffle": (ip.LocalShuffle, {"num_samples": 9, "window": 3, "seed": 1}),
    "Weighted": (ip.Weighted, {"weights": [1, 2], "epoch_size": 3, "seed": 1, "max_repeats": 3}),
    "ClassBalanced": (ip.ClassBalanced, {"labels": [0, 1], "epoch_size": 4, "seed": 1}),
    "ClassBatches": (
        ip.ClassBatches,
        {"labels": [0, 1] * 4, "classes": 2, "per_class": 2, "epoch_size": 4, "seed": 1},
    ),
    "Mixture": (ip.Mixture, {"sources": {"a": ORDER}, "weights": {"a": 1}, "seed": 1}),
    "Epochs": (ip.Epochs, {"order": ORDER, "epoch_size": 5}),
    "Repeat": (ip.Repeat, {"order": ORDER, "copies": 2, "span": 4}),
    "TokenWindows": (ip.TokenWindows, {"num_tokens": 99, "length": 9, "overlap": 1, "seed": 1}),
    "DocumentWindows": (
        ip.DocumentWindows,
        {"lengths": LENGTHS, "length": 9, "overlap": 1, "block_size": 4, "seed": 1},
    ),
    "Packed": (
        ip.Packed,
        {"lengths": LENGTHS, "max_length": 9, "max_samples": 3, "min_stratum": 1, "seed": 1},
    ),
    "LengthGrouped": (
        ip.LengthGrouped,
        {"lengths": LENGTHS, "batch_size": 2, "num_buckets": 2, "seed": 1},
    ),
    "TokenBudget": (
        ip.TokenBudget,
        {"lengths": LENGTHS, "max_tokens": 9, "max_samples": 3, "multiple_of": 1}
        | {"num_buckets": 2, "seed": 1},
    ),
    "Grouped": (ip.Grouped, {"groups": [0, 1] * 4, "batch_size": 2, "seed": 1}),
    "ShardShuffle": (
        ip.ShardShuffle,
        {"sizes": [8, 8, 8], "lanes": 2, "stripe": 2, "window": 2, "seed": 1},
    ),
    "Split": (ip.Split, {"num_samples": 24, "parts": {"a": 1, "b": 1}, "seed": 1}),
    "worker_seed": (ip.worker_seed, {"seed": 1, "epoch": 0, "rank": 0, "worker": 0}),
    "steps": (PLAN.steps, AT),
    "batch": (PLAN.batch, {**AT, "step": 0, "rank": 0}),
    "units": (PLAN.units, {**AT, "step": 0, "rank": 0}),
    "indices": (
        PLAN.indices,
        {**AT, "rank": 0, "start_step": 0, "stop_step": 1},
    ),
    "batches": (PLAN.batches, {**AT, "rank": 0, "start_step": 0, "stop_step": 1}),
    "batch_sizes": (PLAN.batch_sizes, {**AT, "rank": 0, "start_step": 0, "stop_step": 1}),
    "step_size": (PLAN.step_size, {**AT, "step": 0}),
    "phase": (PLAN.phase, {**AT, "step": 0}),
    "locate": (PLAN.locate, {"index": 3, "epoch": 0}),
    "locate_all": (PLAN.locate_all, {"index": 3, "epoch": 0}),
    "account": (PLAN.account, AT),
    "cursor": (PLAN.cursor, {**AT, "step": 0}),
    "cursor_at": (PLAN.cursor_at, {"place": 3}),
    "replace": (PLAN.replace, {"world_size": 2, "batch_size": 2, "sub_epochs": 2}),
    "take": (ORDER.take, {"epoch": 0}),
    "draws": (ip.draws, {"plan": OPEN.replace(order=ip.ClassBalanced([0, 1] * 12)), "epoch": 0}),
    "explain": (ip.explain, {"plan": PLAN, "index": 3}),
    "stream": (ip.stream, {"plan": PLAN, "rank": 0}),
    "PlanLoader": (
        PlanLoader,
        {"dataset": range(24), "plan": OPEN, "rank": 0, "world_size": 2, "again": 1},
    ),
    "PlanBatchSampler": (PlanBatchSampler, {"plan": OPEN, "rank": 0, "world_size": 2, "again": 1}),
    "PlanIterator": (PlanIterator, {"dataset": range(24), "order": ORDER, **MEGATRON}),
}
RIGHT["take"] = (ORDER.take, {"epoch": 0, "starts": 0})

CASES = [
    (name, argument)
    for name, (_, given) in RIGHT.items()
    for argument, value in given.items()
    if type(value) is int
]
# text for a schedule is taken for a batch size, but not for a number
REBUILT = ("Plan of all", "PlanBatchSampler")  # the latter takes what trainers pass
NOT_WHOLE: list[Any] = ["1", "32", " 2 ", b"1", bytearray(b"2"), True, np.True_, 1.0, 2.5, 1e3]
NOT_WHOLE += [np.float64(2), float("nan"), 1j, "one", [None], object()]


@pytest.mark.parametrize("name", RIGHT)
def test_the_calls_are_right(name: str) -> None:
    """As they are, and with NumPy's integers."""
    call, given = RIGHT[name]
    call(**given)
    call(**{key: np.int64(each) if type(each) is int else each for key, each in given.items()})


@pytest.mark.parametrize(("name", "argument"), CASES)
def test_what_is_no_whole_number_is_refused(name: str, argument: str) -> None:
    """By the name of the argument, with what was given."""
    call, given = RIGHT[name]
    for value in NOT_WHOLE:
        with pytest.raises(ip.IndexPlanError):
            call(**{**given, argument: value})


def test_no_integer_is_left_out() -> None:
    """Each parameter of the calls that is annotated as an integer is among the cases."""
    for name, (call, given) in RIGHT.items():
        for parameter in inspect.signature(call).parameters.values():
            if parameter.annotation in ("int", "int | None") and name not in REBUILT:
                assert parameter.name in given, (name, parameter.name)
