"""Errors of bins in the adapters for torch."""

from __future__ import annotations

from typing import Any

import torch

import indexplan as ip
from indexplan_torch import (
    Bins,
    GlobalPlanBatchSampler,
    Piece,
    PlanBatchSampler,
    PlanLoader,
    join,
    join_causal,
    varlen,
)
from tests.errors.catalogue.made import Case
from tests.support import bins

PLAN = ip.Plan(bins.Bins(10), batch_size=2)
OWN = "return dicts of tensors with an entry for each token, or pass a join of your own"
NO_FUNCTION: Any = "tuple"
WINDOWS = ip.Plan(ip.DocumentWindows([5, 3, 9, 4], length=10), world_size=1, batch_size=1)
CUT = (
    "a sample that is cut must have fields of one length, at least as long as the plan's order was "
    "told; got"
)
TOLD = "pass the order the lengths of this dataset's samples"

CASES: list[Case] = [
    (
        "keep_bins that is a word",
        lambda: PlanBatchSampler(PLAN, keep_bins="no"),  # type: ignore[arg-type]
        "keep_bins must be True or False; got 'no'; pass one of the two",
    ),
    (
        "Bins of single samples",
        lambda: PlanLoader(Bins(range(10)), ip.Plan(ip.Sequential(10), batch_size=2)),
        "a dataset of Bins needs a plan whose order deals bins, and keep_bins=True; got "
        "sequential-v1, with keep_bins=True; leave keep_bins out, or pass the dataset without "
        "Bins around it",
    ),
    (
        "a dataset that takes no bin",
        lambda: list(PlanLoader(list(range(10)), PLAN)),
        "dataset must take a bin, a list of indices, as the plan's order deals bins; got 'list "
        "indices must be integers or slices, not list' of list; wrap it in indexplan_torch.Bins, "
        "or pass keep_bins=False where a bin is a batch by itself",
    ),
    (
        "Bins of other samples",
        lambda: PlanLoader(Bins(range(9)), PLAN),
        "dataset must hold 10 samples, as many as the plan's order; got 9; make the plan with "
        "an order of 9 samples",
    ),
    (
        "a join that is none",
        lambda: Bins(range(10), join=NO_FUNCTION),
        "join must be a function of a list of samples; got 'tuple'; leave it out to concatenate "
        "their fields",
    ),
    (
        "a bin that is an index",
        lambda: Bins(range(10))[3],
        "a bin must be a list of what the dataset is asked for; got 3; read Bins through "
        "PlanLoader, with a plan whose order deals bins",
    ),
    (
        "no samples to join",
        lambda: join([]),
        f"samples must be a list of at least one, with fields, to be joined; got []; {OWN}",
    ),
    (
        "samples of other fields",
        lambda: join([{"input_ids": [1]}, {"labels": [1]}]),
        f"samples of a bin must have the same fields; got ['input_ids'] and ['labels']; {OWN}",
    ),
    (
        "labels that are too short",
        lambda: join([{"labels": [1], "input_ids": [1, 2]}]),
        "each field of a sample must be a number, or have as many entries as its tokens; got "
        f"{{'labels': 1, 'input_ids': 2}}; {OWN}",
    ),
    (
        "samples without tokens",
        lambda: join([{"label": 1}]),
        "each field of a sample must be a number, or have as many entries as its tokens; got "
        f"numbers only; {OWN}",
    ),
    (
        "a field of text",
        lambda: join([{"text": "word"}]),
        f"the field 'text' must hold numbers, to be joined; got 'word'; {OWN}",
    ),
    (
        "samples of a causal model without tokens",
        lambda: join_causal([{"tokens": [1, 2]}]),
        "samples must have input_ids, a number for each token, to be joined for a causal model; "
        "got ['tokens']; return dicts of input_ids and labels",
    ),
    (
        "samples of a causal model with padding",
        lambda: join_causal([{"input_ids": [1, 2], "attention_mask": [0, 1]}]),
        "samples must have no padding, as they are joined; got an attention_mask with 1 zero in "
        "2; tokenize with padding=False",
    ),
    (
        "a boolean among lengths",
        lambda: varlen([True, 2]),
        "lengths must be integers from 0 in one dimension, which add up to less than 2**31; got "
        "[True, 2]; pass how many tokens each sample has, such as lengths[batch]",
    ),
    (
        "lengths in two dimensions",
        lambda: varlen(torch.ones(2, 2, dtype=torch.int64)),
        "lengths must be integers from 0 in one dimension, which add up to less than 2**31; got "
        "tensor([[1, 1], [1, 1]]); pass how many tokens each sample has, such as lengths[batch]",
    ),
    (
        "samples that are tuples",
        lambda: join([([1, 2], [2, 3])]),
        "a sample must be a dict of fields, or a row of tokens, to be joined; got ([1, 2], "
        f"[2, 3]); {OWN}",
    ),
    (
        "samples that are two rows",
        lambda: join([[[1, 2], [2, 3]]]),
        "a sample must be a dict of fields, or a row of tokens, to be joined; got [[1, 2], "
        f"[2, 3]]; {OWN}",
    ),
    (
        "an item that is a list",
        lambda: list(PlanBatchSampler(PLAN, item=lambda index, _: [index, 128])),
        "item must return something other than a list, as lists are bins here; got [0, 128]; "
        "return a tuple",
    ),
    (
        "padded bins of all ranks",
        lambda: GlobalPlanBatchSampler(PLAN.replace(remainder="pad"), world_size=2).batch_size,
        "plan must have one batch size that all ranks share, of samples that are neither nested "
        "nor in bins, for GlobalPlanBatchSampler with remainder='pad', as Accelerate counts "
        "batches and padding by it; got other batches; use "
        "indexplan_torch.accelerate.prepare(accelerator, PlanLoader(dataset, plan))",
    ),
    (
        "pieces without their bins",
        lambda: PlanBatchSampler(WINDOWS, keep_bins=False),
        "keep_bins must be True for an order that cuts samples, whose pieces are of no use alone; "
        "got False; leave it out",
    ),
    (
        "a dataset that takes no pieces",
        lambda: list(PlanLoader(range(4), WINDOWS)),
        "dataset must take a bin, a list of Piece(sample, start, stop), as the plan's order deals "
        "bins; got 'range indices must be integers or slices, not list' of range; wrap it in "
        "indexplan_torch.Bins",
    ),
    (
        "a document that is shorter than was said",
        lambda: list(PlanLoader(Bins([[1], [2], [3] * 9, [4]]), WINDOWS)),
        f"{CUT} {{'input_ids': 1}} entries, to be cut at 5; {TOLD}",
    ),
    (
        "a document with labels that are too short",
        lambda: Bins([{"a": [1, 2], "b": [1]}])[[Piece(0, 0, 1)]],
        f"{CUT} {{'a': 2, 'b': 1}} entries, to be cut at 1; {TOLD}",
    ),
    (
        "a document of two rows",
        lambda: Bins([([1, 2], [1, 2])])[[Piece(0, 0, 1)]],
        f"{CUT} ([1, 2], [1, 2]) entries, to be cut at 1; {TOLD}",
    ),
]
