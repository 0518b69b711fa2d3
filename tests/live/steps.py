"""What the steps of a run read, from lists alone: the oracle of live runs."""

from __future__ import annotations

from collections.abc import Iterator

import indexplan as ip

Read = tuple[int, int]  # epoch, sample


def steps(plan: ip.Plan) -> Iterator[list[Read]]:
    """Yield the reads of each step of a run from its start on, in order, for ever.

    Of a plan with one `global_batch_size`, without sub-epochs and balance, whose epochs have
    equally many units.
    """
    size = plan.global_batch_size
    whole = ip.Plan(plan.order, world_size=1, batch_size=plan.order.num_samples)
    assert isinstance(size, int)
    if plan.remainder == "carry":
        stream = _stream(whole)
        while True:
            yield [next(stream) for _ in range(size)]
    epoch = 0
    while True:
        reads = _epoch(whole, epoch)
        if plan.remainder == "drop":
            reads = reads[: len(reads) // size * size]
        if plan.remainder == "pad":
            short = -len(reads) % size
            reads += (reads * size)[:short]
        count = -(-len(reads) // size)
        each, more = divmod(len(reads), count)
        for number in range(count):  # the first `more` steps have one more
            length = each + (number < more)
            yield reads[:length]
            reads = reads[length:]
        epoch += 1


def _epoch(whole: ip.Plan, epoch: int) -> list[Read]:
    return [(epoch, index) for index in whole.batch(epoch, step=0, rank=0).tolist()]


def _stream(whole: ip.Plan) -> Iterator[Read]:
    epoch = 0
    while True:
        yield from _epoch(whole, epoch)
        epoch += 1
