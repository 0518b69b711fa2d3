"""Bins reach the dataset whole: in every form, by every loader, and joined by `Bins`."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from torch.utils.data import Dataset, default_collate

import indexplan as ip
import indexplan_torch
from indexplan_torch import (
    PlanBatchSampler,
    PlanLoader,
    join,
)
from indexplan_torch.causal import join_causal
from tests.adapters.small import ME, Identity, as_they_are, refused
from tests.support.bins import Bins, bin_orders
from tests.support.examples import examples
from tests.support.planned import phase_at
from tests.support.strategies import balanced_plans, plans, sub_epochs_of

pytestmark = pytest.mark.filterwarnings("ignore:.*set_vital.*")  # of torch, about torchdata

PLAN = ip.Plan(Bins(103), world_size=2, batch_size=3, sub_epochs=2)


class Texts(Dataset[Any]):
    """Sample i has i % 5 + 1 tokens, all of them i."""

    def __init__(self, num_samples: int = 103) -> None:
        self.num_samples = num_samples

    def __len__(self) -> int:
        return self.num_samples

    def __getitem__(self, index: int) -> Any:
        tokens = torch.full((index % 5 + 1,), index)
        return {"input_ids": tokens, "labels": tokens + 1, "number": index}


class Broken(Identity):
    """A dataset of bins with a mistake of its own."""

    def __getitem__(self, asked: Any) -> Any:
        return len(self.num_samples)  # type: ignore[arg-type]  # the mistake


class Together(Identity):
    """A dataset that is asked for several samples at once."""

    def __getitem__(self, asked: Any) -> Any:
        raise AssertionError(asked)

    def __getitems__(self, asked: Any) -> list[Any]:
        return [(index, len(asked)) for index in asked]


def of_plan(plan: ip.Plan, number: int, rank: int = 1) -> list[list[list[int]]]:
    """Return a rank's batches of one pass, each cut into its bins by the offsets."""
    where = divmod(number, plan.sub_epochs)
    found = []
    for step in plan.steps(*where):
        batch = plan.batch(*where, step=step, rank=rank).tolist()
        offsets = plan.units(*where, step=step, rank=rank).offsets.tolist()
        found.append([batch[start:stop] for start, stop in pairwise(offsets)])
    return found


def test_an_example() -> None:
    """To read: rank 1's first batch is three bins of 1, 2 and 3 samples."""

    def first(**form: Any) -> Any:
        return next(iter(PlanBatchSampler(PLAN, **ME, **form)))

    assert [[6], [7, 8], [9, 10, 11]] == first()
    assert [[[6], [7, 8], [9, 10, 11]]] == first(nested=True)
    assert [6, 7, 8, 9, 10, 11] == first(keep_bins=False)
    assert [(6,), (7,), (8,)] == first(keep_bins=False, item=lambda index, _: (index,))[:3]


def test_trainers_that_build_samplers_anew() -> None:
    """As Lightning does: bins stay whole."""
    for options in ({}, {"keep_bins": False}):
        sampler = PlanBatchSampler(PLAN, **ME, **options)
        expected = list(PlanBatchSampler(PLAN, **ME, **options))
        anew = PlanBatchSampler(sampler.sampler, batch_size=sampler.batch_size, drop_last=False)
        assert expected == list(anew)


@given(plans(bin_orders()) | balanced_plans(bin_orders()))
@examples(40)
def test_every_form_keeps_the_cuts(plan: ip.Plan) -> None:
    """Of any plan, resumed or balanced: lists, arrays, items, inner batches and views agree."""
    assert plan.world_size is not None
    ranks = {"rank": plan.world_size - 1, "world_size": plan.world_size}
    some = {**ranks, "partial": True}  # a later pass than that of a resume is read too
    forms: dict[str, Any] = {
        "lists": {},
        "arrays": {"as_array": True},
        "items": {"item": lambda index, about: (index, about.phase.num_units)},
        "nested": {"nested": True},
    }
    for epoch, sub_epoch in sub_epochs_of(plan)[:3]:
        number = epoch * plan.sub_epochs + sub_epoch
        expected = of_plan(plan, number, ranks["rank"])
        if not plan.account(epoch, sub_epoch).min_batch_size:
            continue  # a pass that loaders refuse, or an empty one
        seen = {}
        for name, form in forms.items():
            sampler = PlanBatchSampler(plan, **some, **form)
            sampler.set_epoch(number)
            seen[name] = list(sampler)
        assert expected == seen["lists"]
        assert expected == [[unit.tolist() for unit in batch] for batch in seen["arrays"]]
        assert {np.dtype(np.int64)} == {u.dtype for batch in seen["arrays"] for u in batch}
        steps = plan.steps(epoch, sub_epoch)
        phases = [phase_at(plan, epoch, sub_epoch, step) for step in steps]
        assert [
            [[(index, phase.num_units) for index in unit] for unit in batch]
            for batch, phase in zip(expected, phases, strict=True)
        ] == seen["items"]
        for batch, phase, nested in zip(expected, phases, seen["nested"], strict=True):
            inner = nested
            for count in (phase.inner_counts or (1,))[:-1]:
                assert count == len(inner)
                inner = [part for each in inner for part in each]
            assert batch == [unit for each in inner for unit in each]
        view = PlanBatchSampler(plan, **ranks).sampler
        view.set_epoch(number)
        assert [unit for batch in expected for unit in batch] == list(view)
        assert len(view) == sum(map(len, expected))


def test_bins_join_what_they_hold() -> None:
    """A bin is one row: fields concatenated, with what attention is told of its samples."""
    loader = PlanLoader(indexplan_torch.Bins(Texts()), PLAN, **ME, collate_fn=as_they_are)
    for bins, batch in zip(of_plan(PLAN, 0), loader, strict=True):
        assert len(bins) == len(batch)
        for unit, row in zip(bins, batch, strict=True):
            sizes = [index % 5 + 1 for index in unit]
            tokens = [index for index in unit for _ in range(index % 5 + 1)]
            assert ["input_ids", "labels", "number", "position_ids", "seq_lens"] == list(row)
            assert tokens == row["input_ids"].tolist()
            assert [token + 1 for token in tokens] == row["labels"].tolist()
            assert unit == row["number"].tolist()
            assert [i for size in sizes for i in range(size)] == row["position_ids"].tolist()
            assert sizes == row["seq_lens"].tolist()


def test_a_row_of_a_whole_batch() -> None:
    """`join` as a loader's collate function makes one row of the bins of a batch."""
    rows = list(PlanLoader(indexplan_torch.Bins(Texts()), PLAN, **ME, collate_fn=join))
    for bins, row in zip(of_plan(PLAN, 0), rows, strict=True):
        samples = [index for unit in bins for index in unit]
        assert join([Texts()[index] for index in samples]).keys() == row.keys()
        for name, field in join([Texts()[index] for index in samples]).items():
            assert torch.equal(field, row[name])
        for index, part in zip(
            samples, row["input_ids"].split(row["seq_lens"].tolist()), strict=True
        ):
            assert {index} == set(part.tolist())


def test_bins_in_other_forms() -> None:
    """Inner batches are lists of joined bins; items, arrays and `__getitems__` work inside bins."""
    bins = indexplan_torch.Bins(Identity(), join=tuple)
    plan = PLAN.replace(batch_size=(2, 2))
    options: dict[str, Any] = {**ME, "collate_fn": as_they_are}
    first = next(iter(PlanLoader(bins, plan, nested=True, **options)))
    assert [[(7, 8), (9, 10, 11)], [(12,)]] == first
    first = next(iter(PlanLoader(bins, plan, as_array=True, **options)))
    assert [(7, 8), (9, 10, 11), (12,)] == first
    item = lambda index, about: (index, about.phase.num_units)  # noqa: E731
    first = next(iter(PlanLoader(bins, plan, item=item, **options)))
    assert [((7, 4), (8, 4)), ((9, 4), (10, 4), (11, 4))] == first[:2]
    together = indexplan_torch.Bins(Together(), join=list)
    first = next(iter(PlanLoader(together, plan, **options)))
    assert [[(7, 2), (8, 2)], [(9, 3), (10, 3), (11, 3)]] == first[:2]


def test_a_bin_that_is_a_batch() -> None:
    """P x K batches for an ordinary dataset, and torch's own collation."""
    labels = np.arange(60) % 6
    order = ip.ClassBatches(labels, classes=3, per_class=2, seed=1)
    plan = ip.Plan(order, batch_size=1)
    options: dict[str, Any] = {"rank": 0, "world_size": 1, "keep_bins": False}
    batches = list(PlanLoader(torch.from_numpy(labels), plan, **options))
    assert (6,) == batches[0].shape
    expected = [labels[batch].tolist() for batch in plan.replace(world_size=1).batches(0, rank=0)]
    assert expected == [batch.tolist() for batch in batches]
    stacked = indexplan_torch.Bins(torch.from_numpy(labels), default_collate)
    assert expected == [b.tolist() for (b,) in PlanLoader(stacked, plan, rank=0, world_size=1)]


@pytest.mark.parametrize("num_workers", [0, 2])
def test_groups_of_the_samples_in_bins(num_workers: int) -> None:
    """`loader.groups` has an entry for each sample, bin after bin, as seq_lens have."""
    sources = {"texts": Bins(20), "chats": ip.Shuffle(9)}
    order = ip.Mixture(sources, {"texts": 1, "chats": 1})
    plan = ip.Plan(order, world_size=2, batch_size=4)
    bins = indexplan_torch.Bins(Texts(29))
    loader = PlanLoader(bins, plan, **ME, num_workers=num_workers, collate_fn=join)
    for row in loader:
        assert (row["number"] >= 20).int().tolist() == loader.groups.tolist()
        assert len(row["seq_lens"]) == len(loader.groups)


def test_fields_are_joined_as_they_come() -> None:
    """Arrays of maps, lists, tensors of two dimensions, and positions that samples bring along."""
    fixed = np.arange(3, dtype=np.int32)
    fixed.flags.writeable = False
    row = join([{"a": fixed, "b": [0.5, 1, 2], "c": torch.ones(3, 2)}] * 2)
    assert (torch.int32, torch.float32) == (row["a"].dtype, row["b"].dtype)
    assert ([0, 1, 2, 0, 1, 2], (6, 2)) == (row["a"].tolist(), tuple(row["c"].shape))
    own = {"position_ids": [5, 6], "input_ids": [1, 2]}
    assert [5, 6, 5, 6] == join([own, own])["position_ids"].tolist()
    assert [2, 2] == join([own, own])["seq_lens"].tolist()
    again = join([join([own, own]), join([own])])
    assert ([2, 2, 2], [5, 6] * 3) == (again["seq_lens"].tolist(), again["position_ids"].tolist())


def test_samples_without_tokens_do_not_change_others() -> None:
    """An empty list has no type: token numbers beside it stay integers, whatever their size."""
    row = join([{"input_ids": [], "labels": []}, {"input_ids": [2**25 + 1], "labels": [True]}])
    assert ([2**25 + 1], torch.int64) == (row["input_ids"].tolist(), row["input_ids"].dtype)
    assert torch.bool == row["labels"].dtype
    assert [0, 1] == row["seq_lens"].tolist()
    assert [0] == join([[]])["seq_lens"].tolist()


def test_inner_batches_without_bins() -> None:
    """Steps that are not full have inner batches of no bin, which stay empty lists."""
    plan = ip.Plan(Bins(7), world_size=1, batch_size=(5, 1))
    loader = PlanLoader(
        indexplan_torch.Bins(Identity(7), join=tuple), plan, nested=True, collate_fn=as_they_are
    )
    (batch,) = list(loader)
    assert [[(0,)], [(1, 2)], [(3, 4, 5)], [(6,)], []] == batch


@pytest.mark.parametrize("num_workers", [0, 1])
@pytest.mark.parametrize(
    ("dataset", "kind", "said"),
    [
        (Broken(), TypeError, r"object of type 'int' has no len\(\)"),
        (range(103), ip.IndexPlanError, "got 'range indices must be integers or slices, not list'"),
        (range(103), ip.IndexPlanError, "wrap it in indexplan_torch.Bins"),
    ],
)
def test_a_mistake_of_a_dataset_is_its_own(
    dataset: Any, kind: type[Exception], said: str, num_workers: int
) -> None:
    """Only what names the list that it was asked for is taken for a dataset without bins."""
    if num_workers and kind is ip.IndexPlanError:
        said = said.replace("got '", "got 'TypeError: ")
    error = refused(PlanLoader(dataset, PLAN, num_workers=num_workers, **ME), kind)
    assert re.search(said, str(error))


# --- causal models


@pytest.mark.parametrize("num_workers", [0, 1])
def test_rows_for_causal_models(num_workers: int) -> None:
    """A row has a batch axis and flash-attention's names, and no first token to be guessed."""
    options: dict[str, Any] = {"collate_fn": join_causal, "num_workers": num_workers, **ME}
    rows = list(PlanLoader(indexplan_torch.Bins(Texts()), PLAN, **options))
    lists = list(
        PlanLoader(indexplan_torch.Bins(Texts(), join=list), PLAN, collate_fn=sum_of, **ME)
    )
    assert len(rows) == len(lists) > 4
    for row, samples in zip(rows, lists, strict=True):
        tokens = [sample["input_ids"].tolist() for sample in samples]
        labels = [[-100, *sample["labels"].tolist()[1:]] for sample in samples]
        positions = [list(range(len(each))) for each in tokens]
        for name, parts in {
            "input_ids": tokens,
            "labels": labels,
            "position_ids": positions,
        }.items():
            assert ([sum(parts, [])], torch.int64) == (row[name].tolist(), row[name].dtype)
        bounds = [0, *np.cumsum([len(each) for each in tokens]).tolist()]
        for name in ("cu_seq_lens_q", "cu_seq_lens_k"):
            assert (bounds, torch.int32) == (row[name].tolist(), row[name].dtype)
        longest = max(map(len, tokens))
        assert (longest, longest, False) == (
            row["max_length_q"],
            row["max_length_k"],
            row["use_cache"],
        )
        assert 8 == len(row)


def sum_of(bins: Any) -> Any:
    """Collate lists into one."""
    return sum(bins, [])


def test_samples_for_causal_models() -> None:
    """Labels are the tokens if there are none, and positions are counted anew."""
    none: dict[str, Any] = {"input_ids": [], "attention_mask": []}  # also of no tokens
    row = join_causal([none, {"input_ids": [7, 8], "attention_mask": [1, 1]}, none])
    assert [[7, 8]] == row["input_ids"].tolist()
    assert [[-100, 8]] == row["labels"].tolist()
    assert [0, 0, 2, 2] == row["cu_seq_lens_q"].tolist()
    assert "attention_mask" not in row
    samples = [{"input_ids": [7, 8], "position_ids": [5, 6]}]
    samples += [{"input_ids": [9], "position_ids": [7]}]
    assert [[0, 1, 0]] == join_causal(samples)["position_ids"].tolist()
