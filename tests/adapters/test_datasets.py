"""What a dataset has to be for a plan: as long in every pass, and in the mixture's sequence."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import grain
import numpy as np
import pytest
import torch
from torch.utils.data import ConcatDataset, StackDataset, Subset, TensorDataset

import indexplan as ip
from indexplan_jax.grain import PlanIterDataset
from indexplan_torch import Bins, PlanLoader
from indexplan_torch.megatron import PlanIterator
from tests.adapters.small import Identity, as_they_are, refused

PLAN = ip.Plan(ip.Shuffle(100, seed=0), world_size=1, batch_size=10, remainder="drop")
PACKED = ip.Plan(ip.Packed([2] * 100, max_length=10), world_size=1, batch_size=2)
ONE: dict[str, Any] = {"rank": 0, "world_size": 1}


def of(make: Callable[[Any], Any], wrap: Callable[[Any], Any] = lambda data: data) -> Any:
    """Return what makes a loader of a dataset, and says how to change the number of samples."""

    def made() -> tuple[Any, Callable[[int], None]]:
        data = Identity(100)
        return make(wrap(data)), lambda num: setattr(data, "num_samples", num)

    return made


def of_tensors() -> tuple[Any, Callable[[int], None]]:
    """A TensorDataset, whose tensors are replaced."""
    data = TensorDataset(torch.arange(100))
    return PlanLoader(data, PLAN), lambda num: setattr(data, "tensors", (torch.arange(num),))


class Passes:
    """The passes of an iterator without an end, each of ten steps."""

    def __init__(self, batches: Iterator[Any]) -> None:
        self.batches = batches

    def __iter__(self) -> Iterator[Any]:
        return islice(self.batches, 10)


def iterator(data: Any, **options: Any) -> Passes:
    """Megatron's, which torchtitan's loader reads too."""
    sizes = {"micro_batch_size": 10, "consumed_samples": 0}
    return Passes(PlanIterator(data, PLAN.order, **sizes, **ONE, **options))


def of_grain(data: Any, **options: Any) -> Passes:
    """Grain's."""
    return Passes(iter(PlanIterDataset(data, PLAN, **options)))


WAYS: dict[str, Any] = {
    "PlanLoader": of(lambda data: PlanLoader(data, PLAN)),
    "with items": of(lambda data: PlanLoader(data, PLAN, item=lambda index, _: index)),
    "persistent workers": of(
        lambda data: PlanLoader(data, PLAN, num_workers=1, persistent_workers=True)
    ),
    "a dataset in another": of(lambda data: PlanLoader(data, PLAN), lambda d: ConcatDataset([d])),
    "side by side": of(
        lambda data: PlanLoader(data, PLAN), lambda data: StackDataset(Identity(100), data)
    ),
    "tensors": of_tensors,
    "bins": of(
        lambda data: PlanLoader(Bins(data, join=as_they_are), PACKED, collate_fn=as_they_are)
    ),
    "without an end": of(iterator),
    "with workers, without an end": of(lambda data: iterator(data, num_workers=1)),
    "Grain": of(of_grain),
    "Grain, mapped": of(of_grain, lambda d: grain.MapDataset.source(d).map(lambda sample: sample)),
}


def first(batches: Any) -> Iterator[Any]:
    """Yield the first batch of a pass."""
    yield next(iter(batches))


@pytest.mark.filterwarnings("ignore:.*set_vital.*")  # of torch, about torchdata
@pytest.mark.parametrize("num", [120, 99])
@pytest.mark.parametrize("way", WAYS)
def test_a_pass_over_a_dataset_of_another_length_is_refused(way: str, num: int) -> None:
    """However it is read: before a batch of the pass is handed out, each time that it is tried."""
    batches, change = WAYS[way]()
    assert len(list(batches)) == 10
    change(num)
    rule = "dataset must hold 100 samples in every pass, as many as the plan's order; got "
    for _ in range(2):
        said = str(refused(first(batches)))
        assert f"{rule}{num}; make a new plan with an order of {num} samples, or " in said
    change(100)
    assert len(list(batches)) == 10


class Failing(Identity):
    """A dataset that fails at two of its samples, five times."""

    failed = 0
    error: type[BaseException] = OSError

    def __getitem__(self, index: int) -> int:
        if index in {7, 50} and self.failed < 5:
            self.failed += 1
            raise self.error
        return index


ALONE = grain.ReadOptions(num_threads=0, prefetch_buffer_size=0)


@pytest.mark.parametrize(
    ("make", "options", "error"),
    [
        (iterator, {}, KeyboardInterrupt),
        (of_grain, {}, OSError),
        (of_grain, {"read_options": ALONE}, OSError),
    ],
)
def test_an_error_or_an_interrupt_loses_no_batch(make: Any, options: Any, error: Any) -> None:
    """The next call returns what the failed one would have, in threads or without."""
    data, found, failed = Failing(100), list[Any](), 0
    data.error = error
    batches = make(data, **options).batches
    while len(found) < 10:
        try:
            found.append(next(batches).tolist())
        except error:
            failed += 1
        if make is iterator:
            assert 10 * len(found) == batches.consumed_samples
    assert failed
    assert [batch.tolist() for batch in PlanLoader(range(100), PLAN)] == found


def read(loader: PlanLoader) -> list[int]:
    """Return the samples of a pass."""
    return [index for batch in loader for index in batch.tolist()]


def test_a_run_goes_on_with_the_samples_that_came() -> None:
    """Both cures work: a new plan reads all, and with_phase(sources=) adds them to the run."""
    data = list(range(100))
    mixture = ip.Mixture({"old": ip.Shuffle(100)}, {"old": 1})
    plan = ip.Plan(mixture, world_size=1, batch_size=10)
    loader = PlanLoader(data, plan)
    assert [*range(100)] == sorted(read(loader))
    data += range(100, 120)
    with pytest.raises(ip.IndexPlanError, match="a new plan with an order of 120 samples, or cont"):
        read(loader)
    assert [*range(120)] == sorted(read(PlanLoader(data, plan.replace(order=ip.Shuffle(120)))))
    cursor = loader.cursor
    grown = mixture.with_phase(cursor, {"old": 100, "new": 20}, sources={"new": ip.Shuffle(20)})
    rest = PlanLoader(data, plan.replace(order=grown).resume(cursor))
    rest.set_epoch(cursor.epoch)
    got = np.bincount([*read(rest), *read(rest)], minlength=120)
    assert set(got[100:].tolist()) <= {1, 2}
    assert 200 == got.sum()


def test_a_run_goes_on_without_the_samples_that_went() -> None:
    """They stay in the dataset, where nobody asks for them."""
    data = list(range(100))
    loader = PlanLoader(data, PLAN)
    read(loader)
    data, gone = data[:90], data[90:]
    loader.dataset.__delitem__(slice(90, 100))
    with pytest.raises(ip.IndexPlanError, match=re.escape("Without(order, samples, since=cursor)")):
        read(loader)
    cursor = loader.cursor
    order = ip.Without(PLAN.order, gone, since=cursor)
    rest = PlanLoader([*data, *[None] * 10], PLAN.replace(order=order).resume(cursor))
    assert data == sorted(read(rest))


# --- datasets one after another, and the sources of a mixture

SIZES = {"web": 70, "code": 30, "books": 9}
MIXTURE = ip.Mixture(
    {name: ip.Shuffle(size, seed=size) for name, size in SIZES.items()},
    weights=dict.fromkeys(SIZES, 1),
)


web, code, books = (range(size) for size in SIZES.values())
IN_ORDER = ConcatDataset([web, code, books])
FIT: dict[str, Any] = {
    "one after another": IN_ORDER,
    "in one dataset": range(109),
    "two sources in one dataset": ConcatDataset([web, range(39)]),
    "a source in two datasets": ConcatDataset([range(50), range(20), code, books]),
    "nested": ConcatDataset([web, ConcatDataset([code, books])]),
    "nested across a source": ConcatDataset(
        [ConcatDataset([range(50)]), ConcatDataset([range(20), code]), books]
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


def fits(dataset: Any, order: ip.Order) -> None:
    """Make a loader of a dataset."""
    PlanLoader(dataset, ip.Plan(order, batch_size=4))


@pytest.mark.parametrize("name", FIT)
def test_datasets_that_fit_are_taken(name: str) -> None:
    """Each dataset holds whole sources, or each source whole datasets."""
    fits(FIT[name], MIXTURE)


@pytest.mark.parametrize("name", TORN)
def test_datasets_in_another_sequence_are_refused(name: str) -> None:
    """The error names the sizes of both, though they are as many samples together."""
    dataset, sizes = TORN[name]
    with pytest.raises(ip.IndexPlanError) as refused:
        fits(dataset, MIXTURE)
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
        fits(right, order)
        with pytest.raises(ip.IndexPlanError, match=r"sources of {'x/a': 5, 'x/b': 7, 'y': 4}"):
            fits(wrong, order)
    packed = {name: ip.Packed(np.full(size, 3), 9, seed=size) for name, size in SIZES.items()}
    bins = ip.Mixture(packed, weights=dict.fromkeys(SIZES, 1))
    fits(Bins(IN_ORDER), bins)
    with pytest.raises(ip.IndexPlanError, match=r"datasets of \[30, 70, 9\]"):
        fits(Bins(ConcatDataset([code, web, books])), bins)


def test_other_orders_do_not_care() -> None:
    """Where an index is all that is meant, any datasets do; so where a subset counts its own."""
    torn = ConcatDataset([code, web, books])
    fits(torn, ip.Shuffle(109))
    kept = ip.Subset(MIXTURE, range(1, 110), num_samples=120)
    fits(ConcatDataset([torn, range(11)]), kept)
