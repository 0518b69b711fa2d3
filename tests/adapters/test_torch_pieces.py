"""Pieces of samples reach the dataset with their bounds: in every form, by every loader."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import Dataset

import indexplan as ip
from indexplan_torch import (
    Bins,
    Piece,
    PlanBatchSampler,
    PlanLoader,
    PlanSampler,
    join,
)
from tests.adapters.small import ME, as_they_are
from tests.support.documents_oracle import Documents

pytestmark = pytest.mark.filterwarnings("ignore:.*set_vital.*")  # of torch, about torchdata

FIELDS = Documents(tuple(i * 7 % 23 + 1 for i in range(60)), 16, 1, 8, 3)
ORDER = ip.DocumentWindows(list(FIELDS.lengths), 16, block_size=8, seed=3)
PLAN = ip.Plan(ORDER, world_size=2, batch_size=3)
UNITS = [[[Piece(*piece) for piece in unit] for unit in FIELDS.units(epoch)] for epoch in (0, 1)]


def of_rank(epoch: int, rank: int = 1, plan: ip.Plan = PLAN) -> list[list[list[Piece]]]:
    """Return a rank's batches of the oracle's windows; of a step, ranks read one after another."""
    batches = []
    for step in range(plan.steps(epoch).stop):
        sizes = [len(plan.units(epoch, step=step, rank=r).offsets) - 1 for r in range(2)]
        start = plan.cursor(epoch, step=step).position + sum(sizes[:rank])
        batches.append(UNITS[epoch][start : start + sizes[rank]])
    return batches


class Texts(Dataset[Any]):
    """Token i of document d is 1000 * d + i; and the document's number, and its name."""

    def __len__(self) -> int:
        return len(FIELDS.lengths)

    def __getitem__(self, index: int) -> Any:
        tokens = 1000 * index + np.arange(FIELDS.lengths[index])
        return {"input_ids": tokens, "labels": (tokens + 1).tolist(), "number": index, "name": "d"}


class Rows(Texts):
    """The tokens alone."""

    def __getitem__(self, index: int) -> Any:
        return super().__getitem__(index)["input_ids"]


class Together(Texts):
    """A dataset that is asked for several documents at once."""

    def __getitem__(self, index: Any) -> Any:
        raise AssertionError(index)

    def __getitems__(self, asked: Any) -> list[Any]:
        return [Rows()[index] for index in asked]


def tokens_of(unit: list[Piece]) -> list[int]:
    """Return the tokens of a window, cut out by hand."""
    return [1000 * d + i for d, start, stop in unit for i in range(start, stop)]


def no_names(samples: list[Any]) -> Any:
    """Join without what is not to be joined, which came whole."""
    assert {sample.pop("name") for sample in samples} == {"d"}
    return join(samples)


@pytest.mark.parametrize("num_workers", [0, 2])
@pytest.mark.parametrize("stored", [False, True])
def test_windows_of_tokens(num_workers: int, stored: bool, tmp_path: Path) -> None:
    """`Bins` cuts every field, in workers too; two epochs, of which one may come from files."""
    plan = PLAN
    if stored:
        ip.save(PLAN, tmp_path / "a.plan", units_per_chunk=7)
        plan = ip.load(tmp_path / "a.plan")
    bins = Bins(Texts(), join=no_names)
    options: dict[str, Any] = {"num_workers": num_workers, "collate_fn": as_they_are}
    loader = PlanLoader(bins, plan, **ME, **options)
    for epoch in (0, 1):
        batches = list(loader)
        assert len(of_rank(epoch)) == len(batches)
        for units, batch in zip(of_rank(epoch), batches, strict=True):
            for unit, row in zip(units, batch, strict=True):
                tokens = tokens_of(unit)
                assert tokens == row["input_ids"].tolist()
                assert len(tokens) == 17
                assert [token + 1 for token in tokens] == row["labels"].tolist()
                assert [piece.sample for piece in unit] == row["number"].tolist()
                sizes = [piece.stop - piece.start for piece in unit]
                assert sizes == row["seq_lens"].tolist()
                places = [i for size in sizes for i in range(size)]
                assert places == row["position_ids"].tolist()


def test_every_form() -> None:
    """Lists of pieces, inner batches, arrays, items, and one by one: the oracle's windows."""
    expected = of_rank(0)

    def drawn(**form: Any) -> list[Any]:
        return list(PlanBatchSampler(PLAN, **ME, **form))

    assert expected == drawn()
    arrays = [[[Piece(*row) for row in unit.tolist()] for unit in b] for b in drawn(as_array=True)]
    assert expected == arrays
    item = lambda piece, about: (piece.stop, about.phase.num_units)  # noqa: E731
    assert [[[(p.stop, 3) for p in unit] for unit in batch] for batch in expected] == drawn(
        item=item
    )
    nested = PLAN.replace(batch_size=(3, 1))
    inner = [[[unit] for unit in batch] for batch in expected]
    found = list(PlanBatchSampler(nested, **ME, nested=True))
    assert inner == [[part for part in batch if part] for batch in found]
    dropped = PLAN.replace(remainder="drop")
    units = [unit for batch in of_rank(0, plan=dropped) for unit in batch]
    assert units == list(PlanSampler(dropped, **ME))


@pytest.mark.parametrize("dataset", [Rows(), Together()], ids=["rows", "together"])
@pytest.mark.parametrize("form", [{}, {"as_array": True}, {"nested": True}], ids=str)
def test_bins_in_other_forms(dataset: Any, form: Any) -> None:
    """Rows without names, arrays of pieces, inner batches, documents read together."""
    loader = PlanLoader(Bins(dataset), PLAN, **ME, **form, collate_fn=as_they_are)
    for units, batch in zip(of_rank(0), loader, strict=True):
        rows = batch[0] if form.get("nested") else batch
        assert [tokens_of(unit) for unit in units] == [row["input_ids"].tolist() for row in rows]


class Slices(Texts):
    """A dataset that reads parts by itself."""

    def __getitem__(self, bin_: Any) -> Any:
        rows = [1000 * d + torch.arange(start, stop) for d, start, stop in bin_]
        return torch.cat(rows)


@pytest.mark.parametrize("num_workers", [0, 2])
def test_a_dataset_of_its_own(num_workers: int) -> None:
    """Windows are of one length, so torch stacks them."""
    loader = PlanLoader(Slices(), PLAN, **ME, num_workers=num_workers)
    for units, batch in zip(of_rank(0), loader, strict=True):
        assert (len(units), 17) == batch.shape
        assert [tokens_of(unit) for unit in units] == batch.tolist()


def test_parts_of_tensors() -> None:
    """Fields of several dimensions and types are cut along their first."""
    whole = {"input_ids": torch.arange(9), "masks": torch.ones(9, 2), "weight": torch.tensor(0.5)}
    bins = Bins([whole])
    row = bins[[Piece(0, 2, 5), Piece(0, 8, 9)]]
    assert [2, 3, 4, 8] == row["input_ids"].tolist()
    assert ((4, 2), [0.5, 0.5]) == (tuple(row["masks"].shape), row["weight"].tolist())
    assert [[2, 3], [8]] == Bins([list(range(9))], join=list)[[Piece(0, 2, 4), Piece(0, 8, 9)]]
