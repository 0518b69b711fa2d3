"""What docstrings and pages state of each order, as (name, make an order, property) in one table.

A property is asked of six epochs, which runs that stop read too, as tests/orders/test_every_order
shows. Each is written from its sentence alone, with lists and counters.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import indexplan as ip
from tests.orders.test_classes import balanced, batches
from tests.orders.test_shuffles import made, shards
from tests.orders.test_windows import documents, order_of, tokens_of, windows
from tests.support.examples import examples
from tests.support.lengths import groupeds, length_grouped, packeds, token_budgets
from tests.support.reweighted import reweighted
from tests.support.units import units_of

Units: TypeAlias = list[list[Any]]  # the samples of each unit of an epoch, in the order of reading
Run: TypeAlias = list[Units]
Draw: TypeAlias = Callable[..., Any]
Property: TypeAlias = Callable[[Any, Run], bool]


class Promise(NamedTuple):
    """An order that is drawn, and what is stated of it."""

    make: Callable[[Draw], ip.Order]
    holds: Property


seeds = st.integers(0, 2**128 - 1)
sizes = st.integers(1, 50)


def flat(units: Iterable[Sequence[Any]]) -> list[Any]:
    """Return the samples of some units."""
    return [sample for unit in units for sample in unit]


def each_epoch(holds: Callable[[Any, Units], bool]) -> Property:
    """Return whether each epoch by itself keeps a promise."""
    return lambda order, run: all(holds(order, units) for units in run)


def each_unit(holds: Callable[[Any, list[Any]], bool]) -> Property:
    """Return whether each unit by itself keeps a promise."""
    return each_epoch(lambda order, units: all(holds(order, unit) for unit in units))


def both(*properties: Property) -> Property:
    """Return whether all of some properties hold."""
    return lambda order, run: all(holds(order, run) for holds in properties)


def spread_of(values: Iterable[Any], among: Iterable[Any]) -> int:
    """Return by how much the counts of some things differ at most."""
    counts = Counter(dict.fromkeys(among, 0))
    counts.update(values)
    return max(counts.values()) - min(counts.values())


once = each_epoch(lambda order, units: sorted(flat(units)) == list(range(order.num_samples)))


def other_sequences(order: Any, run: Run) -> bool:
    """Return whether no two epochs read in the same sequence, if there are many."""
    long = order.num_units(0) >= 20
    return not long or len({str(units) for units in run}) == len(run)


# --- orders of single samples


def blocks_by_windows(order: Any, units: Units) -> bool:
    """Return whether each stretch between places at which no block is half read is a window."""
    left: Counter[int] = Counter(s // order.block_size for s in range(order.num_samples))
    begun: set[int] = set()
    num_blocks = []
    for sample in flat(units):
        block = sample // order.block_size
        begun.add(block)
        left[block] -= 1
        if not any(left[each] for each in begun):
            num_blocks.append(len(begun))
            begun = set()
    return max(num_blocks) <= int(order.window)


def stays_local(order: Any, run: Run) -> bool:
    """Return whether samples keep their windows, and reads of a sample their distance."""
    at = [{sample: place for place, sample in enumerate(flat(units))} for units in run]
    num, window = order.num_samples, order.window
    near = all(place // window == s // window for each in at for s, place in each.items())
    apart = min((num + b[s] - a[s] for a, b in pairwise(at) for s in a), default=num)
    return near and apart >= num - window + 1


# --- shards


def lane_rows(order: Any, run: Run) -> list[list[list[int]]]:
    """Return, for each epoch and lane, the samples that it reads in turn."""
    turn = order.stripe // order.lanes
    rows: list[list[list[int]]] = []
    for epoch, units in enumerate(run):
        shift = epoch * order.num_samples % order.stripe if order.grid == "stream" else 0
        rows.append([[] for _ in range(order.lanes)])
        for place, sample in enumerate(flat(units), shift):
            rows[-1][place % order.stripe // turn].append(sample)
    return rows


def shard_of(order: Any, sample: int) -> int:
    """Return the shard of a sample."""
    return int(np.searchsorted(np.cumsum(order.sizes.array), sample, "right"))


def lanes_hold_few_shards(order: Any, run: Run) -> bool:
    """Return whether each lane reads a stretch of whole shards, but for one at either end."""
    whole = Counter(shard_of(order, sample) for sample in range(order.num_samples))
    for lanes in lane_rows(order, run):
        for row in lanes:
            held = Counter(shard_of(order, sample) for sample in row)
            if sum(count < whole[shard] for shard, count in held.items()) > 2:
                return False
    return True


def lanes_keep_shards(order: Any, run: Run) -> bool:
    """Return whether a sticky lane reads the same samples in all epochs that begin with it."""
    if not order.sticky or order.grid == "stream":
        return True
    first, *others = [[sorted(row) for row in lanes] for lanes in lane_rows(order, run)]
    return all(each == first for each in others)


def windows_of_shards(order: Any, run: Run) -> bool:
    """Return whether each window of a lane is a stretch of its row: few shards, others not yet."""
    mean = -(-order.num_samples // len(order.sizes))
    turn = order.stripe // order.lanes
    window = -(-order.window * mean // turn) * turn
    for lanes in lane_rows(order, run):
        for row in lanes:
            seen: dict[int, set[int]] = {}
            for place, sample in enumerate(row):
                seen.setdefault(shard_of(order, sample), set()).add(place // window)
            if any(max(each) - min(each) >= len(each) for each in seen.values()):
                return False
    return True


# --- weights and classes


def weighted(draw: Draw) -> ip.Weighted:
    """Draw weights, some of them 0, which change up to twice, or have a limit of reads."""
    row = draw(st.lists(st.integers(0, 9), min_size=1, max_size=20).filter(any))
    if draw(st.booleans()):
        most = draw(st.integers(1, 3))
        size = draw(st.integers(1, most * sum(map(bool, row))))
        return ip.Weighted(row, size, seed=draw(seeds), max_repeats=most)
    order = ip.Weighted(row, draw(sizes), seed=draw(seeds))
    for epoch in sorted(draw(st.sets(st.integers(1, 5), max_size=2))):
        changed = draw(st.lists(st.integers(1, 9), min_size=len(row), max_size=len(row)))
        order = reweighted(order, epoch, changed)
    return order


def as_often_as_weighted(order: Any, run: Run) -> bool:
    """Return whether each epoch reads a sample floor(E) or ceil(E) times, or never too often.

    As long as weights stay, counts over all epochs so far are within a few reads of expected ones.
    """
    if order.max_repeats:
        return all(max(Counter(flat(units)).values()) <= order.max_repeats for units in run)
    rows = order.weights if isinstance(order.weights, tuple) else ((0, order.weights),)
    total: Counter[int] = Counter()
    for epoch, units in enumerate(run):
        weights = [row.array.tolist() for at, row in rows if at <= epoch][-1]
        expected = [Fraction(w) * order.epoch_size / sum(map(Fraction, weights)) for w in weights]
        counts = Counter(flat(units))
        total += counts
        if any(abs(counts[s] - each) >= 1 for s, each in enumerate(expected)):
            return False
        off = [abs(total[s] - (epoch + 1) * each) for s, each in enumerate(expected)]
        if len(rows) == 1 and max(off) > 3:
            return False
    return True


def classes_as_stated(order: Any, run: Run) -> bool:
    """Return whether classes are read in turn, or as weighted."""
    if order.weights is None:
        return classes_in_turn(order, run) and no_sample_of_a_class_before_all(order, run)
    exact = all(exact_shares_of_classes(order, units) for units in run)
    return exact and classes_even_after_epochs(order, run)


def classes_in_turn(order: Any, run: Run) -> bool:
    """Return whether each n reads of the run hold each of n classes once."""
    table = order.labels.array
    read = [int(table[sample]) for units in run for sample in flat(units)]
    num = len(set(table.tolist()))
    parts = [read[at : at + num] for at in range(0, len(read), num)]
    return all(len(set(part)) == len(part) for part in parts)


def no_sample_of_a_class_before_all(order: Any, run: Run) -> bool:
    """Return whether a class reads all of its samples before it reads one again."""
    table = order.labels.array.tolist()
    for label in set(table):
        members = members_of(table, label)
        read = [s for units in run for s in flat(units) if table[s] == label]
        rounds = [read[at : at + len(members)] for at in range(0, len(read), len(members))]
        if any(len(set(each)) < len(each) for each in rounds):
            return False
    return True


def classes_even_after_epochs(order: Any, run: Run) -> bool:
    """Return whether a class has read its samples equally often after each epoch."""
    table, read = order.labels.array.tolist(), []
    for units in run:
        read += flat(units)
        for label in set(table):
            members = members_of(table, label)
            if spread_of([sample for sample in read if table[sample] == label], members) > 1:
                return False
    return True


def exact_shares_of_classes(order: Any, units: Units) -> bool:
    """Return whether an epoch reads each class as its weight says, by largest remainder."""
    table = order.labels.array.tolist()
    weights = dict(zip(sorted(set(table)), order.weights.array.tolist(), strict=True))
    total = sum(map(Fraction, weights.values()))
    exact = {each: Fraction(w) * order.epoch_size / total for each, w in weights.items()}
    shares = {label: int(each) for label, each in exact.items()}
    by_rest = sorted(exact, key=lambda label: (shares[label] - exact[label], label))
    for label in by_rest[: order.epoch_size - sum(shares.values())]:
        shares[label] += 1
    counts = Counter(table[sample] for sample in flat(units))
    return all(counts[label] == share for label, share in shares.items())


def batches_as_stated(order: Any, run: Run) -> bool:
    """Return whether batches are class by class, and rows of them use all classes equally often.

    A class that is too small is left out, or its samples are read round after round.
    """
    table, k = order.labels.array.tolist(), order.per_class
    names = [
        label
        for label, count in sorted(Counter(table).items())
        if order.short != "leave_out" or count >= k
    ]
    used: list[set[int]] = []
    read: dict[int, list[int]] = {label: [] for label in names}
    for unit in flat(run):
        parts = {table[unit[at]]: unit[at : at + k] for at in range(0, len(unit), k)}
        for label, part in parts.items():
            members = members_of(table, label)
            if label not in names or {*part} - {*members}:
                return False
            read[label] += part
            if spread_of(part if len(members) >= k else read[label], members) > 1:
                return False
        used.append({*parts})
    row = len(names) // order.classes
    total: Counter[int] = Counter()
    for at in range(0, len(used) - row + 1, row):
        counts = Counter(label for labels in used[at : at + row] for label in labels)
        total.update(counts)
        if max(counts.values()) > 1 or spread_of(total.elements(), names) > 1:
            return False
    return all(len(each) == order.classes for each in used)


def members_of(table: list[int], label: int) -> list[int]:
    """Return the samples of a class."""
    return [sample for sample, each in enumerate(table) if each == label]


# --- windows of tokens


def tokens_predicted_once(order: Any, run: Run) -> bool:
    """Return whether targets are as stated: which, how many, in which window, and each once."""
    length, overlap, num = order.length, order.overlap, order.num_samples
    for epoch, units in enumerate(run):
        starts = flat(units)
        targets = [t for s in starts for t in range(s + overlap, s + overlap + length)]
        lost = num - len(targets)
        first = order.targets(epoch).start
        in_window = {t: s for s in starts for t in range(s + overlap, s + overlap + length)}
        right = (
            sorted(targets) == list(order.targets(epoch))
            and max(targets) < num
            and lost < (1 + order.shift) * length + overlap
            and all(s == t - (t - first) % length - overlap for t, s in in_window.items())
            and (order.shift or sorted(starts) == [length * i for i in range(len(starts))])
        )
        if not right:
            return False
    return len({len(units) for units in run}) == 1


def documents_laid_out_once(order: Any, run: Run) -> bool:
    """Return whether windows are full, and no token is a target twice, or many never."""
    rows, overlap = order.lengths.array.tolist(), order.overlap
    for units in run:
        targets: list[tuple[int, int]] = []
        for unit in units:
            tokens = [(doc, token) for doc, low, high in unit for token in range(low, high)]
            if len(tokens) != order.length + overlap:
                return False
            for (one, _, high), (other, low, _) in pairwise(unit):  # whole documents, in a row
                if high != rows[one] or low != 0 or one == other:
                    return False
            targets += tokens[overlap:]
        lost = sum(rows) - len(targets)
        if len(set(targets)) < len(targets) or lost >= order.length + overlap:
            return False
        if len(units) != (sum(rows) - overlap) // order.length:
            return False
    return True


# --- bins


def same_number_of_bins(_order: Any, run: Run) -> bool:
    """Return whether all epochs have equally many bins, of the same sizes."""
    return all(sorted(map(len, units)) == sorted(map(len, run[0])) for units in run)


def padded(order: Any, unit: list[int]) -> int:
    """Return the tokens of a bin, padding included."""
    return int(order.lengths.array[unit].max()) * len(unit)


def in_multiples(order: Any, units: Units) -> bool:
    """Return whether bins with more samples than this hold a multiple of it, except one."""
    counts = [len(unit) for unit in units]
    odd = [n for n in counts if n > order.multiple_of and n % order.multiple_of]
    return len(odd) <= 1 and max(counts) <= (order.max_samples or max(counts))


def full_but_one(order: Any, units: Units) -> bool:
    """Return whether all bins but one have as many samples as they say."""
    odd = [unit for unit in units if len(unit) != order.batch_size]
    return len(odd) <= 1 and all(len(unit) < order.batch_size for unit in odd)


def of_one_group(order: Any, unit: list[int]) -> bool:
    """Return whether a bin holds one group, and no more samples than it may."""
    groups = {int(order.groups.array[sample]) for sample in unit}
    return len(groups) == 1 and len(unit) <= most_of(order, groups.pop())


def most_of(order: Any, group: int) -> int:
    """Return how many samples a bin of a group holds."""
    return order.batch_size if isinstance(order.batch_size, int) else dict(order.batch_size)[group]


def full_but_one_of_each(order: Any, units: Units) -> bool:
    """Return whether all bins are full, but for one of each group."""
    groups = [int(order.groups.array[unit[0]]) for unit in units]
    short = [g for g, unit in zip(groups, units, strict=True) if len(unit) < most_of(order, g)]
    return len(set(short)) == len(short)


def fits_in_row(order: Any, unit: list[int]) -> bool:
    """Return whether a bin keeps to its tokens and samples."""
    most, tokens = order.max_samples, int(order.lengths.array[unit].sum())
    return tokens <= int(order.max_length) and len(unit) <= (most or len(unit))


def longest_first(order: Any, unit: list[int]) -> bool:
    """Return whether the longest samples of a bin come first, if lengths count as they are."""
    rows = order.lengths.array[unit].tolist()
    return bool(order.min_stratum > 1 or rows == sorted(rows, reverse=True))


ORDERS: dict[str, Promise] = {
    "Shuffle reads all once, in a new order": Promise(
        lambda draw: ip.Shuffle(draw(sizes), draw(seeds)), both(once, other_sequences)
    ),
    "BlockShuffle reads all once, a window of blocks at a time": Promise(
        lambda draw: ip.BlockShuffle(
            draw(sizes), draw(st.integers(1, 9)), draw(st.integers(1, 4)), draw(seeds)
        ),
        both(once, other_sequences, each_epoch(blocks_by_windows)),
    ),
    "LocalShuffle reads all once, near their place": Promise(
        lambda draw: ip.LocalShuffle(draw(sizes), draw(st.integers(1, 9)), draw(seeds)),
        both(once, stays_local),
    ),
    "ShardShuffle reads all once, few shards in a lane at a time, which sticky lanes keep": Promise(
        lambda draw: draw(shards(9, 8).map(made)),
        both(once, lanes_hold_few_shards, windows_of_shards, lanes_keep_shards),
    ),
    "Weighted reads as weighted, and no sample more often than it may": Promise(
        weighted, as_often_as_weighted
    ),
    "ClassBalanced reads its classes in turn, or as weighted": Promise(
        lambda draw: draw(balanced()), classes_as_stated
    ),
    "ClassBatches holds different classes and samples, in rows": Promise(
        lambda draw: draw(batches()), batches_as_stated
    ),
    "TokenWindows predicts its targets once": Promise(
        lambda draw: tokens_of(draw(windows(most=30))), tokens_predicted_once
    ),
    "DocumentWindows lays documents out once": Promise(
        lambda draw: order_of(draw(documents())), documents_laid_out_once
    ),
    "Packed fills rows": Promise(
        lambda draw: draw(packeds(40)),
        both(
            once,
            same_number_of_bins,
            each_unit(fits_in_row),
            each_unit(longest_first),
        ),
    ),
    "TokenBudget keeps its budget": Promise(
        lambda draw: draw(token_budgets(40)),
        both(
            once,
            same_number_of_bins,
            each_unit(lambda order, unit: padded(order, unit) <= order.max_tokens),
            each_epoch(in_multiples),
        ),
    ),
    "LengthGrouped fills all bins but one": Promise(
        lambda draw: draw(length_grouped(40)),
        both(once, same_number_of_bins, each_epoch(full_but_one)),
    ),
    "Grouped fills bins of one group": Promise(
        lambda draw: draw(groupeds(40)),
        both(once, each_unit(of_one_group), each_epoch(full_but_one_of_each)),
    ),
}


@pytest.mark.parametrize("name", ORDERS)
@examples(30)
@given(data=st.data())
def test_what_is_stated_holds_in_every_epoch(name: str, data: st.DataObject) -> None:
    """In epochs 0 to 5."""
    order = ORDERS[name].make(data.draw)
    assert ORDERS[name].holds(order, [units_of(order, epoch) for epoch in range(6)]), order


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
                assert all(len({*part.tolist()}) == len(part) for part in parts)  # of other ranks
