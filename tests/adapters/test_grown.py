"""A dataset that grows or shrinks while a run reads it: each pass compares its length."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import grain
import numpy as np
import pytest
import torch
from torch.utils.data import ConcatDataset, Dataset, StackDataset, TensorDataset

import indexplan as ip
from indexplan_jax.grain import PlanIterDataset
from indexplan_torch import (
    Bins,
    PlanLoader,
)
from indexplan_torch.megatron import PlanIterator
from tests.adapters.small import as_they_are

PLAN = ip.Plan(ip.Shuffle(100, seed=0), world_size=1, batch_size=10, remainder="drop")
PACKED = ip.Plan(ip.Packed([2] * 100, max_length=10), world_size=1, batch_size=2)
ONE: dict[str, Any] = {"rank": 0, "world_size": 1}


class Growing(Dataset[Any]):
    """Samples that are their indices, as many as it is told."""

    def __init__(self, num_samples: int = 100) -> None:
        self.num_samples = num_samples

    def __len__(self) -> int:
        return self.num_samples

    def __getitem__(self, index: int) -> int:
        return index


def of(make: Callable[[Any], Any], wrap: Callable[[Any], Any] = lambda data: data) -> Any:
    """Return what makes a loader of a dataset, and says how to change the number of samples."""

    def made() -> tuple[Any, Callable[[int], None]]:
        data = Growing()
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
        lambda data: PlanLoader(data, PLAN), lambda data: StackDataset(Growing(), data)
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


@pytest.mark.filterwarnings("ignore:.*set_vital.*")  # of torch, about torchdata
@pytest.mark.parametrize("num", [120, 99])
@pytest.mark.parametrize("way", WAYS)
def test_a_pass_over_a_dataset_of_another_length_is_refused(way: str, num: int) -> None:
    """However it is read: before a batch of the pass is handed out, each time that it is tried."""
    batches, change = WAYS[way]()
    assert len(list(batches)) == 10
    change(num)
    for _ in range(2):
        with pytest.raises(ip.IndexPlanError) as caught:
            next(iter(batches))
        rule = "dataset must hold 100 samples in every pass, as many as the plan's order; got "
        assert f"{rule}{num}; make a new plan with an order of {num} samples, or " in str(
            caught.value
        )
    change(100)
    assert len(list(batches)) == 10


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
