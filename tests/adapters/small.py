"""What the tests of the adapters in one process share: a plan, a dataset, a rank's loader."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

import torch
from hypothesis import strategies as st
from torch.utils.data import Dataset

import indexplan as ip
from indexplan_torch import Piece, PlanLoader

ORDER = ip.Shuffle(103, seed=3)
PLAN = ip.Plan(ORDER, world_size=2, batch_size=5, sub_epochs=3)
ME: dict[str, Any] = {"rank": 1, "world_size": 2}


class Identity(Dataset[Any]):
    """A dataset whose samples are what it was asked for."""

    def __init__(self, num_samples: int = 103) -> None:
        self.num_samples = num_samples

    def __len__(self) -> int:
        return self.num_samples

    def __getitem__(self, asked: Any) -> Any:
        return asked


def as_they_are(samples: Any) -> Any:
    """Collate nothing."""
    return samples


def of_plan(plan: ip.Plan, number: int, rank: int = 1, start: int = 0) -> list[list[int]]:
    """Return a rank's batches of one pass, from one of its steps on."""
    steps = range(start, plan.steps(*divmod(number, plan.sub_epochs)).stop)
    where = divmod(number, plan.sub_epochs)
    return [plan.batch(*where, step=step, rank=rank).tolist() for step in steps]


def dealt(plan: ip.Plan, where: tuple[int, int], rank: int) -> list[list[Any]]:
    """Return what each step deals to a rank: samples, bins of samples, or bins of their pieces."""
    steps = []
    for step in plan.steps(*where):
        units = [unit.tolist() for unit in plan.units(*where, step=step, rank=rank).bins]
        if plan.order.traits.cuts_samples:
            units = [[Piece(*row) for row in unit] for unit in units]
        steps.append(units if plan.order.deals_bins else sum(units, []))
    return steps


def loader_of(plan: ip.Plan, dataset: Any = None, **options: Any) -> PlanLoader:
    """Return rank 1's loader, which leaves samples as they are."""
    dataset = Identity(plan.order.num_samples) if dataset is None else dataset
    return PlanLoader(dataset, plan, **{"collate_fn": as_they_are, **ME, **options})


def loaders_of(plan: ip.Plan, world_size: int, **options: Any) -> list[PlanLoader]:
    """Return the loaders of all ranks, which leave samples as they are."""
    ranks = range(world_size)
    return [loader_of(plan, rank=rank, world_size=world_size, **options) for rank in ranks]


def read_and_saved(samples: Any, steps: int) -> tuple[list[Any], Any]:
    """Read a pass's first steps; return them, and the state of the loader or of the iterator."""
    batches = iter(samples)
    read = [next(batches) for _ in range(steps)]
    return read, (samples if isinstance(samples, PlanLoader) else batches).state_dict()


def check_steps(path: Any, batches: list[list[int]]) -> ip.Ledger:
    """Check that these are all steps of one rank that a ledger counts; return it."""
    ledger = ip.Ledger(path)
    assert ledger.verify().ok
    assert batches == [ledger.batch(step, 0).tolist() for step in range(ledger.step)]
    counts = Counter(index for batch in batches for index in batch)
    samples = range(ledger.plan.order.num_samples)
    assert [counts[index] for index in samples] == ledger.seen(samples).tolist()
    return ledger


def check_fields(expected: dict[str, Any], found: dict[str, Any]) -> None:
    """Compare two rows or batches: names in their sequence, types, shapes and values."""
    assert [*expected] == [*found]
    for name, field in expected.items():
        assert (field.dtype, field.shape) == (found[name].dtype, found[name].shape), name
        assert torch.equal(field, found[name]), name


def refused(loader: Iterable[Any], kind: type[Exception] = ip.IndexPlanError) -> Any:
    """Read a loader, and return the error of this kind that it ends with.

    Its traceback and its cause's are dropped: they hold this frame, or one of torch's, and those
    the errors. Where the garbage collector frees such a circle, torch's workers don't hear that
    they may end, and each is awaited for 5 s.
    """
    try:
        list(loader)
    except kind as error:
        if error.__cause__ is not None:
            error.__cause__.with_traceback(None)
        return error.with_traceback(None)
    raise AssertionError("it was read")


def drawn_actions(draw: st.DrawFn, number: int) -> tuple[int | str, ...]:
    """Draw what a numbered leg does; the states that it saves have its number in their names."""
    actions: list[int | str] = []
    for part in range(draw(st.integers(1, 3))):
        actions += [draw(st.integers(1, 9)), f"{number}.{part}"]
    if draw(st.booleans()):
        actions.append(draw(st.integers(1, 9)))  # read, and not saved
    return tuple(actions)
