"""Histories of runs as Megatron's loop makes them, each micro-batch compared with the run's places.

A history keeps counts of samples consumed between its legs, each a checkpoint to return to. In each
leg the data-parallel size, the micro-batch and the ramp-up of the global batch are others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, islice
from pathlib import Path
from random import Random
from typing import Any

import indexplan as ip
from indexplan_torch.megatron import PlanIterator
from tests.support.ledger_histories import Listed, Step

MOST_UNITS = 60


@dataclass(frozen=True)
class Leg:
    """A job: its ranks, its micro-batch, and micro-batches in each optimizer step.

    It goes on from a checkpoint, `back` before the newest, by its state or its count.
    """

    world_size: int
    micro_batch_size: int
    per_step: tuple[int, ...]
    by_state: bool
    back: int


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
        by_state, back = random.random() < 0.3, random.choice([0, 0, 1, 2])
        legs.append(Leg(ranks, random.randint(1, 6), per_step, by_state, back))
    return order, legs


def run(order: ip.Order, legs: list[Leg], path: Path | None = None) -> int:
    """Run a history; raise where an optimizer step reads other than the next places.

    With a path, the run is also written into a ledger, in the words of docs/migrate/megatron.md,
    which has to tell what was read.

    Returns
    -------
    int
        The samples consumed.
    """
    saved: list[tuple[int, Any, list[Step]]] = [(0, None, [])]  # and what was read by then
    for leg in legs:
        saved = saved[: max(1, len(saved) - leg.back)]
        start, state, steps = saved[-1]
        by_state = leg.by_state and state is not None
        consumed, size = 0 if by_state else start, leg.micro_batch_size
        ranks = [
            PlanIterator(
                range(order.num_samples),
                order,
                micro_batch_size=size,
                consumed_samples=consumed,
                rank=rank,
                world_size=leg.world_size,
            )
            for rank in range(leg.world_size)
        ]
        for each in ranks if by_state else []:
            each.load_state(state)
        places, consumed = islice(stream(order), start, None), start
        for num in leg.per_step:
            read = [[next(each).tolist() for each in ranks] for _ in range(num)]
            assert {size} == {len(batch) for step in read for batch in step}
            together = [index for step in read for batch in step for index in batch]
            assert [*islice(places, len(together))] == together, (order, legs, consumed)
            steps, consumed = [*steps, *read], consumed + len(together)
            assert {consumed} == {each.consumed_samples for each in ranks}
        (state, *others) = [each.save_state() for each in ranks]
        assert all(state == other for other in others)
        saved.append((consumed, state, steps))
        if path is not None:
            plan, ledger = ranks[0].plan, ip.Ledger(path)
            rest = plan.resume(plan.cursor_at(start))
            ledger.begin(rest)
            ledger.record(rest, plan.cursor_at(consumed))
            Listed(steps=steps).check(ip.Ledger(path))
    return consumed


def stream(order: ip.Order) -> Iterator[int]:
    """Yield the index at each place of a run, epoch by epoch."""
    epoch = 0
    while True:
        yield from order.take(epoch, 0, order.num_units(epoch)).tolist()
        epoch += 1
