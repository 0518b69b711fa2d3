"""What a history draws: orders, partitions, and where a leg stops; all from one `Random`."""

from __future__ import annotations

import math
from random import Random
from typing import Any, NamedTuple

import indexplan as ip
from indexplan.partition.remainders import REMAINDERS
from tests.support.bins import Bins, ChangingBins
from tests.support.planned import planned

MOST_RANKS = 200
MOST_SUB_EPOCHS = 130
LAST_EPOCH = 2**32 - 1


class Part(NamedTuple):
    """The steps [start, stop) of a sub-epoch."""

    epoch: int
    sub_epoch: int
    start: int
    stop: int


def log_uniform(random: Random, most: int) -> int:
    """Return a number from 1 to `most`; small ones are as likely as large ones."""
    return min(most, int(2 ** random.uniform(0, (most + 1).bit_length())))


def order(random: Random, *, huge: bool) -> ip.Order:
    """Return an order of any kind; a huge one has 2**33 to 2**62 samples."""
    n = random.getrandbits(random.randint(34, 62)) | 2**33 if huge else num_samples(random)
    seed = random.choice([0, 1, random.getrandbits(32), random.getrandbits(128)])
    kind = random.choices(
        [ip.Shuffle, ip.BlockShuffle, ip.Sequential, Bins, ChangingBins],
        [45, 20, 10, 0 if huge else 9, 0 if huge else 9],
    )[0]
    if kind is ip.Shuffle:
        return ip.Shuffle(n, seed)
    if kind is ip.BlockShuffle:
        return ip.BlockShuffle(
            n, log_uniform(random, min(n + 2, 2**20)), random.randint(1, 8), seed
        )
    return kind(n if kind is ip.Sequential else min(n, 300))


def num_samples(random: Random) -> int:
    """Return how many samples a dataset holds that is counted one by one."""
    most = random.choices([4, 40, 300, 3000, 50_000], [15, 35, 35, 14, 1])[0]
    return random.randint(1, most)


def sub_epochs(random: Random, num_units: int, *, huge: bool) -> int:
    """Return how many sub-epochs an epoch has; more than it has units, at times."""
    most = 2**20 if huge else min(num_units + 9, MOST_SUB_EPOCHS)
    return random.choices([1, random.randint(1, 9), random.randint(1, most)], [50, 30, 20])[0]


def world_size(random: Random, most: int = MOST_RANKS) -> int:
    """Return a number of ranks: mostly few, any up to 200."""
    return min(most, random.randint(1, random.choices([6, 32, MOST_RANKS], [92, 6, 2])[0]))


def size(random: Random, most: int) -> Any:
    """Return a batch size, nested at times."""
    if random.random() < 0.3:
        nested = tuple(random.randint(1, 4) for _ in range(random.randint(1, 3)))
        return nested if math.prod(nested) <= most else (1, most)
    return log_uniform(random, most)


def partition(random: Random, run: ip.Plan, near: ip.Cursor, most_ranks: int) -> dict[str, Any]:
    """Return the fields of a plan that may change whenever a run goes on."""
    constant = run.order.constant_num_units
    remainders = sorted(REMAINDERS, key="spread".__ne__)
    remainder = random.choice([r for r in remainders if constant or not REMAINDERS[r].crosses])
    name, most = random.choice([("batch_size", 12), ("global_batch_size", 150)])
    ranks = world_size(random, most_ranks)
    if remainder == "carry":  # steps of at most some fifty epochs
        most = min(most, 50 * run.order.num_units(0) // (ranks if name == "batch_size" else 1) + 1)
    batch = size(random, most)
    if random.random() < 0.35:
        batch = phases(random, run, near, most)
    fields = {"world_size": ranks, name: batch, "remainder": remainder}
    made = planned(run.order, sub_epochs=run.sub_epochs, **fields)
    return {**fields, "remainder": made.remainder}


def phases(random: Random, run: ip.Plan, near: ip.Cursor, most: int) -> list[ip.Phase]:
    """Return a schedule, by stream places and by sub-epochs, with phases where the run stands."""
    n, parts = run.order.num_units(near.epoch), run.sub_epochs
    ats: dict[Any, Any] = {}
    for _ in range(random.randint(0, 4)):
        epoch = min(near.epoch + random.choice([0, 0, 1, 2]), LAST_EPOCH)
        sub_epoch = min(max(0, near.sub_epoch + random.randint(-2, 6)), parts - 1)
        if random.random() < 0.3:
            sub_epoch = random.randrange(parts)
        if not run.order.constant_num_units:
            ats[epoch, sub_epoch] = epoch, sub_epoch  # places are not known, so pairs compare
        elif random.random() < 0.5:
            ats[epoch * n + start_of(n, parts, sub_epoch)] = epoch, sub_epoch
        else:
            place = near.epoch * n + near.position + random.randint(-n, min(n, 1000))
            ats[max(1, place)] = max(1, place)
    later = [ats[place] for place in sorted(ats) if place not in (0, (0, 0))]
    first = random.choice([0, (0, 0)])
    named = random.random() < 0.5
    return [
        ip.Phase(at, size(random, most), {"resolution": 32 * number} if named else {})
        for number, at in enumerate([first, *later], 1)
    ]


def start_of(num_units: int, parts: int, part: int) -> int:
    """Return where a part starts, when the first parts take the units that are left over."""
    each, more = divmod(num_units, parts)
    return part * each + min(part, more)


def parts(random: Random, plan: ip.Plan, *, most_steps: int) -> list[Part]:
    """Return what a leg runs: from the plan's start to anywhere in one of the next sub-epochs."""
    found: list[Part] = []
    epoch, sub_epoch = plan.start.epoch, plan.start.sub_epoch
    ahead = random.choices([0, 1, 2, 3], [60, 20, 10, 10])[0]
    while True:
        steps = plan.steps(epoch, sub_epoch)
        start, num_steps = steps.start, steps.stop
        last = min(num_steps, start + most_steps)
        if ahead == len(found) or last < num_steps:
            stop = random.choices(
                [start, last, random.randint(start, last), min(last, start + 3)], [8, 20, 52, 20]
            )[0]
            return [*found, Part(epoch, sub_epoch, start, stop)]
        found.append(Part(epoch, sub_epoch, start, num_steps))
        epoch, sub_epoch = divmod(epoch * plan.sub_epochs + sub_epoch + 1, plan.sub_epochs)


def parts_to_the_end(plan: ip.Plan) -> list[Part]:
    """Return all that is left of the epoch in which a plan starts."""
    epoch = plan.start.epoch
    left = range(plan.start.sub_epoch, plan.sub_epochs)
    steps = [(part, plan.steps(epoch, part)) for part in left]
    return [Part(epoch, part, each.start, each.stop) for part, each in steps]
