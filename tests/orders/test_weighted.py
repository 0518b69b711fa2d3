"""Weighted draws: the kernels are the design's words, counts are even, sums exact, bits frozen."""

from __future__ import annotations

import gc
import hashlib
import math
import threading
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import indexplan as ip
from indexplan.kernels import thresholds, weighted, weighted_tables
from indexplan.stores import tables
from tests.golden.lines import cases
from tests.support import oracles, plain
from tests.support.examples import examples
from tests.support.in_a_fork import counted_in_a_fork
from tests.support.reweighted import reweighted
from tests.support.units import units_of
from tests.support.weighted_oracle import Weighted

WEIGHTS = st.one_of(
    st.floats(0, allow_infinity=False),
    st.sampled_from([0.0, -0.0, 1.0, 0.5, 3.0, 1e-10, 5e-324, 1.7e308]),
)


@st.composite
def specs(draw: st.DrawFn, most: int = 40) -> dict[str, Any]:
    """Draw the arguments of an order."""
    rows = st.one_of(
        st.lists(WEIGHTS, min_size=1, max_size=most),
        st.lists(st.sampled_from([0.0, 1.0, 2.0]), min_size=1, max_size=most),
        st.integers(1, most).map(lambda n: [0.3] * n),
        st.integers(1, most).map(lambda n: [1 / (i + 1) for i in range(n)]),
        st.integers(1, most).map(lambda n: [1.0] + [1e-12] * (n - 1)),
    )
    weights = draw(rows.filter(any))
    num_positive = sum(weight > 0 for weight in weights)
    size = draw(st.integers(1, 3 * most))
    cap = st.none() | st.integers(0, 5).map(lambda more: -(-size // num_positive) + more)
    seed = draw(st.integers(0, 3) | st.integers(0, 2**128 - 1))
    return {"weights": weights, "epoch_size": size, "seed": seed, "max_repeats": draw(cap)}


def table(order: ip.Weighted, epoch: int = 0) -> list[int]:
    """Return the thresholds of an order, as Python integers."""
    found: list[int] = order._table(epoch).thresholds.tolist()
    return found


@given(specs())
def test_what_is_expected_is_the_share_of_the_weight(spec: dict[str, Any]) -> None:
    """Up to rounding, E is min(m, s * w) with one s for all, which without a cap is M / W."""
    oracle = Weighted(**spec)
    assert oracle.thresholds == table(ip.Weighted(**spec))
    n, size, most = oracle.n, spec["epoch_size"], spec["max_repeats"]
    weights = [Fraction(weight) for weight in spec["weights"]]
    capped: set[int] = set()
    while True:
        rest = sum(weight for i, weight in enumerate(weights) if i not in capped)
        factor = (size - (most or 0) * len(capped)) / rest
        more = {i for i in range(n) if i not in capped and most and factor * weights[i] > most}
        if not more:
            break
        capped |= more
    # rounding up adds less than 1 to each of the integers, whose sum is at least 2**60 - n; what
    # is left of it where caps leave little is not much
    left = Fraction(rest) / sum(weights)
    for i, weight in enumerate(weights):
        expected = most if i in capped else factor * weight
        error = size * (1 + n) / (2**59 * left) + Fraction(1, 2**oracle.bits)
        assert abs(oracle.expected(i) - expected) <= error


@pytest.mark.parametrize(
    "spec",
    [
        {"weights": [1 / (i + 1) for i in range(60)], "epoch_size": 47, "seed": 1},
        {"weights": [1, 2, 0, 5, 1, 1, 1], "epoch_size": 10, "seed": 2},
        {"weights": [1.0] * 50, "epoch_size": 20, "seed": 3, "max_repeats": 1},
        {"weights": [1 / (i + 1) for i in range(60)], "epoch_size": 100, "max_repeats": 4},
        {"weights": [3.0, *[0.1] * 99], "epoch_size": 1000, "seed": 5},
    ],
)
def test_counts_over_many_epochs(spec: dict[str, Any]) -> None:
    """After any number of epochs up to 1,024, a sample's reads are within 4 of what is expected."""
    order, oracle = ip.Weighted(**spec), Weighted(**{"max_repeats": None, "seed": 0, **spec})
    samples = np.arange(oracle.n)
    expected = np.array([float(oracle.expected(i)) for i in range(oracle.n)])
    total, worst = np.zeros(oracle.n), 0.0
    for epoch in range(1024):
        total += order.count(epoch, samples)
        worst = max(worst, np.abs(total - (epoch + 1) * expected).max())
    assert 1 < worst < 4


def test_a_giant_beside_many_small_ones() -> None:
    """Thresholds of thousands of samples that lie in one cell of the guide are found."""
    n, giant = 5000, 1234
    weights = [1e-11] * n
    weights[giant] = 1.0
    spec = {"weights": weights, "epoch_size": 2**40, "seed": 4}
    order, oracle = ip.Weighted(**spec), Weighted(**spec)
    assert oracle.thresholds == table(order)
    small = [sample for sample in range(n) if sample != giant]
    positions, offsets = order.locate_all(3, small)
    assert len(positions) > 5 * 10**4
    every = positions[:: len(positions) // 300]
    assert [oracle.read(3, at) for at in every.tolist()] == order.take(3, every).tolist()
    assert np.array_equal(np.repeat(small, np.diff(offsets)), order.take(3, positions))
    some = np.random.default_rng(0).integers(2**40, size=300)
    assert [oracle.read(3, at) for at in some.tolist()] == order.take(3, some).tolist()


@pytest.mark.parametrize("weights", [[1.0] * 4, [1.0, 2.0, 0.0, 1.0, 4.0], [0.1, 0.2, 0.3]])
@pytest.mark.parametrize("size", [2**60, 2**61 - 1])
def test_huge_epochs(weights: list[float], size: int) -> None:
    """Slots of two numbers, so that some begin right at a threshold: they are the next sample's."""
    order, oracle = ip.Weighted(weights, size, seed=2), Weighted(weights, size, 2)
    assert oracle.bits == 1
    assert oracle.thresholds == table(order)
    num_met = 0
    for epoch in range(2):
        assert size == sum(order.count(epoch, range(oracle.n)).tolist())
        words = oracles.key_words(2, 4, epoch, 2 * oracles.rounds_of(size), oracle.n)
        for threshold in oracle.thresholds[:-1]:
            near = range(max(0, threshold // 2 - 1), min(size, threshold // 2 + 2))
            for slot in near:
                num_met += slot * 2 + oracle.offset(epoch) == threshold
                position = oracles.backward(size, words, slot)
                assert [oracle.read(epoch, position)] == order.take(epoch, position).tolist()
        row = order.take(epoch, 0, 200).tolist()
        first = [row.index(i) if weights[i] else -1 for i in range(oracle.n)]
        assert first == order.locate(epoch, range(oracle.n)).tolist()
    assert num_met >= len(weights) - weights.count(0.0)


@pytest.mark.parametrize("coarse", [0, 1, 3])
def test_a_guide_of_fewer_bits(coarse: int) -> None:
    """From 2**32 samples on, the guide leaves out the lowest bits; the draws are the same."""
    order = ip.Weighted([1 / (i % 100 + 1) for i in range(700)], epoch_size=900, seed=3)
    found = order._table(0)
    guide = np.empty(len(found.guide), np.uint32)
    thresholds.fill_guide(found.thresholds, found.shift, coarse, guide)
    row_words, bits, first, step = order._row
    offset, words = (first + 5 * step) % 2**bits, order._words(5)
    out = np.empty(900, np.int64)
    ends = np.array([0]), np.array([900])
    weighted.draw_runs(
        900,
        bits,
        offset,
        found.shift,
        coarse,
        words,
        row_words,
        found.thresholds,
        guide,
        *ends,
        out,
    )
    assert order.take(5, 0, 900).tolist() == out.tolist()


def weights_of(case: dict[str, Any]) -> list[float]:
    """Return the weights of a known answer."""
    ((kind, value),) = case["weights"].items()
    if kind == "harmonic":
        return [1 / (i + 1) for i in range(value)]
    if kind == "digits":
        return [float(digit) for digit in value]
    return [weight for weight, count in value for _ in range(count)]


@pytest.mark.parametrize("case", cases("weighted_v1"), ids=lambda case: str(case["epoch_size"]))
def test_known_answers(case: dict[str, Any]) -> None:
    """Bits that never change."""
    weights = weights_of(case)
    order = ip.Weighted(weights, case["epoch_size"], case["seed"], case["max_repeats"])
    data = np.array(table(order), "<i8").tobytes()
    assert case["thresholds_sha256"] == hashlib.sha256(data).hexdigest()
    for known in case["epochs"]:
        counts = order.count(known["epoch"], range(len(known["counts_of_first"])))
        assert known["counts_of_first"] == counts.tolist()
        assert known["indices"] == order.take(known["epoch"], known["positions"]).tolist()


def test_known_fingerprints() -> None:
    """Those of what is written, which never change; frozen plans begin with their dict forms."""
    order = ip.Weighted([1, 0, 2, 5], epoch_size=16, seed=3)
    later = reweighted(order, 7, [1, 1, 1, 1])
    assert [0, 7] == [epoch for epoch, _ in later.to_dict()["weights"]]
    assert ["f8854403ae8b0295", "1ba3b40ffd62939f"] == [
        order.fingerprint[:16],
        later.fingerprint[:16],
    ]


@pytest.mark.parametrize("epoch", [0, 7])
@pytest.mark.parametrize("cap", [None, 3])
def test_counts_are_what_is_expected_over_seeds(epoch: int, cap: int | None) -> None:
    """Of a sample that an epoch reads floor(E) or ceil(E) times, the mean over seeds is E."""
    weights = (1 / np.arange(1, 121)).tolist()
    oracle = Weighted(weights, 150, 0, cap)
    shares = np.array([float(oracle.expected(sample)) for sample in range(120)])
    seeds = 600
    orders = (ip.Weighted(weights, 150, seed=seed, max_repeats=cap) for seed in range(seeds))
    mean = sum(order.count(epoch, range(120)) for order in orders) / seeds
    part = shares % 1  # of a whole number of reads nothing is left to chance
    some = (part > 1e-6) & (part < 1 - 1e-6)
    z = ((mean - shares) / np.sqrt(np.maximum(part * (1 - part), 1e-12) / seeds))[some]
    assert some.sum() > 80
    assert np.abs(z).max() < 4.5
    assert 0.75 < math.sqrt(np.mean(z**2)) < 1.25
    assert np.allclose(mean[~some], shares[~some])


def test_chance_inside_an_epoch() -> None:
    """The share of a label that alternates is as random as that of a sample of so many.

    A sample follows itself as often as in a shuffle of all reads.
    """
    n, size, seeds = 1000, 500, 200
    reads = [ip.Weighted([1.0] * n, size, seed=seed).take(0, 0, size) for seed in range(seeds)]
    shares = [float(np.mean(read % 2)) for read in reads]
    deviation = math.sqrt(0.25 / size * (1 - size / n) * n / (n - 1))  # without replacement
    assert abs(np.mean(shares) - 0.5) < 4 * deviation / math.sqrt(seeds)
    assert 0.8 < np.std(shares) / deviation < 1.25
    reads = [ip.Weighted([1.0] * 8, 64, seed=seed).take(0, 0, 64) for seed in range(300)]
    expected = 300 * 63 * 7 / 63
    assert abs(sum(int((np.diff(read) == 0).sum()) for read in reads) - expected) < 4 * math.sqrt(
        expected
    )


def test_ranks_share_alike() -> None:
    """No rank has more of the heavy samples than others, over some epochs."""
    weights = np.where(np.arange(1000) % 10 == 0, 9.0, 1.0)
    plan = ip.Plan(ip.Weighted(weights, 4000, seed=3), world_size=8, batch_size=25)
    heavy = np.zeros(8)
    for epoch in range(10):
        for rank in range(8):
            heavy[rank] += np.sum(plan.indices(epoch, rank=rank) % 10 == 0)
    assert heavy.sum() == pytest.approx(20_000, abs=20)
    deviation = math.sqrt(40_000 / 8 * 0.25 * 7 / 8)
    assert np.abs(heavy - heavy.sum() / 8).max() < 4 * deviation


@given(st.lists(st.floats(1e-300, 1e-25), min_size=1, max_size=30), st.integers(0, 9))
def test_no_sample_is_lost(small: list[float], seed: int) -> None:
    """However small it is, a positive weight has a share."""
    order = ip.Weighted([1.0, *small, 0.0], 2**40, seed=seed)
    shares = np.diff(order._table(0).thresholds.astype(np.int64))
    assert 1 == np.count_nonzero(shares == 0)
    assert shares.sum() == 2**40 << 62 - 41


# weights that change on the way, lie in files, and whose tables are shared

FIELDS = {"epoch_size": 30, "seed": 5, "max_repeats": 9}
FIRST, SECOND, THIRD = [1.0] * 10, [0.0, *range(1, 10)], [0.5] * 9 + [2.0]


def test_what_it_continues() -> None:
    """New weights, up to where they come into force; and no form of weights that is none."""
    order = ip.Weighted(FIRST, **FIELDS)
    assert order.continues(reweighted(order, 3, SECOND).to_dict(), 3, 0)
    assert not order.continues(reweighted(order, 3, SECOND).to_dict(), 3, 1)
    assert order.continues(ip.Weighted(SECOND, **FIELDS).to_dict(), 0, 0)
    assert not order.continues(ip.Weighted([1.0] * 11, **FIELDS).to_dict(), 0, 0)
    saved = order.to_dict()
    for weights in (None, 7, [], [7], [[0]], [[0, 7]], [["0", saved["weights"]]], {"length": 10}):
        assert not order.continues({**saved, "weights": weights}, 0, 0)
    assert not order.continues({"algorithm": "weighted-v1"}, 0, 0)


def test_updates_follow_each_other() -> None:
    """Each epoch is read by the weights that took effect last, of which two tables are kept."""
    listed = [(0, FIRST), (3, SECOND), (7, THIRD)]
    order = ip.Weighted(listed, **FIELDS)
    assert reweighted(reweighted(ip.Weighted(FIRST, **FIELDS), 3, SECOND), 7, THIRD) == order
    assert ip.Weighted(listed[:1], **FIELDS) == ip.Weighted(FIRST, **FIELDS)
    for epoch in (0, 2, 3, 6, 7, 2**32 - 1, 3, 0):
        assert plain.units(order, epoch) == units_of(order, epoch)
    assert 2 == len(vars(order)["_latest_table_of"])  # of three that were read


def test_promises() -> None:
    """How often a sample is read, as far as the fields tell."""
    assert "any" == ip.Weighted(FIRST).traits.reads
    assert "any" == ip.Weighted(FIRST, max_repeats=2).traits.reads
    assert "at most once" == ip.Weighted(FIRST, 9, max_repeats=1).traits.reads
    assert "once" == ip.Weighted(FIRST, max_repeats=1).traits.reads


def test_equal_orders_share_one_table() -> None:
    """As long as one of them lives."""
    one, other = (ip.Weighted([3, 1, 4, 1, 5], seed=9) for _ in range(2))
    one.take(0, 0)
    assert one._table(0) is other._table(5)
    assert reweighted(one, 2, [1] * 5)._table(1) is one._table(0)
    assert ip.Weighted([3, 1, 4, 1, 5], seed=8)._table(0) is not one._table(0)
    keys = set(tables.TABLES)
    del one, other
    gc.collect()
    assert keys - set(tables.TABLES)


SLOW = """
from indexplan.kernels import weighted_tables

built = weighted_tables.built

def slow(*arguments):
    pause()
    return built(*arguments)

weighted_tables.built = slow
order = ip.Weighted([1, 2, 3], epoch_size=60)
"""


@pytest.mark.slow
def test_a_fork_waits_for_a_table_that_is_built() -> None:
    """The child of a process that builds in another thread has the table, and no closed lock."""
    assert 30 == counted_in_a_fork(SLOW, 2)


def test_threads_build_one_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads that ask at once wait for the one that builds."""
    number, built = [], weighted_tables.built
    monkeypatch.setattr(weighted_tables, "built", lambda *a: number.append(1) or built(*a))
    order = ip.Weighted([2, 7, 1, 8], seed=3)
    start = threading.Barrier(4)

    def ask(_: int) -> None:
        start.wait()
        order.take(0, 0)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(ask, range(4)))
    assert [1] == number


def test_an_update_reads_no_weights_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that changes its weights often checks each array once, not at every later change."""
    read: list[int] = []
    array = vars(ip.Column)["array"].fget

    def counted(column: ip.Column) -> object:
        read.append(len(column))
        return array(column)

    monkeypatch.setattr(ip.Column, "array", property(counted))
    order = ip.Weighted(np.ones(50))
    for epoch in range(1, 40):
        order = reweighted(order, epoch, np.arange(1.0, 51.0) + epoch)
    assert len(read) <= 3 * 40
    cursor = ip.Plan(order, world_size=1, batch_size=2).cursor(50, step=3)
    assert cursor.order == order.to_dict()
    assert ip.Cursor.from_json(cursor.to_json()) == cursor
    bad = np.ones(50)
    bad[7] = -1
    for _ in range(2):  # what failed once fails again
        with pytest.raises(ip.IndexPlanError, match="weight of sample 7"):
            reweighted(order, 40, ip.Column(bad))


N = 12


def drawn(number: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return weights by number; equal numbers, equal weights."""
    return np.random.default_rng(number).random(N)


def order_of(rows: list[tuple[int, int]], **options: Any) -> ip.Weighted:
    """Return the order of some rows, each an epoch and the number of its weights."""
    return ip.Weighted([(epoch, drawn(number)) for epoch, number in rows], **options)


def rest(plan: ip.Plan, epoch: int, step: int) -> list[list[int]]:
    """Return what a plan reads from a step on, in two epochs."""
    steps = [(epoch, each) for each in range(step, plan.steps(epoch).stop)]
    steps += [(epoch + 1, each) for each in plan.steps(epoch + 1)]
    return [plan.batch(e, step=s, rank=r).tolist() for e, s in steps for r in range(2)]


ROWS = st.tuples(st.lists(st.integers(1, 9), max_size=6, unique=True), st.integers(0, 2**16))


def rows_of(drawn_rows: tuple[list[int], int]) -> list[tuple[int, int]]:
    """Return rows of weights that begin at some epochs, by the digits of a number."""
    epochs, digits = drawn_rows
    return [(epoch, digits // 4**i % 4) for i, epoch in enumerate([0, *sorted(epochs)])]


@examples(150)
@given(theirs=ROWS, own=ROWS, same=st.booleans(), epoch=st.integers(0, 10), step=st.integers(0, 2))
def test_a_run_continues_if_its_weights_were_those_of_each_epoch_so_far(
    theirs: tuple[list[int], int], own: tuple[list[int], int], same: bool, epoch: int, step: int
) -> None:
    """Whatever rows say so; what comes later is the plan's. Listed epoch by epoch."""
    rows, mine = rows_of(theirs), rows_of(own)
    begun = epoch + (step > 0)
    if same:  # as the run had them, and perhaps a row too many that changes nothing
        mine = [row for row in rows if row[0] < begun] + [row for row in mine if row[0] >= begun]
        mine = sorted({1: [n for at, n in rows if at <= 1][-1], **dict(mine)}.items())
    there, here = ([[n for at, n in r if at <= e][-1] for e in range(12)] for r in (rows, mine))
    whole = ip.Plan(order_of(rows, seed=5), world_size=2, batch_size=2)
    fresh = whole.replace(order=order_of(mine, seed=5))
    cursor = ip.Cursor.from_json(whole.cursor(epoch, step=step).to_json())
    if here[:begun] != there[:begun]:
        with pytest.raises(ip.IndexPlanError, match=r"a cursor must .*with sha256"):
            fresh.resume(cursor)
        return
    resumed = fresh.resume(cursor)
    read = rest(resumed, epoch, step)
    assert read == rest(fresh, epoch, 0)[-len(read) :]
    if here == there:
        assert read == rest(whole, epoch, step)


def test_the_files_of_all_weights_so_far_are_enough(tmp_path: Path) -> None:
    """The cure of the error: arrays of epochs that are over are mapped from their files."""
    rows = [(each, each) for each in range(5)]
    whole = ip.Plan(order_of(rows), world_size=2, batch_size=2)
    cursor = whole.cursor(4, step=1)
    with pytest.raises(ip.IndexPlanError) as caught:
        whole.replace(order=ip.Weighted(drawn(4))).resume(cursor)
    assert "pass the weights of all epochs so far, or their files" in str(caught.value)
    for epoch, number in rows:
        np.save(tmp_path / f"{epoch}.npy", drawn(number))
    mapped = ip.Weighted([(epoch, tmp_path / f"{epoch}.npy") for epoch, _ in rows])
    assert whole.replace(order=mapped).resume(cursor) == whole.resume(cursor)


def test_new_weights_may_begin_where_the_error_says() -> None:
    """In the middle of an epoch its weights stay; the refusal names the first epoch for others."""
    order = order_of([(0, 0), (3, 3)])
    whole = ip.Plan(order, world_size=2, batch_size=2)
    cursor = whole.cursor(4, step=1)
    with pytest.raises(ip.IndexPlanError, match="and new ones from epoch 5 on"):
        whole.replace(order=reweighted(order, 4, drawn(4))).resume(cursor)
    later = whole.replace(order=reweighted(order, 5, drawn(4))).resume(cursor)
    assert later.indices(4, rank=0).tolist() == whole.resume(cursor).indices(4, rank=0).tolist()
