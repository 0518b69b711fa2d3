"""The laws of what an order reads, and of where it locates its samples."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np

from indexplan.errors import IndexPlanError, shown
from indexplan.orders.arguments import NUM_SAMPLES_STOP
from indexplan.orders.base import Int64, by_sample
from indexplan.orders.traits import Traits
from indexplan.orders.units import Units
from indexplan.seeds import SEED_STOP
from indexplan.testing.looking import SINGLES, STRETCHES, Found, Law, Look, Row, ends, few

THREADS = 4
GUARD = 8  # numbers on each side of `out` that must stay as they are
UNTOUCHED = -7  # their value, which is no index
TINY = 1e-9  # how far from 1 the sum of some floats may be


def _said(look: Look) -> Found:
    order = look.order
    for name, value, start, stop in (
        ("num_samples", order.num_samples, 1, NUM_SAMPLES_STOP),
        ("stream_key", order.stream_key, 0, SEED_STOP),
    ):
        yield 1, "" if type(value) is int and start <= value < stop else f"{name} {shown(value)}"
    traits = order.traits
    yield 1, "" if isinstance(traits, Traits) else f"traits {shown(traits)}"
    if order.group_names:
        yield from _grouped(look)


def _grouped(look: Look) -> Found:
    names = look.order.group_names
    right = isinstance(names, tuple) and all(isinstance(name, str) for name in names)
    yield 1, "" if right else f"group_names {shown(names)}"
    what = look.order.shares_of
    yield 1, "" if what in ("samples", "units") else f"shares_of {shown(what)}"
    for row in look.each():
        groups, num = look.order.group_of(row.samples), row.num_units
        bad = np.flatnonzero((groups < -1) | (groups >= len(names)))
        said = [f"group {groups[i]} of sample {row.samples[i]}" for i in bad[:1]]
        yield len(groups), said[0] if said else ""
        for start, stop in ((0, num), (num // 3, num // 3 + 1)):
            shares = look.order.group_shares(row.epoch, start, stop)
            right = shares.shape == (len(names),) and bool((shares >= 0).all())
            right = right and abs(shares.sum() - 1) < TINY
            words = f"group_shares({row.epoch}, {start}, {stop}) {few(shares)}"
            yield 1, "" if right else words


def _sizes(look: Look) -> Found:
    first = look.rows[0]
    for row in look.each():
        num = row.num_units
        right = type(num) is int and 1 <= num < NUM_SAMPLES_STOP
        yield 1, "" if right else f"num_units({row.epoch}) {shown(num)}"
        if look.order.traits.constant_num_units and num != first.num_units:
            said = f"{first.num_units} in epoch {first.epoch}, and {num} in epoch {row.epoch}"
            yield 1, f"{said}, though its traits say constant_num_units"


def _cut(look: Look) -> Found:
    for row in look.each():
        offsets, num = row.offsets, len(row.positions)
        right = offsets.dtype == np.int64 and offsets.shape == (num + 1,) and offsets[0] == 0
        right = right and bool((np.diff(offsets) >= 0).all())
        yield num, "" if right else f"offsets {few(offsets)} of {num} units of epoch {row.epoch}"
        if not look.order.traits.deals_bins and (np.diff(offsets) != 1).any():
            unit = int(np.argmax(np.diff(offsets) != 1))
            said = f"{np.diff(offsets)[unit]} samples at position {row.positions[unit]} of epoch"
            yield num, f"{said} {row.epoch}, though its traits do not say deals_bins"


def _written(look: Look) -> Found:
    for row in look.each():
        starts, stops = row.runs(row.stretches())
        given = starts.copy(), stops.copy()
        memory = np.full(int(row.offsets[-1]) + 2 * GUARD, UNTOUCHED)
        out = memory[GUARD : len(memory) - GUARD]
        if look.order.traits.deals_bins:
            units = look.order.deal(row.epoch, *given)
            out[:] = units.samples
            yield 0, _shared(row, units)
        else:
            look.order.fill(row.epoch, *given, out)
        changed = {
            "starts or stops that it changed": (given[0] != starts) | (given[1] != stops),
            "a number that it wrote before out": memory[:GUARD] != UNTOUCHED,
            "a number that it wrote after out": memory[-GUARD:] != UNTOUCHED,
            "a number of out that it left as it was": out == UNTOUCHED,
        }
        said = next((words for words, bad in changed.items() if bad.any()), "")
        yield len(out), f"{said}, in epoch {row.epoch}" if said else ""


def _shared(row: Row, units: Units) -> str:
    """Return a problem if what `deal` wrote is wrong, or changes when it is written to."""
    num, num_samples, cut = len(row.positions), row.offsets[-1], row.order.traits.cuts_samples
    for name, array, size in (("samples", units.samples, num_samples), ("sizes", units.sizes, num)):
        if array.dtype != np.int64 or array.shape != (size,):
            got = f"{array.dtype} of shape {array.shape}"
            return f"{name} from deal in epoch {row.epoch} that are {got}, not int64 of ({size},)"
    if not cut and units.spans is not None:
        return f"spans from deal in epoch {row.epoch}, though its traits do not say cuts_samples"
    kept = [None if each is None else each.copy() for each in units]
    for dealt in (each for each in units if each is not None):
        np.add(dealt, 1, out=dealt)  # as a caller may, to whom the arrays belong
    again = row.order.deal(row.epoch, *row.runs(row.stretches()))
    for name, was, now in zip(Units._fields, kept, again, strict=True):
        if was is not None and (now is None or not np.array_equal(was, now)):
            return f"other {name} from deal in epoch {row.epoch} after they were written to"
    return ""


def _in_range(look: Look) -> Found:
    n = look.order.num_samples
    for row in look.each():
        indices = row.indices
        if indices.dtype != np.int64 or indices.shape != (row.offsets[-1],):
            said = f"{indices.dtype} of shape {indices.shape} from take in epoch {row.epoch}"
            yield 0, f"{said}, for {row.offsets[-1]} samples"
        bad = np.flatnonzero((indices < 0) | (indices >= n))
        yield len(indices), f"{indices[bad[0]]} in epoch {row.epoch}" if len(bad) else ""


def _spanned(look: Look) -> Found:
    for row in look.each():
        if not look.order.traits.cuts_samples:
            yield 1, _said_of_whole(row)
            continue
        spans, num = row.spans, len(row.indices)
        if spans.dtype != np.int64 or spans.shape != (num, 2):
            said = f"{spans.dtype} of shape {spans.shape} from spans in epoch {row.epoch}"
            yield 0, f"{said}, for {num} samples"
        bad = np.flatnonzero((spans[:, 0] < 0) | (spans[:, 0] >= spans[:, 1]))
        yield num, f"{few(spans[bad[0]])} in epoch {row.epoch}" if len(bad) else ""
        for cuts in _cuts(row):
            said = _other_spans(row, cuts)
            yield len(cuts), said


def _said_of_whole(row: Row) -> str:
    """Return a problem if an order that reads whole samples answers spans instead of refusing."""
    try:
        row.order.spans(row.epoch, row.positions)
    except IndexPlanError:
        return ""
    return f"an answer in epoch {row.epoch}, though its traits do not say cuts_samples"


def _other_spans(row: Row, cuts: list[tuple[int, int]]) -> str:
    """Return how spans of intervals differ from those of single positions; "" if they do not."""
    starts, stops = row.runs(cuts)
    parts = [row.spans[row.offsets[low] : row.offsets[high]] for low, high in cuts]
    expected = np.concatenate([row.spans[:0], *parts])
    got = row.order.spans(row.epoch, starts.copy(), stops.copy())
    call = f"spans({row.epoch}, {few(starts)}, {few(stops)})"
    return "" if np.array_equal(got, expected) else f"others from {call} than one by one"


def _again(look: Look) -> Found:
    for row in reversed(look.rows):
        num = look.order.num_units(row.epoch)
        said = f"num_units {row.num_units} and then {num} in epoch {row.epoch}"
        yield 1, "" if num == row.num_units else said
        for got in (look.order.take(row.epoch, row.positions.copy()), row.indices):
            said = f"{few(row.first)} and then {few(got)} in epoch {row.epoch}"
            yield len(got), "" if np.array_equal(got, row.first) else said


def _runs(look: Look) -> Found:
    for row in look.each():
        for cuts in _cuts(row):
            said = _unlike(row, cuts)
            if said:  # one interval, or two, say more than many, if they are wrong by themselves
                fewer = (*([cut] for cut in cuts), *map(list, pairwise(cuts)))
                said = next(filter(None, (_unlike(row, some) for some in fewer)), said)
            yield len(cuts), said


def _cuts(row: Row) -> Iterator[list[tuple[int, int]]]:
    """Yield lists of intervals: none, empty, long, short and single ones, in any order."""
    rng = np.random.default_rng(1)
    stretches, num = row.stretches(), len(row.positions)
    yield []
    yield [(0, 0), (num, num)]
    yield stretches
    cut: list[tuple[int, int]] = []
    for low, high in stretches:
        some = rng.integers(low, high + 1, size=min(8, high - low + 1))
        cut += pairwise([low, *np.sort(some).tolist(), high])
    yield cut  # empty ones among them
    yield [cut[i] for i in rng.integers(len(cut), size=2 * min(len(cut), 64)).tolist()]
    yield [(i, i + 1) for i in rng.permutation(num)[:SINGLES].tolist()]


def _unlike(row: Row, cuts: list[tuple[int, int]]) -> str:
    """Return how intervals differ from positions read one by one; "" if they do not."""
    indices, offsets = row.of(cuts)
    asked = [("offsets", offsets), ("take", indices)]
    asked += [] if row.order.traits.deals_bins else [("fill", indices)]
    for name, expected in asked:
        starts, stops = row.runs(cuts)
        if name == "fill":
            got = np.full(len(indices), UNTOUCHED)
            row.order.fill(row.epoch, starts.copy(), stops.copy(), got)
        else:
            got = getattr(row.order, name)(row.epoch, starts.copy(), stops.copy())
        if np.array_equal(got, expected):
            continue
        call = f"{name}({row.epoch}, {few(starts)}, {few(stops)})"
        if name == "offsets" or got.shape != expected.shape:
            return f"{few(got)} from {call}, and {few(expected)} one by one"
        at = int(np.argmax(got != expected))
        return f"{got[at]} at place {at} of {call}, and {expected[at]} by itself"
    return ""


def _threads(look: Look) -> Found:
    parts = [(row, [cut]) for row in look.rows for cut in row.stretches()[:STRETCHES]]
    parts += [(row, [(0, (len(row.positions) + 1) // 2)]) for row in look.rows if row.whole]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # so that threads meet in the middle of what they do
    try:
        with ThreadPoolExecutor(THREADS) as pool:
            for said in pool.map(lambda part: _unlike(*part), parts * THREADS):
                yield 1, said
    finally:
        sys.setswitchinterval(before)


def _often(look: Look) -> Found:
    reads = look.order.traits.reads
    for row in look.each():
        if reads == "any":
            yield len(row.indices), ""
            continue
        some, counts = np.unique(row.indices, return_counts=True)
        if (counts > 1).any():
            yield 0, f"sample {some[counts > 1][0]} more than once in epoch {row.epoch}"
        if row.whole and reads == "once" and len(some) < look.order.num_samples:
            missed = np.flatnonzero(np.append(some, -1) != np.arange(len(some) + 1))[0]
            yield 0, f"no read of sample {missed} in epoch {row.epoch}"
        if not row.whole and not look.order.traits.deals_bins and reads == "once":
            right = row.num_units == look.order.num_samples
            yield 0, "" if right else f"{row.num_units} reads in epoch {row.epoch}"
        yield len(some), ""


def _located(look: Look) -> Found:
    for row in look.each():
        found, offsets = row.found
        num = len(row.samples)
        right = offsets.shape == (num + 1,) and offsets[0] == 0 and offsets[-1] == len(found)
        right = right and found.dtype == offsets.dtype == np.int64
        said = f"positions {few(found)} with offsets {few(offsets)} in epoch {row.epoch}"
        yield 0, "" if right and (np.diff(offsets) >= 0).all() else said
        there = np.split(found, offsets[1:-1])[:num]
        reads = np.split(row.reads[0], row.reads[1][1:-1])[:num]
        for sample, named, read in zip(row.samples, there, reads, strict=True):
            if np.array_equal(named, read):
                yield 1, ""
                continue
            said = f"sample {sample} of epoch {row.epoch} at {few(named)}, but take reads it at"
            yield 1, f"{said} {few(read)}"
        mixed = _mixed(num)
        asked = row.samples[mixed]
        got = look.order.locate_all(row.epoch, asked)
        said = f"indices in epoch {row.epoch} that locate_all changed"
        yield 0, "" if np.array_equal(asked, row.samples[mixed]) else said
        right = np.array_equal(got[0], np.concatenate([found[:0], *(there[i] for i in mixed)]))
        right = right and np.array_equal(got[1], ends(np.diff(offsets)[mixed]))
        said = f"other positions in epoch {row.epoch} for the same samples in another order"
        yield 0, "" if right else said
        none = look.order.locate_all(row.epoch, [])
        right = (len(none[0]), none[1].tolist()) == (0, [0])
        said = f"{few(none[0])} and {few(none[1])} from locate_all({row.epoch}, [])"
        yield 0, "" if right else said


def _mixed(num: int) -> Int64:
    """Return places of samples in another order, some twice."""
    mixed = np.random.default_rng(2).permutation(num)
    return np.concatenate([mixed, mixed[:3]])


def _first(look: Look) -> Found:
    for row in look.each():
        reads, offsets = row.reads
        right = np.where(np.diff(offsets) > 0, np.append(reads, -1)[offsets[:-1]], -1)
        yield from _by_sample(row, look.order.locate, right)
        for most in (None, 1, 2):
            yield from _pairs(row, most)


def _pairs(row: Row, most: int | None) -> Found:
    """Compare what `find` returns with all reads, and its first reads with the first ones."""
    samples, num = row.samples, len(row.samples)
    said = f"find({row.epoch}, {few(samples)}, most={most})"
    which, positions = row.order.find(row.epoch, samples.copy(), most)
    right = which.dtype == positions.dtype == np.int64 and which.shape == positions.shape
    right = right and which.ndim == 1 and bool(((which >= 0) & (which < num)).all())
    yield 0, "" if right else f"{few(which)} and {few(positions)} from {said}"
    found, offsets = by_sample(which, positions, num)
    reads, ends_of_reads = row.reads
    there = np.split(found, offsets[1:-1])[:num]
    for sample, some, all_reads in zip(
        samples, there, np.split(reads, ends_of_reads[1:-1])[:num], strict=True
    ):
        first = all_reads if most is None else all_reads[:most]
        more = some[len(first) :]
        right = np.array_equal(some[: len(first)], first) and len(some) <= len(all_reads)
        if right and (not len(more) or np.isin(more, all_reads).all()):
            yield 1, ""
            continue
        words = f"sample {sample} of epoch {row.epoch} at {few(some)} from find with most={most}"
        yield 1, f"{words}, and {few(all_reads)} from take"


def _counted(look: Look) -> Found:
    for row in look.each():
        yield from _by_sample(row, look.order.count, np.diff(row.reads[1]))


def _by_sample(row: Row, ask: Callable[[int, Int64], Int64], right: Int64) -> Found:
    """Compare answers about samples, in any order and in two dimensions, with what is right."""
    mixed = _mixed(len(row.samples))
    samples, expected = row.samples[mixed].reshape(1, -1), right[mixed].reshape(1, -1)
    got = ask(row.epoch, samples.copy())
    if got.shape != samples.shape or got.dtype != np.int64:
        yield 0, f"{got.dtype} of shape {got.shape} for indices of shape {samples.shape}"
    bad = np.flatnonzero(got != expected)
    said = [f"{got.flat[i]} for sample {samples.flat[i]} of epoch {row.epoch}" for i in bad[:1]]
    yield samples.size, f"{said[0]}, and {expected.flat[bad[0]]} from take" if said else ""


LAWS = (
    Law(
        "have valid num_samples, stream_key, traits and groups",
        _said,
        "make num_samples and stream_key integers, traits a Traits, and group_of fit group_names",
    ),
    Law(
        "have a whole number of units in each epoch, at least one",
        _sizes,
        "return an int from num_units, and set constant_num_units=False in traits if it changes",
    ),
    Law(
        "cut what it reads into units by offsets that rise from 0",
        _cut,
        "return int64 sizes of 0 or more from deal, and set deals_bins=True in traits",
    ),
    Law(
        "write to all of out, and to nothing else",
        _written,
        "let fill set each place of out, or deal return new int64 arrays, and change no argument",
    ),
    Law(
        "read samples from 0 to num_samples - 1",
        _in_range,
        "let fill write int64 indices of samples, or deal return them",
    ),
    Law(
        "say which part of each sample it reads, if it cuts some",
        _spanned,
        "let deal return spans, and set cuts_samples=True in traits, or leave both out",
    ),
    Law(
        "answer the same when it is asked again",
        _again,
        "keep no state, and seed random generators with the order's fields and the epoch",
    ),
    Law(
        "read the same in whatever intervals it is asked for",
        _runs,
        "let fill or deal treat each position by itself, whatever else is asked for",
    ),
    Law(
        "answer the same in several threads",
        _threads,
        "write to no array that other calls see",
    ),
    Law(
        "read each sample as often as its traits say",
        _often,
        'set reads="at most once" or reads="any" in traits if that is what it does',
    ),
    Law(
        "locate all reads of a sample, at rising positions",
        _located,
        "write find as the inverse of fill or deal, with a pair for each read",
    ),
    Law(
        "locate the first read of a sample, and -1 if there is none",
        _first,
        "let find return at least the first reads of each sample if it is given most",
    ),
    Law("count the reads of a sample", _counted, "leave tally out, or return int64 counts"),
)
