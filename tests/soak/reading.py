"""Ways to read what all ranks of a plan read, without a trainer."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import indexplan as ip
from tests.soak.drawing import Part
from tests.support.micro import micro_batches

Int64 = NDArray[np.int64]
NOTHING = np.empty(0, np.int64)


class Read(NamedTuple):
    """What all ranks read in a part: in its last step, rank by rank, and in the steps before."""

    before: Int64
    last: Int64


class WrongError(Exception):
    """What the library promises, beside samples that are read once, is not so."""


def flat(arrays: Iterable[Any]) -> Int64:
    """Return arrays or lists of indices as one array."""
    return np.concatenate([NOTHING, *(np.asarray(array, np.int64) for array in arrays)])


def leaves(nested: Any) -> list[Any]:
    """Return the arrays inside nested lists."""
    if not isinstance(nested, list):
        return [nested]
    return [leaf for part in nested for leaf in leaves(part)]


def by_indices(plan: ip.Plan, part: Part) -> Read:
    """Read each rank's share of the part; the last step apart, only where epochs can mix."""
    where = {"epoch": part.epoch, "sub_epoch": part.sub_epoch}
    ranks = range(plan.world_size or 0)
    stop = part.stop - 1 if plan.remainder == "carry" and part.stop > part.start else part.stop
    steps = {"start_step": part.start, "stop_step": stop}
    before = flat(plan.indices(**where, rank=rank, **steps) for rank in ranks)
    if stop == part.stop:
        return Read(before, NOTHING)
    return Read(before, flat(plan.batch(**where, step=stop, rank=rank) for rank in ranks))


def by_batches(plan: ip.Plan, part: Part) -> Read:
    """Read each rank's batches as they stream."""
    steps = {"start_step": part.start, "stop_step": part.stop}
    ranks = [
        list(plan.batches(part.epoch, part.sub_epoch, rank=rank, **steps))
        for rank in range(plan.world_size or 0)
    ]
    return joined(part, ranks)


def by_batch(plan: ip.Plan, part: Part) -> Read:
    """Ask for every batch by itself."""
    return joined(part, [_each(plan.batch, part, rank) for rank in range(plan.world_size or 0)])


def by_micro_batches(plan: ip.Plan, part: Part) -> Read:
    """Ask for every micro-batch."""

    def inner(epoch: int, sub_epoch: int, **where: int) -> list[Any]:
        return micro_batches(plan.units(epoch, sub_epoch, **where))

    ranks = [_each(inner, part, rank) for rank in range(plan.world_size or 0)]
    return joined(part, [[flat(leaves(batch)) for batch in rank] for rank in ranks])


def _each(ask: Callable[..., Any], part: Part, rank: int) -> list[Any]:
    steps = range(part.start, part.stop)
    return [ask(part.epoch, part.sub_epoch, step=step, rank=rank) for step in steps]


def joined(part: Part, ranks: list[list[Any]]) -> Read:
    """Return what ranks read, each in batches, of which there have to be as many as steps."""
    for rank, batches in enumerate(ranks):
        if len(batches) != part.stop - part.start:
            got = f"{len(batches)} batches of {part.stop - part.start}"
            raise WrongError(f"rank {rank} of {len(ranks)} received {got}, in {part}")
    before = flat(batch for batches in ranks for batch in batches[:-1])
    return Read(before, flat(batches[-1] for batches in ranks if batches))


WAYS = {
    "indices": by_indices,
    "batches": by_batches,
    "batch": by_batch,
    "micro_batches": by_micro_batches,
}
