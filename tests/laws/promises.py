"""What docstrings and pages state of each order, as (name, make an order, property) in one table.

A property is asked of six epochs, as a run read them that was stopped in each one and continued on
other ranks. Each is written from its sentence alone, with lists and counters.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from itertools import accumulate, pairwise
from random import Random
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from hypothesis import strategies as st

import indexplan as ip
from tests.orders.test_windows import documents, order_of, tokens_of, windows
from tests.support.lengths import groupeds, length_grouped, packeds, token_budgets
from tests.support.reweighted import reweighted
from tests.support.units import units_of

EPOCHS = range(6)
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
labels = st.lists(st.integers(0, 4), min_size=1, max_size=40)


def read(draw: Draw, order: ip.Order) -> Run:
    """Return six epochs of a run that stops in each of its sub-epochs, and continues elsewhere."""
    total = sum(order.num_units(epoch) for epoch in EPOCHS)
    remainder = draw(st.sampled_from(["spread", "carry"])) if order.constant_num_units else "spread"
    fields: dict[str, Any] = {"remainder": remainder, "sub_epochs": draw(st.integers(1, 3))}
    worlds = [
        ip.Plan(
            order,
            world_size=draw(st.integers(1, 4)),
            global_batch_size=draw(st.integers(1, 16)),
            **fields,
        )
        for _ in range(2)
    ]
    drawn, plan, turn = Random(draw(st.integers(0, 99))), worlds[0], 0  # noqa: S311 (a test)
    stream: Units = []
    where = 0, 0
    while len(stream) < total:
        where = max(where, (plan.start.epoch, plan.start.sub_epoch))
        steps = plan.steps(*where)
        stop = steps.stop if turn % 2 else drawn.randint(steps.start, steps.stop)
        stream += steps_of(plan, where, range(steps.start, stop))
        turn += 1
        plan = worlds[turn % 2].resume(plan.cursor(*where, step=stop))
        if stop == steps.stop:  # a sub-epoch may be empty: its end is its start
            last = where[1] + 1 == plan.sub_epochs
            where = (where[0] + 1, 0) if last else (where[0], where[1] + 1)
    ends = [0, *accumulate(order.num_units(epoch) for epoch in EPOCHS)]
    return [stream[low:high] for low, high in pairwise(ends)]


def steps_of(plan: ip.Plan, where: tuple[int, int], steps: range) -> Units:
    """Return the units of some steps of a sub-epoch, rank after rank in each step."""
    chosen = {"start_step": steps.start, "stop_step": steps.stop, "units": True}
    ranks = [plan.batches(*where, rank=rank, **chosen) for rank in range(plan.world_size or 0)]  # type: ignore[call-overload]
    return [unit.tolist() for step in zip(*ranks, strict=True) for b in step for unit in b.bins]


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


def shards(draw: Draw, **fields: Any) -> ip.ShardShuffle:
    """Draw shards and how they are read."""
    rows = draw(st.lists(st.integers(0, 9), min_size=1, max_size=8).filter(any))
    lanes = draw(st.integers(1, 4))
    fields["stripe"] = lanes * draw(st.integers(1, 4))
    return ip.ShardShuffle(rows, lanes=lanes, window=2, seed=draw(seeds), **fields)


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
    """Return whether a lane reads the same samples in all epochs."""
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


def as_often_as_weighted(order: Any, run: Run) -> bool:
    """Return whether each sample is read floor(E) or ceil(E) times, without a limit."""
    for epoch, units in enumerate(run):
        weights = [row for at, row in weights_of(order) if at <= epoch][-1]
        expected = [Fraction(w) * order.epoch_size / sum(map(Fraction, weights)) for w in weights]
        counts = Counter(flat(units))
        if any(abs(counts[s] - each) >= 1 for s, each in enumerate(expected)):
            return False
    return True


def weights_of(order: ip.Weighted) -> list[tuple[int, list[float]]]:
    """Return the weights since each epoch."""
    columns = order.weights if isinstance(order.weights, tuple) else ((0, order.weights),)
    return [(epoch, column.array.tolist()) for epoch, column in columns]


def close_over_epochs(order: Any, run: Run) -> bool:
    """Return whether counts stay within a few reads of what is expected over all epochs so far."""
    ((_, weights),) = weights_of(order)
    expected = [Fraction(w) * order.epoch_size / sum(map(Fraction, weights)) for w in weights]
    counts: Counter[int] = Counter()
    for epoch, units in enumerate(run, 1):
        counts.update(flat(units))
        if any(abs(counts[s] - epoch * each) > 3 for s, each in enumerate(expected)):
            return False
    return True


def at_most(order: Any, units: Units) -> bool:
    """Return whether an epoch reads no sample more often than it may."""
    return max(Counter(flat(units)).values()) <= int(order.max_repeats)


def weighted(draw: Draw) -> ip.Weighted:
    """Draw weights, some of them 0."""
    row = draw(st.lists(st.integers(0, 9), min_size=1, max_size=20).filter(any))
    return ip.Weighted(row, draw(sizes), seed=draw(seeds))


def limited(draw: Draw) -> ip.Weighted:
    """Draw weights and a limit that leaves enough reads."""
    row = draw(st.lists(st.integers(1, 9), min_size=1, max_size=20))
    most = draw(st.integers(1, 3))
    size = draw(st.integers(1, most * len(row)))
    return ip.Weighted(row, size, seed=draw(seeds), max_repeats=most)


def updated(draw: Draw) -> ip.Weighted:
    """Draw weights that change twice."""
    order = weighted(draw)
    for epoch in sorted({draw(st.integers(1, 5)) for _ in range(2)}):
        num = order.num_samples
        changed = draw(st.lists(st.integers(1, 9), min_size=num, max_size=num))
        order = reweighted(order, epoch, changed)
    return order


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
        members = {sample for sample, each in enumerate(table) if each == label}
        read = [s for units in run for s in flat(units) if s in members]
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


def weighted_classes(draw: Draw) -> ip.ClassBalanced:
    """Draw labels, and a weight for each of them."""
    row = draw(labels)
    weights = {label: draw(st.integers(1, 9)) for label in sorted(set(row))}
    size = draw(st.integers(sum(weights.values()), 80))
    return ip.ClassBalanced(row, size, weights, draw(seeds))


def class_batches(draw: Draw) -> ip.ClassBatches:
    """Draw classes of enough samples, and fewer of them."""
    num, most = draw(st.integers(1, 5)), draw(st.integers(1, 3))
    row = [label for label in range(num) for _ in range(most + draw(st.integers(0, 6)))]
    few, size = draw(st.integers(1, num)), draw(st.integers(1, 12))
    return ip.ClassBatches(row, few, most, epoch_size=size, seed=draw(seeds))


def short_classes(draw: Draw) -> ip.ClassBatches:
    """Draw classes of which some are too short, and are repeated, or left out."""
    row = [*draw(labels), 5, 5, 5]
    short = draw(st.sampled_from(["repeat", "leave_out"]))
    return ip.ClassBatches(row, 1, 3, epoch_size=draw(st.integers(1, 9)), short=short)


def classes_and_samples_once(order: Any, unit: list[int]) -> bool:
    """Return whether a batch is class by class, with no class or sample twice."""
    rows = order.labels.array[unit].reshape(order.classes, order.per_class).tolist()
    alike = all(len(set(row)) == 1 for row in rows)
    return alike and len({row[0] for row in rows}) == len(rows) and len(set(unit)) == len(unit)


def rows_of_batches(order: Any, run: Run) -> bool:
    """Return whether each row uses a class at most once, and rows use all equally often."""
    table = order.labels.array.tolist()
    names = sorted(set(table))
    used = [{table[sample] for sample in unit} for units in run for unit in units]
    row = len(names) // order.classes
    total: Counter[int] = Counter()
    for at in range(0, len(used) - row + 1, row):
        counts = Counter(label for unit in used[at : at + row] for label in unit)
        total.update(counts)
        if max(counts.values()) > 1 or spread_of(total.elements(), names) > 1:
            return False
    return True


def reads_short_classes(order: Any, run: Run) -> bool:
    """Return whether short classes are repeated in a batch, or never read."""
    table = order.labels.array.tolist()
    count = Counter(table)
    units = [unit for epoch in run for unit in epoch]
    if order.short == "leave_out":
        return all(count[table[s]] >= order.per_class for unit in units for s in unit)
    return all(spread_of(unit, members_of(table, table[unit[0]])) <= 1 for unit in units)


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


def tokens_in(order: Any, unit: list[int]) -> int:
    """Return the tokens of a bin."""
    return int(order.lengths.array[unit].sum())


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
    most = order.max_samples
    return tokens_in(order, unit) <= int(order.max_length) and len(unit) <= (most or len(unit))


def longest_first(order: Any, unit: list[int]) -> bool:
    """Return whether the longest samples of a bin come first, if lengths count as they are."""
    rows = order.lengths.array[unit].tolist()
    return bool(order.min_stratum > 1 or rows == sorted(rows, reverse=True))


# --- mixtures


def mixture(draw: Draw, inner: ip.Order | None = None) -> ip.Mixture:
    """Draw a mixture of up to four sources, in up to two phases of weights."""
    inner = ip.Shuffle(draw(sizes), draw(seeds)) if inner is None else inner
    num = draw(st.integers(1, 4))
    sources = {"a": inner, **{f"s{i}": ip.Sequential(3 + i) for i in range(1, num)}}
    row = [dict.fromkeys(sources, 1)]
    row += [
        {name: draw(st.integers(0, 9)) for name in sources} for _ in range(draw(st.integers(0, 1)))
    ]
    phases = [
        (at * draw(st.integers(1, 90)), each) for at, each in enumerate(row) if any(each.values())
    ]
    return ip.Mixture(sources, phases, epoch_size=draw(sizes), seed=draw(seeds))


def sources_read(order: Any, run: Run) -> list[int]:
    """Return the source of each unit of a run."""
    return [int(order.split(unit[:1])[0][0]) for units in run for unit in firsts(units)]


def firsts(units: Units) -> Units:
    """Return units without the spans of their samples."""
    return [[each[0] if isinstance(each, list) else each for each in unit] for unit in units]


def within_shares(order: Any, run: Run) -> bool:
    """Return whether each source is within `within` of its share at every place of its phase."""
    read = sources_read(order, run)
    starts = [at for at, _ in order.weights]
    for (at, shares), stop in zip(order.weights, [*starts[1:], len(read)], strict=True):
        total, counts = sum(shares), Counter[int]()
        most = 1 if len([s for s in shares if s]) <= 2 else 3.36
        most = min(most, order.within) if at == starts[-1] else most
        for num, source in enumerate(read[at:stop], 1):
            counts[source] += 1
            off = [abs(counts[j] - Fraction(num * s, total)) for j, s in enumerate(shares)]
            if max(off) > most or (num % total == 0 and max(off) > 0):
                return False
    return True


def stream_of(order: Any, run: Run, name: str) -> Run:
    """Return the whole epochs of a source that a run has read."""
    where = order.names.index(name)
    units = [unit for units in run for unit in units]
    read = [unit for unit, j in zip(units, sources_read(order, run), strict=True) if j == where]
    first = int(order._begins[where])
    return in_epochs(dict(order.sources)[name], [less(unit, first) for unit in read])


def less(unit: list[Any], first: int) -> list[Any]:
    """Return a unit with lower numbers of samples."""
    return [[s[0] - first, *s[1:]] if isinstance(s, list) else s - first for s in unit]


def in_epochs(order: ip.Order, stream: Units) -> Run:
    """Return the whole epochs of an order that a stream of its units holds."""
    run: Run = []
    while len(stream) >= order.num_units(len(run)):
        num = order.num_units(len(run))
        run.append(stream[:num])
        stream = stream[num:]
    return run


def whole_epochs_of_sources(order: Any, run: Run) -> bool:
    """Return whether no unit of a source is read again before all of them were, or skipped."""
    for name, source in order.sources:
        found = stream_of(order, run, name)
        if any(units != units_of(source, epoch) for epoch, units in enumerate(found)):
            return False
    return True


def whole_mixture(draw: Draw) -> ip.Mixture:
    """Draw a mixture whose weights are the sizes of its sources."""
    sources = {f"s{i}": ip.Shuffle(draw(sizes), i) for i in range(draw(st.integers(1, 4)))}
    return ip.Mixture(
        sources, {name: s.num_samples for name, s in sources.items()}, seed=draw(seeds)
    )


ORDERS: dict[str, Promise] = {
    "Sequential reads 0, 1, 2, ...": Promise(
        lambda draw: ip.Sequential(draw(sizes)),
        each_epoch(lambda order, units: flat(units) == list(range(order.num_samples))),
    ),
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
    "ShardShuffle reads all once, few shards in a lane at a time": Promise(
        lambda draw: shards(draw, grid=draw(st.sampled_from(["epoch", "stream"]))),
        both(once, lanes_hold_few_shards, windows_of_shards),
    ),
    "ShardShuffle's sticky lanes keep their shards": Promise(
        lambda draw: shards(draw, sticky=True), both(once, lanes_keep_shards)
    ),
    "Weighted reads a sample floor(E) or ceil(E) times": Promise(
        weighted, both(as_often_as_weighted, close_over_epochs)
    ),
    "Weighted changes its weights from an epoch on": Promise(updated, as_often_as_weighted),
    "Weighted reads no sample more often than max_repeats": Promise(limited, each_epoch(at_most)),
    "ClassBalanced reads its classes in turn": Promise(
        lambda draw: ip.ClassBalanced(draw(labels), draw(st.integers(5, 60)), seed=draw(seeds)),
        both(classes_in_turn, no_sample_of_a_class_before_all),
    ),
    "ClassBalanced reads classes as weighted": Promise(
        weighted_classes, both(each_epoch(exact_shares_of_classes), classes_even_after_epochs)
    ),
    "ClassBatches holds different classes and samples, in rows": Promise(
        class_batches, both(each_unit(classes_and_samples_once), rows_of_batches)
    ),
    "ClassBatches repeats short classes, or leaves them out": Promise(
        short_classes, reads_short_classes
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
    "Mixture keeps its shares, and whole epochs of its sources": Promise(
        mixture, both(within_shares, whole_epochs_of_sources)
    ),
    "Mixture by sizes reads all once": Promise(whole_mixture, once),
}
