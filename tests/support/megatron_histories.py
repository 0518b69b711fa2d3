"""Histories of runs as Megatron's loop makes them, each micro-batch compared with the run's places.

A history keeps one number between its legs: the samples consumed. In each leg the data-parallel
size, the micro-batch and the ramp-up of the global batch are others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from random import Random
from typing import Any

import indexplan as ip
from indexplan_torch.megatron import PlanIterator

MOST_UNITS = 200


@dataclass(frozen=True)
class Leg:
    """A job between two starts: its ranks, its micro-batch, and micro-batches in each step."""

    world_size: int
    micro_batch_size: int
    per_step: tuple[int, ...]
    by_state: bool

    @property
    def sizes(self) -> list[int]:
        """The global batch of each optimizer step."""
        return [num * self.world_size * self.micro_batch_size for num in self.per_step]


def draw_order(random: Random, most: int) -> ip.Order:
    """Draw an order of at most so many units, and one source more of a mixture."""
    size, seed = random.randint(1, most), random.randrange(2**64)
    order: ip.Order = ip.Shuffle(size, seed)
    if (kind := random.randrange(4)) == 1:
        order = ip.BlockShuffle(size, random.randint(1, 20), 3, seed)
    elif kind == 2:
        sources = {"a": ip.Shuffle(size, seed), "b": ip.Shuffle(random.randint(1, 99), seed + 1)}
        order = ip.Mixture(sources, {"a": random.randint(1, 5), "b": 1})
    elif kind == 3:
        kept = [*range(0, size, 2)]
        order = ip.Subset(ip.Shuffle(len(kept), seed), kept, size)
    return order


def draw(key: str) -> tuple[ip.Order, list[Leg]]:
    """Draw an order and the legs of a run; the global batch rises in some of them."""
    random = Random(key)  # noqa: S311 (for a history that comes again, not for a secret)
    order = draw_order(random, MOST_UNITS)
    legs = []
    for _ in range(random.randint(1, 4)):
        num = random.randint(1, 3)
        rises = [random.random() < 0.3 for _ in range(random.randint(1, 5))]
        ranks = random.choice([1, 2, 3, 4, 5, 6, 8])
        per_step = tuple(num + more for more in accumulate(rises))
        legs.append(Leg(ranks, random.randint(1, 6), per_step, random.random() < 0.3))
    return order, legs


def run(order: ip.Order, legs: list[Leg], wrapped: Callable[[PlanIterator], Any] = iter) -> int:
    """Run a history; raise where an optimizer step reads other than the next places.

    Returns
    -------
    int
        The samples consumed.
    """
    places, consumed = stream(order), 0
    state: Any = None
    for leg in legs:
        given = {"micro_batch_size": leg.micro_batch_size, "world_size": leg.world_size}
        by_state = leg.by_state and state is not None
        ranks = [
            PlanIterator(
                range(order.num_samples),
                order,
                rank=rank,
                consumed_samples=0 if by_state else consumed,
                **given,
            )
            for rank in range(leg.world_size)
        ]
        for each in ranks if by_state else []:
            each.load_state(state)
        loops = [wrapped(each) for each in ranks]
        for num, size in zip(leg.per_step, leg.sizes, strict=True):
            read = [next(loop).tolist() for _ in range(num) for loop in loops]
            expected = [next(places) for _ in range(size)]
            assert [leg.micro_batch_size] * len(read) == [len(batch) for batch in read]
            assert expected == [index for batch in read for index in batch], (order, legs, consumed)
            consumed += size
            assert {consumed} == {each.consumed_samples for each in ranks}
        (state, *others) = [each.save_state() for each in ranks]
        assert all(state == other for other in others)
    return consumed


def stream(order: ip.Order) -> Iterator[int]:
    """Yield the index at each place of a run, epoch by epoch."""
    epoch = 0
    while True:
        yield from order.take(epoch, 0, order.num_units(epoch)).tolist()
        epoch += 1
