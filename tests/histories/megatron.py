"""Histories of runs as Megatron's loop makes them, each micro-batch compared with the run's places.

A history keeps counts of samples consumed between its legs, each a checkpoint to return to. In each
leg the data-parallel size, the micro-batch and the ramp-up of the global batch are others.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate, islice
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import indexplan as ip
from indexplan_torch.megatron import PlanIterator
from tests.histories.listing import Listed
from tests.histories.stories import Given, Story

MOST_UNITS = 60


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


def live(story: Story, _: Given | None = None, wrapped: Any = iter) -> None:
    """Run jobs; each optimizer step has to read the next places, whatever rank reads them.

    A job goes on from one of the last checkpoints, by its state or its count. The run also writes
    a ledger, in the words of docs/migrate/megatron.md, which has to tell what was read.
    """
    random = Random(f"megatron {story.number}")  # noqa: S311 (which comes again)
    order = draw_order(random, MOST_UNITS)
    story.say(f"{order!r}")
    saved: list[tuple[int, Any, list[Any]]] = [(0, None, [])]  # and what was read by then
    with TemporaryDirectory() as folder:
        for _job in range(random.randint(1, 4)):
            num, size = random.randint(1, 3), random.randint(1, 6)
            rises = [random.random() < 0.3 for _ in range(random.randint(1, 5))]
            world_size = random.choice([1, 2, 3, 4, 5, 6, 8])
            saved = saved[: max(1, len(saved) - random.choice([0, 0, 1, 2]))]
            start, state, steps = saved[-1]
            by_state = random.random() < 0.3 and state is not None
            story.say(f"{world_size} ranks, batches of {size}, from {start}, by state: {by_state}")
            given: Any = {"micro_batch_size": size, "world_size": world_size}
            given["consumed_samples"] = 0 if by_state else start
            data = range(order.num_samples)
            ranks = [PlanIterator(data, order, rank=rank, **given) for rank in range(world_size)]
            for each in ranks if by_state else []:
                each.load_state(state)
            loops = [wrapped(each) for each in ranks]
            places, consumed = islice(stream(order), start, None), start
            for more in accumulate(rises):
                read = [[next(each).tolist() for each in loops] for _ in range(num + more)]
                assert {size} == {len(batch) for step in read for batch in step}
                together = [index for step in read for batch in step for index in batch]
                assert [*islice(places, len(together))] == together, consumed
                steps, consumed = [*steps, *read], consumed + len(together)
                assert {consumed} == {each.consumed_samples for each in ranks}
            (state, *others) = [each.save_state() for each in ranks]
            assert all(state == other for other in others)
            saved.append((consumed, state, steps))
            plan, ledger = ranks[0].plan, ip.Ledger(Path(folder, "run.ledger"))
            rest = plan.resume(plan.cursor_at(start))
            ledger.begin(rest)
            ledger.record(rest, plan.cursor_at(consumed))
            Listed(steps=steps).check(ip.Ledger(ledger.path))
            story.count("", "samples consumed", consumed - start)


def stream(order: ip.Order) -> Iterator[int]:
    """Yield the index at each place of a run, epoch by epoch."""
    epoch = 0
    while True:
        yield from order.take(epoch, 0, order.num_units(epoch)).tolist()
        epoch += 1
