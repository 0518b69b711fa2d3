"""What nodes download: ShardShuffle, compared with MosaicML Streaming's partition and shuffle.

Streaming's code deals a whole epoch's samples to ranks, and `indexplan.traffic` counts both; tests
compare its counts with plain sets. 8 ranks a node, 32 samples a rank and step. It takes a quarter
of an hour, nearly all of it for Streaming's shuffles of 1e5 shards.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

import indexplan as ip
from benchmarks.contenders.planners import streaming_code
from benchmarks.render.tables import power
from indexplan.orders import Traits

RANKS, BATCH = 8, 32
NODES = (1, 4, 16, 64)
OTHERS = {1: 4, 4: 1, 16: 4, 64: 16}
"""Nodes that a run goes on with, in the middle of the epoch."""
SHARDS = {1000: 4096, 100_000: 512}
"""Shards, and the samples that each has in the mean."""
SPREAD = 0.7
"""Of the logarithm of uneven sizes."""
LABELS = 10
RULES = "py1e", "py1s", "py1br"
OURS, NARROW = "ShardShuffle", "ShardShuffle, window 1"
Record = dict[str, Any]
Array = NDArray[np.int64]


class Case(NamedTuple):
    """Shards, and who reads them."""

    num_shards: int
    even: bool
    nodes: int
    mean: int

    @property
    def step(self) -> int:
        """Samples of a global batch."""
        return self.nodes * RANKS * BATCH

    @property
    def mixes(self) -> bool:
        """Whether it is looked at how evenly labels are mixed, too: of uneven shards, 16 nodes."""
        return not self.even and self.nodes == 16

    def sizes(self) -> Array:
        """Return the samples in each shard."""
        if self.even:
            return np.full(self.num_shards, self.mean, np.int64)
        random = np.random.default_rng(self.num_shards)
        drawn = random.lognormal(np.log(self.mean) - SPREAD**2 / 2, SPREAD, self.num_shards)
        return np.maximum(drawn.astype(np.int64), 1)

    def lanes(self) -> dict[str, int]:
        """Return lanes that nodes can share, and a stripe that the global batch divides."""
        lanes = max(64, 4 * self.nodes)
        return {"lanes": lanes, "stripe": 64 * lanes}


@dataclass(frozen=True, eq=False)
class Dealt(ip.Order):
    """The row of samples that somebody else dealt, step after step."""

    row: Array
    num_samples: int

    algorithm = "dealt-by-others"
    traits = Traits(reads="any")

    def num_units(self, epoch: int) -> int:  # noqa: ARG002 (of one epoch)
        """Return its length."""
        return len(self.row)

    def to_dict(self) -> Record:
        """Return what a plan asks of its kind."""
        return {"algorithm": self.algorithm}

    def fill(self, epoch: int, starts: Array, stops: Array, out: Array) -> None:  # noqa: ARG002, D102
        done = 0
        for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
            out[done : done + stop - start] = self.row[start:stop]
            done += stop - start


def shuffled(case: Case, sizes: Array, rule: str) -> Array:
    """Return the order of an epoch's samples in Streaming's canonical nodes, by its defaults."""
    _, get_shuffle = streaming_code()
    num = canonical(case, rule)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # blocks smaller than a shard
        found: Array = get_shuffle(rule, sizes, num, 1, 0, max(4_000_000 // num, 2**18))
    return found


def canonical(case: Case, rule: str) -> int:
    """Return Streaming's canonical nodes: py1s has 64 for each node that there is."""
    return case.nodes * (64 if rule == "py1s" else 1)


def streaming(case: Case, rule: str, order: Array, nodes: int, done: int = 0) -> ip.Plan:
    """Return what Streaming's ranks read, on some nodes, after some samples."""
    get_partitions, _ = streaming_code()
    n, batch = len(order), case.step // (nodes * RANKS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few samples for many ranks
        num = canonical(case, rule)
        ids = get_partitions("relaxed", n, num, nodes, RANKS, 1, batch, done, case.nodes)
    # ids: (nodes, ranks per node, workers per rank, batches per worker, batch size)
    row = ids.transpose(3, 0, 1, 2, 4).reshape(ids.shape[3], -1)
    row = order[row[: len(row) - bool((row[-1] < 0).any())].ravel()]  # the last step is not full
    dealt = Dealt(row, n)
    return ip.Plan(dealt, world_size=nodes * RANKS, global_batch_size=case.step, remainder="drop")


def ours(case: Case, sizes: Array, remainder: str, sub_epochs: int, window: int = 2) -> ip.Plan:
    """Return our plan of a case."""
    grid = "stream" if remainder == "carry" else "epoch"
    return ip.Plan(
        ip.ShardShuffle(sizes, grid=grid, **case.lanes(), window=window, seed=1),
        world_size=case.nodes * RANKS,
        global_batch_size=case.step,
        remainder=remainder,
        sub_epochs=sub_epochs,
    )


def counted(
    case: Case,
    plan: ip.Plan,
    who: str,
    how: str = "",
    epoch: int = 0,
    *,
    left: float | None = None,
    sizes: Array | None = None,
) -> Record:
    """Return a row: what the nodes of a plan read in an epoch, or in what is left of it."""
    sizes = case.sizes() if sizes is None else sizes
    found = ip.traffic(plan, sizes, ranks_per_node=RANKS, epochs=[epoch])
    account = plan.account(epoch)
    left = 1 - account.num_finished / account.num_units if left is None else left
    (different,) = found.different
    return {
        "table": f"{power(case.num_shards)} {'even' if case.even else 'uneven'} shards",
        "case": f"{case.nodes} node{'s' * (case.nodes > 1)}",
        "who": who,
        **({"how": f", {how}"} if how else {}),
        "times": found.times[0] / left,
        "live": int(found.live.max()),
        "different": different.mean,
    }


def of_ours(case: Case) -> Iterator[Record]:
    """Yield what is found of ours: every remainder, sub-epochs, and runs that go on elsewhere."""
    sizes = case.sizes()
    for rule in ("drop", "pad", "spread", "carry"):
        epoch = 1 if rule == "carry" else 0  # which begins in the middle of a stripe
        plan = ours(case, sizes, rule, 1)
        yield counted(case, plan, OURS, rule, epoch)
        if rule != "drop" or 40 * case.step <= sizes.sum():  # else no sub-epoch fills a step
            yield counted(case, ours(case, sizes, rule, 40), OURS, f"{rule}, 40 sub-epochs", epoch)
        middle = plan.cursor(epoch, step=plan.steps(epoch).stop // 2)
        rest = plan.replace(world_size=OTHERS[case.nodes] * RANKS).resume(middle)
        yield counted(case, rest, OURS, f"{rule}, gone on", epoch)


def worst(case: Case, window: int = 2) -> Record:
    """Return spread at its worst: of a sample more than so many full steps."""
    sizes = case.sizes()
    sizes[-1] += (1 - int(sizes.sum())) % case.step
    plan = ours(case, sizes, "spread", 1, window)
    who = OURS if window == 2 else NARROW
    return counted(case, plan, who, "spread, at its worst n", sizes=sizes)


def of_narrow(case: Case) -> Iterator[Record]:
    """Yield what is found of ours with windows of one mean shard, where few shards are to live."""
    for rule, sub_epochs in (("drop", 1), ("pad", 1), ("carry", 1), ("carry", 40)):
        plan = ours(case, case.sizes(), rule, sub_epochs, window=1)
        how = rule + ", 40 sub-epochs" * (sub_epochs > 1)
        yield counted(case, plan, NARROW, how, int(rule == "carry"))
    yield worst(case, window=1)


def of_streaming(case: Case, rule: str) -> Iterator[Record]:
    """Yield what is found of one of Streaming's shuffles; of its own, also where a run goes on."""
    sizes, who = case.sizes(), f"Streaming {rule}"
    order = shuffled(case, sizes, rule)
    plan = streaming(case, rule, order, case.nodes)
    row = counted(case, plan, who)
    yield row
    if case.mixes:
        yield mixed(case, plan.order, row)
    if rule == RULES[0]:
        done = plan.steps(0).stop // 2 * case.step
        rest = streaming(case, rule, order, OTHERS[case.nodes], done)
        yield counted(case, rest, who, "gone on", left=1 - done / len(order))


def mixed(case: Case, order: ip.Order, row: Record) -> Record:
    """Return a row of mixing: what was counted, and how evenly labels are mixed."""
    start = {"table": "mixing", "case": power(case.num_shards), "who": row["who"]}
    start["variance"] = variance(order, case.sizes(), case.step)
    return {**start, **{key: row[key] for key in ("different", "live", "times")}}


def variance(order: ip.Order, sizes: Array, step: int) -> float:
    """Return the variance of label counts in global batches, by that of a full shuffle.

    Each shard holds one of ten labels.
    """
    labels = np.random.default_rng(7).integers(0, LABELS, len(sizes))
    of_sample = np.repeat(labels.astype(np.int8), sizes)
    n, num_steps, total = len(of_sample), order.num_units(0) // step, np.zeros(LABELS)
    shares = np.bincount(of_sample, minlength=LABELS) / n
    at_once = max(1, 2**20 // step)
    for first in range(0, num_steps, at_once):
        stop = min(first + at_once, num_steps)
        drawn = of_sample[order.take(0, first * step, stop * step)].reshape(-1, step)
        counts = np.stack([(drawn == label).sum(axis=1) for label in range(LABELS)], axis=1)
        total += ((counts - step * shares) ** 2).sum(axis=0)
    ideal = step * shares * (1 - shares) * (n - step) / (n - 1)
    return float(np.mean(total / num_steps / ideal))


def mixing(case: Case) -> Iterator[Record]:
    """Yield how evenly orders mix labels, and what that costs."""
    sizes = case.sizes()
    n = int(sizes.sum())
    orders: dict[str, ip.Order] = {"Shuffle": ip.Shuffle(n, seed=1)}
    for window in (1, 2, 8):
        order = ip.ShardShuffle(sizes, **case.lanes(), window=window, seed=1)
        orders[f"ShardShuffle, window {window}"] = order
    for lanes in (256, 1024):
        stripe = math.lcm(case.step, lanes)
        order = ip.ShardShuffle(sizes, lanes=lanes, stripe=stripe, seed=1)
        orders[f"ShardShuffle, lanes {lanes}, stripe {stripe}"] = order
    fields: dict[str, Any] = {"global_batch_size": case.step, "remainder": "drop"}
    for name, each in orders.items():
        plan = ip.Plan(each, world_size=case.nodes * RANKS, **fields)
        yield mixed(case, each, counted(case, plan, name))


def rules(case: Case) -> tuple[str, ...]:
    """Return which of Streaming's shuffles are run: they take a minute or two for 1e5 shards.

    Of these, the one that it takes by default, for uneven shards; on 16 nodes all.
    """
    if case.num_shards < 10**5 or case.mixes:
        return RULES
    return () if case.even else RULES[:1]


def measure(*, quick: bool) -> list[Record]:
    """Return all of it as rows; quickly, of few shards on few nodes."""
    shards, nodes = ({100: 256}, (4, 16)) if quick else (SHARDS, NODES)
    rows: list[Record] = []
    for (num, mean), even, each in itertools.product(shards.items(), (True, False), nodes):
        case = Case(num, even, each, mean)
        rows += of_ours(case)
        for rule in rules(case):
            rows += of_streaming(case, rule)
        if case.mixes:
            rows += [worst(case), *of_narrow(case), *mixing(case)]
    return rows


@pytest.mark.nightly
def test_shards(whole: Callable[..., Any]) -> None:
    """Measure all of it."""
    whole(measure)
