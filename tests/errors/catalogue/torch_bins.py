"""Errors of bins in the adapters for torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

import indexplan as ip
from indexplan_torch import (
    Bins,
    Piece,
    PlanBatchSampler,
    PlanLoader,
    join,
)
from indexplan_torch.causal import join_causal
from tests.errors.catalogue.made import Case
from tests.support import bins

PLAN = ip.Plan(bins.Bins(10), batch_size=2)
NO_FUNCTION: Any = "tuple"
WINDOWS = ip.Plan(ip.DocumentWindows([5, 3, 9, 4], length=10), world_size=1, batch_size=1)

CASES: list[Case] = [
    ("keep_bins that is a word", lambda: PlanBatchSampler(PLAN, keep_bins="no")),
    (
        "Bins of single samples",
        lambda: PlanLoader(Bins(range(10)), ip.Plan(ip.Sequential(10), batch_size=2)),
    ),
    ("a dataset that takes no bin", lambda: list(PlanLoader(list(range(10)), PLAN))),
    ("Bins of other samples", lambda: PlanLoader(Bins(range(9)), PLAN)),
    ("a join that is none", lambda: Bins(range(10), join=NO_FUNCTION)),
    ("a bin that is an index", lambda: Bins(range(10))[3]),
    ("no samples to join", lambda: join([])),
    ("samples of other fields", lambda: join([{"input_ids": [1]}, {"labels": [1]}])),
    ("labels that are too short", lambda: join([{"labels": [1], "input_ids": [1, 2]}])),
    ("samples without tokens", lambda: join([{"label": 1}])),
    ("a field of text", lambda: join([{"text": "word"}])),
    ("samples of a causal model without tokens", lambda: join_causal([{"tokens": [1, 2]}])),
    (
        "samples of a causal model with padding",
        lambda: join_causal([{"input_ids": [1, 2], "attention_mask": [0, 1]}]),
    ),
    ("samples that are tuples", lambda: join([([1, 2], [2, 3])])),
    (
        "an item that is a list",
        lambda: list(PlanBatchSampler(PLAN, item=lambda index, _: [index, 128])),
    ),
    ("pieces without their bins", lambda: PlanBatchSampler(WINDOWS, keep_bins=False)),
    ("a dataset that takes no pieces", lambda: list(PlanLoader(range(4), WINDOWS))),
    (
        "a document that is shorter than was said",
        lambda: list(PlanLoader(Bins([[1], [2], [3] * 9, [4]]), WINDOWS)),
    ),
    (
        "a document with labels that are too short",
        lambda: Bins([{"a": [1, 2], "b": [1]}])[[Piece(0, 0, 1)]],
    ),
    ("a document of two rows", lambda: Bins([([1, 2], [1, 2])])[[Piece(0, 0, 1)]]),
]


# the cures, followed

SAMPLES = [{"input_ids": torch.tensor(ids)} for ids in ([1, 2], [3], [4, 5, 6])]
ROWS = [torch.ones(1)] * 10
DOCUMENTS = [[1] * 5, [2] * 3, [3] * 9, [4] * 4]


def every(*loaders: Any) -> None:
    """Read all of some loaders."""
    for each in loaders:
        assert list(each)


def joined() -> None:
    """Join dicts of tensors, or pass a join."""
    assert join(SAMPLES)
    plan = ip.Plan(ip.Packed([2, 1, 3], max_length=4), batch_size=1)
    every(PlanLoader(Bins(SAMPLES, join=list), plan))  # type: ignore[arg-type]


def cut(samples: Any) -> None:
    """Pass the order the lengths that samples have."""
    lengths = [len(each["a"] if isinstance(each, dict) else each) for each in samples]
    order = ip.DocumentWindows(lengths, length=1)
    every(PlanLoader(Bins(samples), ip.Plan(order, batch_size=1)))


CURED: dict[str, Callable[[], Any]] = {
    "keep_bins that is a word": lambda: [
        every(PlanBatchSampler(PLAN, keep_bins=each)) for each in (True, False)
    ],
    "Bins of single samples": lambda: every(
        PlanLoader(range(10), ip.Plan(ip.Sequential(10), batch_size=2))
    ),
    "a dataset that takes no bin": lambda: every(
        PlanLoader(Bins(ROWS, join=list), PLAN, collate_fn=list),  # type: ignore[arg-type]
        PlanLoader(list(range(10)), PLAN.replace(batch_size=1), keep_bins=False),
    ),
    "a join that is none": lambda: every(PlanLoader(Bins(ROWS), PLAN, collate_fn=list)),  # type: ignore[arg-type]
    "a bin that is an index": lambda: every(
        PlanLoader(Bins(ROWS, join=list), PLAN, collate_fn=list)
    ),  # type: ignore[arg-type]
    **dict.fromkeys(
        (
            "no samples to join",
            "samples of other fields",
            "labels that are too short",
            "samples without tokens",
            "a field of text",
            "samples that are tuples",
        ),
        joined,
    ),
    "samples of a causal model without tokens": lambda: join_causal(
        [{"input_ids": [1, 2], "labels": [1, 2]}]
    ),
    "samples of a causal model with padding": lambda: join_causal(
        [{"input_ids": [1, 2], "attention_mask": [1, 1]}]
    ),
    "an item that is a list": lambda: every(
        PlanBatchSampler(PLAN, item=lambda index, _: (index, 128))
    ),
    "pieces without their bins": lambda: every(PlanBatchSampler(WINDOWS)),
    "a dataset that takes no pieces": lambda: every(PlanLoader(Bins(DOCUMENTS), WINDOWS)),  # type: ignore[arg-type]
    "a document that is shorter than was said": lambda: cut([[1], [2], [3] * 9, [4]]),
    "a document of two rows": lambda: cut([{"a": torch.tensor([1, 2]), "b": torch.tensor([1, 2])}]),
    "Bins of other samples": lambda: every(
        PlanLoader(Bins(ROWS[:9]), ip.Plan(ip.Packed([1] * 9, max_length=4), batch_size=1))  # type: ignore[arg-type]
    ),
    "a document with labels that are too short": lambda: cut([{"a": [1, 2], "b": [1, 1]}]),
}
