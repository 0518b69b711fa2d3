"""What docstrings and pages say of an order holds in epochs 0 to 5, and after resumes elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np
import pytest

import indexplan as ip

EPOCHS = range(6)
LENGTHS = [3, 9, 2, 7, 7, 1, 12, 5, 40, 8, 4, 6] * 5
LABELS = np.repeat([0, 1, 2, 3, 4, 5], [30, 7, 9, 10, 11, 20])
SPLIT = ip.Split(101, {"train": 0.8, "val": 0.2}, seed=3)
PART = ip.Split(len(LABELS), {"train": 3, "val": 1}, seed=1)["train"]
KEPT = PART.take(0, 0, PART.num_units(0))
Units = list[list[int]]  # the samples of each unit of an epoch, in the order in which it is read


def read(order: ip.Order) -> Iterator[Units]:
    """Yield what six epochs read: one run that was resumed in each epoch on other ranks."""
    plan, cursor = ip.Plan(order, world_size=3, global_batch_size=6), None
    for epoch in EPOCHS:
        epoch_units: Units = []
        for world_size in (3, 2):
            again = plan.replace(world_size=world_size)
            again = again if cursor is None else again.resume(cursor)
            steps = again.steps(epoch)
            stop = (steps.start + steps.stop) // 2 if world_size == 3 else steps.stop
            for step in range(steps.start, stop):
                for rank in range(world_size):
                    batch = again.units(epoch, step=step, rank=rank)
                    ends = pairwise(batch.offsets.tolist())
                    epoch_units += [batch.samples[low:high].tolist() for low, high in ends]
            cursor = again.cursor(epoch, step=stop)
        yield epoch_units


def flat(units: Units) -> list[int]:
    """Return the samples of some units."""
    return [sample for unit in units for sample in unit]


def counts_within(most: int, group_of: Callable[[int], int]) -> Callable[[list[Units]], bool]:
    """Return whether groups are read equally often, up to `most`, over any epochs in a row."""

    def check(epochs: list[Units]) -> bool:
        spreads = []
        for start in EPOCHS:
            for stop in range(start + 1, len(EPOCHS) + 1):
                some = [s for units in epochs[start:stop] for s in flat(units)]
                counts = Counter(map(group_of, some))
                spreads.append(max(counts.values()) - min(counts.values()))
        return max(spreads) <= most

    return check


def in_each(check: Callable[[Units], bool]) -> Callable[[list[Units]], bool]:
    """Return whether each epoch keeps a promise."""
    return lambda epochs: all(map(check, epochs))


def rows_of_classes(units: Units) -> bool:
    """Return whether no class or sample comes twice in a batch of ClassBatches."""
    classes = [LABELS[unit].reshape(2, 3).tolist() for unit in units]
    once = all(len({each[0] for each in batch}) == 2 for batch in classes)
    return once and all(len(set(unit)) == 6 for unit in units)


PROMISES: dict[str, tuple[ip.Order, Callable[[list[Units]], bool]]] = {
    "LocalShuffle moves samples inside their window": (
        ip.LocalShuffle(60, window=7, seed=1),
        in_each(lambda units: sorted(flat(units)) == list(range(60))),
    ),
    "Split reads its part in each epoch, and no other sample": (
        SPLIT["train"],
        in_each(lambda units: not set(flat(units)) & set(SPLIT["val"].take(0, 0, 20).tolist())),
    ),
    "Epochs reads no sample twice before all were read": (
        ip.Epochs(ip.Shuffle(50), 17),
        counts_within(2, lambda sample: sample),
    ),
    "ClassBalanced reads classes equally often": (
        ip.ClassBalanced(LABELS, epoch_size=60, seed=1),
        counts_within(2, lambda sample: int(LABELS[sample])),
    ),
    "ClassBatches holds different classes and samples": (
        ip.ClassBatches(LABELS, classes=2, per_class=3, seed=1),
        in_each(rows_of_classes),
    ),
    "Grouped deals bins of one group": (
        ip.Grouped(LABELS, 4, seed=1),
        in_each(lambda units: all(len(set(LABELS[unit].tolist())) == 1 for unit in units)),
    ),
    "Grouped keeps a bin's group without some samples": (
        ip.Without(ip.Grouped(LABELS, 4, seed=1), [0, 40, 50]),
        in_each(
            lambda units: (
                all(len(set(LABELS[unit].tolist())) == 1 for unit in units)
                and not {0, 40, 50} & set(flat(units))
            )
        ),
    ),
    "TokenBudget keeps its budget, padding included": (
        ip.TokenBudget(LENGTHS, 40, seed=1),
        in_each(lambda units: all(len(u) * max(LENGTHS[s] for s in u) <= 40 for u in units)),
    ),
    "ClassBatches without a sample keeps whole batches, by unit": (
        ip.Without(ip.ClassBatches(LABELS, classes=2, per_class=3, seed=1), [31, 40], cut="unit"),
        in_each(lambda units: rows_of_classes(units) and not {31, 40} & set(flat(units))),
    ),
    "ClassBalanced of a part of a Split": (
        ip.Subset(ip.ClassBalanced(LABELS[KEPT], epoch_size=60), PART, len(LABELS)),
        lambda epochs: (
            counts_within(2, lambda sample: int(LABELS[sample]))(epochs)
            and {sample for units in epochs for sample in flat(units)} <= set(KEPT.tolist())
        ),
    ),
    "Mixture keeps its shares over a Subset": (
        ip.Mixture(
            {"a": ip.Subset(ip.Shuffle(39, seed=1), range(1, 40), 40), "b": ip.Shuffle(60)},
            {"a": 1, "b": 1},
            epoch_size=50,
        ),
        in_each(lambda units: sum(s < 40 for s in flat(units)) == 25 and 0 not in flat(units)),
    ),
    "curriculum reads the easier half, then all": (
        ip.curriculum(np.arange(60), [(0, 0.5), (90, 1)], epoch_size=30, seed=1),
        lambda epochs: (
            all(max(flat(units)) < 30 for units in epochs[:3])
            and all(max(flat(units)) >= 30 for units in epochs[3:])
        ),
    ),
    "Packed keeps its length": (
        ip.Packed(LENGTHS, 50, seed=1),
        in_each(lambda units: all(sum(LENGTHS[s] for s in unit) <= 50 for unit in units)),
    ),
    "Repeat reads each copy": (
        ip.Repeat(ip.Shuffle(20), 3, span=6),
        in_each(lambda units: set(Counter(flat(units)).values()) == {3}),
    ),
    "Weighted reads a sample so often or once more": (
        ip.Weighted(np.arange(1, 21), 105, seed=1),
        in_each(
            lambda units: all(
                (s + 1) // 2 <= flat(units).count(s) <= (s + 2) // 2 for s in range(20)
            )
        ),
    ),
}


@pytest.mark.parametrize("promise", PROMISES)
def test_promises_hold_in_every_epoch(promise: str) -> None:
    """In epochs 0 to 5, each of which is stopped in its middle and resumed on other ranks."""
    order, check = PROMISES[promise]
    assert check(list(read(order)))


def test_shards_of_a_window_are_read_together() -> None:
    """In each epoch, two shards after two others, where there is one lane."""
    order = ip.ShardShuffle([10] * 12, window=2, lanes=1, stripe=4, seed=1)
    for epoch in EPOCHS:
        shards = (order.take(epoch, 0, 120) // 10).reshape(6, 20)
        assert all(len(set(window.tolist())) == 2 for window in shards)


def test_local_shuffle_moves_by_less_than_its_window() -> None:
    """In each epoch, so that a sample lies near where it was."""
    order = ip.LocalShuffle(60, window=7, seed=1)
    for epoch in EPOCHS:
        assert np.abs(order.take(epoch, 0, 60) - np.arange(60)).max() < 7


def test_removed_samples_are_not_replaced() -> None:
    """As removals.md says: the source that loses samples is read less, and the other as before."""
    mixture = ip.Mixture({"a": ip.Shuffle(40, seed=1), "b": ip.Shuffle(60)}, {"a": 1, "b": 1})
    left = ip.Without(mixture, range(0, 40, 2))
    for units, before in zip(read(left), read(mixture), strict=True):
        assert flat(units) == [s for s in flat(before) if s >= 40 or s % 2]


@pytest.mark.parametrize(
    "inside",
    [
        ip.Shuffle(120),
        ip.Shuffle(121),
        ip.Epochs(ip.Shuffle(120), 41),
        ip.Without(ip.Shuffle(121), [3, 50]),
        ip.Mixture({"a": ip.Epochs(ip.Shuffle(121), 121)}, {"a": 1}),
    ],
)
def test_copies_share_a_step(inside: ip.Order) -> None:
    """Under "drop", as subsets.md says, in all epochs and after a resume on fewer ranks."""
    order = ip.Repeat(inside, copies=3, span=24)
    plan = ip.Plan(order, world_size=4, global_batch_size=24, remainder="drop")
    resumed = plan.replace(world_size=3).resume(plan.cursor(1, step=5))
    for each, ranks in ((plan, 4), (resumed, 3)):
        for epoch in range(each.start.epoch, 6):
            for step in each.steps(epoch):
                parts = [each.batch(epoch, step=step, rank=rank) for rank in range(ranks)]
                assert {3} == set(Counter(np.concatenate(parts).tolist()).values())
