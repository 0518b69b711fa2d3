"""Cures of bins in the adapters for torch, followed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

import indexplan as ip
from indexplan_torch import Bins, PlanBatchSampler, PlanLoader, join
from indexplan_torch.causal import join_causal
from tests.errors.catalogue.torch_bins import PLAN, WINDOWS

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
            "samples that are two rows",
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
