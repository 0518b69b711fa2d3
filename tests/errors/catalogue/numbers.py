"""Errors of integers, flags and choices: each such argument of a right call, given a wrong value.

Nobody writes these errors: a call that is added to RIGHT has one for each such argument.
"""

from __future__ import annotations

from typing import Any

import indexplan as ip
from indexplan.orders import Traits
from indexplan_torch import PlanBatchSampler, PlanLoader
from indexplan_torch.endless import PlanIterator

ORDER = ip.Shuffle(24)
PLAN = ip.Plan(ORDER, world_size=2, batch_size=2, sub_epochs=2)
OPEN = ip.Plan(ORDER, batch_size=2)
MIXED = ip.Mixture({"a": ORDER}, {"a": 1}, epoch_size=9)
LENGTHS = [3, 5, 2, 8] * 6
AT: dict[str, Any] = {"epoch": 0, "sub_epoch": 1}
PLACE = {"epoch": 0, "sub_epoch": 0, "step": 0, "position": 0, "sub_epochs": 1}
MEGATRON = {"micro_batch_size": 2, "consumed_samples": 0, "rank": 0, "world_size": 2}

# a call that is right, by keywords: its integers, flags and choices are replaced
RIGHT: dict[str, tuple[Any, dict[str, Any]]] = {
    "Plan": (
        ip.Plan,
        {"order": ORDER, "world_size": 2, "batch_size": 2, "sub_epochs": 1} | {"remainder": "drop"},
    ),
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
        {"labels": [0, 1] * 4, "classes": 2, "per_class": 2, "epoch_size": 4, "seed": 1}
        | {"short": "repeat"},
    ),
    "Distinct": (ip.Distinct, {"labels": [0, 1, 1, 2], "batch_size": 2, "seed": 1}),
    "Batched": (ip.Batched, {"order": ORDER, "size": 1}),
    "Mixture": (ip.Mixture, {"sources": {"a": ORDER}, "weights": {"a": 1}, "seed": 1}),
    "Epochs": (ip.Epochs, {"order": ORDER, "epoch_size": 5}),
    "Repeat": (ip.Repeat, {"order": ORDER, "copies": 2, "span": 4}),
    "TokenWindows": (
        ip.TokenWindows,
        {"num_tokens": 99, "length": 9, "overlap": 1, "seed": 1} | {"shift": True},
    ),
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
        {"sizes": [8, 8, 8], "lanes": 2, "stripe": 2, "window": 2, "seed": 1}
        | {"sticky": False, "grid": "epoch"},
    ),
    "Split": (ip.Split, {"num_samples": 24, "parts": {"a": 1, "b": 1}, "seed": 1}),
    "Without": (ip.Without, {"order": ORDER, "samples": [1], "cut": "piece"}),
    "Column": (ip.Column, {"values": [1, 2], "kind": "integers"}),
    "Traits": (Traits, {"deals_bins": True, "constant_num_units": True, "reads": "any"}),
    "continues": (ORDER.continues, {"saved": ORDER.to_dict(), "epoch": 0, "position": 0}),
    "group_shares": (MIXED.group_shares, {"epoch": 0, "start": 0, "stop": 3}),
    "with_phase": (
        MIXED.with_phase,
        {"place": 3, "weights": {"a": 1}, "planned": "drop"},
    ),
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
    "locate": (PLAN.locate, {"index": 3, "epoch": 0}),
    "locate_all": (PLAN.locate_all, {"index": 3, "epoch": 0}),
    "account": (PLAN.account, AT),
    "cursor": (PLAN.cursor, {**AT, "step": 0}),
    "cursor_at": (PLAN.cursor_at, {"place": 3}),
    "replace": (PLAN.replace, {"world_size": 2, "batch_size": 2, "sub_epochs": 2}),
    "take": (ORDER.take, {"epoch": 0, "starts": 0}),
    "draws": (ip.draws, {"plan": OPEN.replace(order=ip.ClassBalanced([0, 1] * 12)), "epoch": 0}),
    "explain": (ip.explain, {"plan": PLAN, "index": 3}),
    "stream": (ip.stream, {"plan": PLAN, "rank": 0}),
    "PlanLoader": (
        PlanLoader,
        {"dataset": range(24), "plan": OPEN, "rank": 0, "world_size": 2, "again": 1}
        | dict.fromkeys(("nested", "as_array", "partial", "compare", "evaluation"), False),
    ),
    "PlanBatchSampler": (PlanBatchSampler, {"plan": OPEN, "rank": 0, "world_size": 2, "again": 1}),
    "PlanIterator": (PlanIterator, {"dataset": range(24), "order": ORDER, **MEGATRON}),
}


def wrong(name: str, argument: str) -> None:
    """Call with what is neither a number, a flag nor a choice, where one of them belongs."""
    call, given = RIGHT[name]
    call(**{**given, argument: "x" if isinstance(given[argument], int | str) else None})


LINES = [
    f'wrong("{name}", "{argument}")'
    for name, (_, given) in RIGHT.items()
    for argument, value in given.items()
    if type(value) in (int, bool, str)
]
