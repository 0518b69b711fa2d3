"""Datasets one after another, and the sources of a mixture: seen where they do not fit."""

from typing import Any

import numpy as np
import pytest
from torch.utils.data import ConcatDataset, Dataset, StackDataset, Subset

import indexplan as ip
from indexplan_torch import Bins, PlanLoader

SIZES = {"web": 70, "code": 30, "books": 9}
MIXTURE = ip.Mixture(
    {name: ip.Shuffle(size, seed=size) for name, size in SIZES.items()},
    weights=dict.fromkeys(SIZES, 1),
)


class Rows(Dataset[Any]):
    """Samples that name their source."""

    def __init__(self, name: str, size: int = 0) -> None:
        self.name, self.size = name, size or SIZES[name]

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> str:
        return self.name


web, code, books = map(Rows, SIZES)
IN_ORDER = ConcatDataset([web, code, books])
FIT: dict[str, Any] = {
    "one after another": IN_ORDER,
    "in one dataset": range(109),
    "two sources in one dataset": ConcatDataset([web, range(39)]),
    "a source in two datasets": ConcatDataset([Rows("web", 50), Rows("web", 20), code, books]),
    "nested": ConcatDataset([web, ConcatDataset([code, books])]),
    "nested across a source": ConcatDataset(
        [ConcatDataset([Rows("web", 50)]), ConcatDataset([Rows("web", 20), code]), books]
    ),
    "an empty one": ConcatDataset([web, [], code, books]),
    "a subset of all": Subset(IN_ORDER, range(109)),
    "a subset in order": Subset(
        ConcatDataset([books, code, web]), [*range(39, 109), *range(9, 39), *range(9)]
    ),
    "shuffled inside": Subset(
        IN_ORDER, [*np.random.default_rng(0).permutation(70), *range(70, 109)]
    ),
    "side by side": StackDataset(IN_ORDER, range(109)),
}
TORN: dict[str, tuple[Any, list[int]]] = {
    "changed places": (ConcatDataset([code, web, books]), [30, 70, 9]),
    "nested": (ConcatDataset([web, ConcatDataset([books, code])]), [70, 9, 30]),
    "a subset": (Subset(ConcatDataset([code, web, books]), range(109)), [30, 70, 9]),
    "a shuffled subset": (Subset(IN_ORDER, np.random.default_rng(0).permutation(109)), [70, 30, 9]),
    "counted from the end": (Subset(IN_ORDER, range(-1, -110, -1)), [70, 30, 9]),
    "side by side": (StackDataset(IN_ORDER, ConcatDataset([books, web, code])), [9, 70, 30]),
    "by name": (StackDataset(x=ConcatDataset([code, web, books])), [30, 70, 9]),
}  # fmt: skip


def plan_of(order: ip.Order) -> ip.Plan:
    """A plan of a mixture, or of one in other orders."""
    return ip.Plan(order, batch_size=4)


@pytest.mark.parametrize("name", FIT)
def test_datasets_that_fit_are_taken(name: str) -> None:
    """Each dataset holds whole sources, or each source whole datasets."""
    PlanLoader(FIT[name], plan_of(MIXTURE))


@pytest.mark.parametrize("name", TORN)
def test_datasets_in_another_sequence_are_refused(name: str) -> None:
    """The error names the sizes of both, though they are as many samples together."""
    dataset, sizes = TORN[name]
    with pytest.raises(ip.IndexPlanError) as refused:
        PlanLoader(dataset, plan_of(MIXTURE))
    assert str(refused.value) == (
        f"datasets must lie one after another as the mixture's sources do; got datasets of {sizes} "
        "samples for sources of {'web': 70, 'code': 30, 'books': 9}; pass ConcatDataset the "
        "datasets in the sequence of the sources"
    )


def test_mixtures_inside_other_orders_are_seen() -> None:
    """A mixture in a layer, in a mixture, and of bins."""
    inner = ip.Mixture({"a": ip.Shuffle(5), "b": ip.Shuffle(7)}, weights={"a": 1, "b": 1})
    outer = ip.Mixture({"x": inner, "y": ip.Shuffle(4)}, weights={"x": 1, "y": 1}, seed=1)
    right, wrong = (ConcatDataset([range(n) for n in sizes]) for sizes in ((5, 7, 4), (7, 5, 4)))
    for order in (outer, ip.Repeat(outer, 2)):
        PlanLoader(right, plan_of(order))
        with pytest.raises(ip.IndexPlanError, match=r"sources of {'x/a': 5, 'x/b': 7, 'y': 4}"):
            PlanLoader(wrong, plan_of(order))
    packed = {name: ip.Packed(np.full(size, 3), 9, seed=size) for name, size in SIZES.items()}
    bins = ip.Mixture(packed, weights=dict.fromkeys(SIZES, 1))
    PlanLoader(Bins(IN_ORDER), plan_of(bins))
    with pytest.raises(ip.IndexPlanError, match=r"datasets of \[30, 70, 9\]"):
        PlanLoader(Bins(ConcatDataset([code, web, books])), plan_of(bins))


def test_other_orders_do_not_care() -> None:
    """Where an index is all that is meant, any datasets do; so where a subset counts its own."""
    torn = ConcatDataset([code, web, books])
    PlanLoader(torn, plan_of(ip.Shuffle(109)))
    kept = ip.Subset(MIXTURE, range(1, 110), num_samples=120)
    PlanLoader(ConcatDataset([torn, range(11)]), plan_of(kept))
