"""Errors of bins in the adapters for torch."""

from __future__ import annotations

from typing import Any

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
