"""Bins and pieces of samples: joined by `Bins`, in workers too, and rows for causal models.

Which bins and pieces a dataset is asked for is in test_items.py.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import default_collate

import indexplan as ip
from indexplan_torch import Bins, Piece, PlanLoader, join
from indexplan_torch.causal import join_causal
from tests.adapters.small import ME, Identity, as_they_are, dealt, refused
from tests.support import bins as of_bins

SIZES = [i * 7 % 23 + 1 for i in range(103)]  # the tokens of each document
PLAN = ip.Plan(of_bins.Bins(103), world_size=2, batch_size=3, sub_epochs=2)
CUT = ip.Plan(ip.DocumentWindows(SIZES, 16, block_size=8, seed=3), world_size=2, batch_size=3)


class Documents(Identity):
    """Token i of document d is 1000 * d + i; and the document's number, and its name."""

    def __getitem__(self, index: int) -> Any:
        tokens = 1000 * index + np.arange(SIZES[index])
        return {"input_ids": tokens, "labels": (tokens + 1).tolist(), "number": index, "name": "d"}


class Broken(Identity):
    """A dataset of bins with a mistake of its own."""

    def __getitem__(self, asked: Any) -> Any:
        return len(self.num_samples)  # type: ignore[arg-type]  # the mistake


def no_names(samples: list[Any]) -> Any:
    """Join without what is not to be joined, which came whole."""
    assert {sample.pop("name") for sample in samples} == {"d"}
    return join(samples)


def tokens_of(unit: list[Any]) -> list[int]:
    """Return the tokens of a bin of samples or of pieces, cut out by hand."""
    return [1000 * d + i for d, start, stop in map(piece_of, unit) for i in range(start, stop)]


def piece_of(part: Any) -> Piece:
    """Return a piece of a sample; all of it, if no part is named."""
    return part if isinstance(part, Piece) else Piece(part, 0, SIZES[part])


@pytest.mark.parametrize("num_workers", [0, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("plan", [PLAN, CUT], ids=["samples", "pieces"])
def test_bins_join_what_they_hold(
    plan: ip.Plan, stored: bool, num_workers: int, tmp_path: Path
) -> None:
    """A bin is one row: fields cut and concatenated, with what attention is told of its parts.

    In workers too, and in two passes, of which one may come from files.
    """
    if stored:
        ip.save(plan, tmp_path / "a.plan", units_per_chunk=7)
        plan = ip.load(tmp_path / "a.plan")
    options: dict[str, Any] = {"num_workers": num_workers, "collate_fn": as_they_are}
    loader = PlanLoader(Bins(Documents(), join=no_names), plan, **ME, **options)
    for epoch in (0, 1):
        loader.set_epoch(epoch * plan.sub_epochs)
        for units, batch in zip(dealt(plan, (epoch, 0), 1), loader, strict=True):
            for unit, row in zip(units, batch, strict=True):
                tokens = tokens_of(unit)
                sizes = [piece.stop - piece.start for piece in map(piece_of, unit)]
                assert ["input_ids", "labels", "number", "position_ids", "seq_lens"] == list(row)
                assert tokens == row["input_ids"].tolist()
                assert [token + 1 for token in tokens] == row["labels"].tolist()
                assert [piece_of(part).sample for part in unit] == row["number"].tolist()
                assert [i for size in sizes for i in range(size)] == row["position_ids"].tolist()
                assert sizes == row["seq_lens"].tolist()


def test_bins_of_items() -> None:
    """Items stand in bins as samples do; other forms are read below, of pieces."""
    item = lambda index, about: (index, about.phase.num_units)  # noqa: E731
    options: dict[str, Any] = {**ME, "collate_fn": as_they_are, "item": item}
    bins = Bins(Identity(), join=tuple)
    first = next(iter(PlanLoader(bins, PLAN.replace(batch_size=(2, 2)), **options)))
    assert [((7, 4), (8, 4)), ((9, 4), (10, 4), (11, 4))] == first[:2]


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
    stacked = Bins(torch.from_numpy(labels), default_collate)
    assert expected == [b.tolist() for (b,) in PlanLoader(stacked, plan, rank=0, world_size=1)]


@pytest.mark.parametrize("num_workers", [0, pytest.param(2, marks=pytest.mark.slow)])
def test_groups_of_the_samples_in_bins(num_workers: int) -> None:
    """`loader.groups` has an entry for each sample, bin after bin, as seq_lens have."""
    sources = {"texts": of_bins.Bins(20), "chats": ip.Shuffle(9)}
    order = ip.Mixture(sources, {"texts": 1, "chats": 1})
    plan = ip.Plan(order, world_size=2, batch_size=4)
    bins = Bins(Documents(29), join=no_names)
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
    plan = ip.Plan(of_bins.Bins(7), world_size=1, batch_size=(5, 1))
    loader = PlanLoader(Bins(Identity(7), join=tuple), plan, nested=True, collate_fn=as_they_are)
    (batch,) = list(loader)
    assert [[(0,)], [(1, 2)], [(3, 4, 5)], [(6,)], []] == batch


@pytest.mark.parametrize("num_workers", [0, pytest.param(1, marks=pytest.mark.slow)])
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


@pytest.mark.parametrize("num_workers", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_rows_for_causal_models(num_workers: int) -> None:
    """A row has a batch axis and flash-attention's names, and no first token to be guessed."""
    options: dict[str, Any] = {"collate_fn": join_causal, "num_workers": num_workers, **ME}
    rows = list(PlanLoader(Bins(Documents(), join=no_names), PLAN, **options))
    for row, units in zip(rows, dealt(PLAN, (0, 0), 1), strict=True):
        tokens = [tokens_of([sample]) for unit in units for sample in unit]
        labels = [[-100, *(token + 1 for token in each[1:])] for each in tokens]
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


# --- pieces of samples


class Rows(Documents):
    """The tokens alone."""

    def __getitem__(self, index: int) -> Any:
        return super().__getitem__(index)["input_ids"]


class ReadTogether(Documents):
    """A dataset that is asked for several documents at once."""

    def __getitem__(self, index: Any) -> Any:
        raise AssertionError(index)

    def __getitems__(self, asked: Any) -> list[Any]:
        return [Rows()[index] for index in asked]


@pytest.mark.parametrize("dataset", [Rows(), ReadTogether()], ids=["rows", "together"])
@pytest.mark.parametrize("form", [{}, {"as_array": True}, {"nested": True}], ids=str)
def test_pieces_in_other_forms(dataset: Any, form: Any) -> None:
    """Rows without names, arrays of pieces, inner batches, documents read together."""
    loader = PlanLoader(Bins(dataset), CUT, **ME, **form, collate_fn=as_they_are)
    for units, batch in zip(dealt(CUT, (0, 0), 1), loader, strict=True):
        rows = batch[0] if form.get("nested") else batch
        assert [tokens_of(unit) for unit in units] == [row["input_ids"].tolist() for row in rows]


def test_parts_of_tensors() -> None:
    """Fields of several dimensions and types are cut along their first."""
    whole = {"input_ids": torch.arange(9), "masks": torch.ones(9, 2), "weight": torch.tensor(0.5)}
    bins = Bins([whole])
    row = bins[[Piece(0, 2, 5), Piece(0, 8, 9)]]
    assert [2, 3, 4, 8] == row["input_ids"].tolist()
    assert ((4, 2), [0.5, 0.5]) == (tuple(row["masks"].shape), row["weight"].tolist())
    assert [[2, 3], [8]] == Bins([list(range(9))], join=list)[[Piece(0, 2, 4), Piece(0, 8, 9)]]
