"""Orders over another order: epochs of one's own size, copies, some samples; alone and nested."""

from __future__ import annotations

import pickle
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import indexplan as ip
from indexplan.reports.lockstep import agrees_until
from tests.orders.test_protocol import Later, units
from tests.support.bins import Bins, Drawn
from tests.support.reweighted import reweighted

INSIDE = st.one_of(
    st.builds(ip.Shuffle, st.integers(1, 40), st.integers(0, 9)),
    st.builds(ip.BlockShuffle, st.integers(1, 40), st.integers(1, 9), st.integers(1, 3)),
    st.builds(Drawn, st.integers(1, 40), st.integers(0, 9)),
    st.builds(Bins, st.integers(1, 40)),
)


@st.composite
def subsets(draw: st.DrawFn, inside: st.SearchStrategy[Any]) -> ip.Subset:
    """Draw a subset by a list, a mask or a range."""
    order = draw(inside)
    num, most = order.num_samples, draw(st.integers(order.num_samples, 90))
    kind = draw(st.sampled_from(["list", "mask", "range", "permutation"]))
    if kind == "range":
        step = draw(st.integers(1, max(1, (most - 1) // max(1, num - 1))))
        kept: Any = range(0, num * step, step)
        kept = kept[::-1] if draw(st.booleans()) else kept
        most = max(most, kept[0] + 1, kept[-1] + 1)
    elif kind == "mask":
        kept = np.zeros(most, bool)
        kept[draw(st.permutations(range(most)))[:num]] = True
    elif kind == "permutation":
        kept = draw(st.permutations(range(most)))[:num]
    else:
        kept = draw(st.lists(st.integers(0, most - 1), min_size=num, max_size=num))
    return ip.Subset(order, kept, most)


def layers(inside: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return a strategy for one layer over some orders."""
    return st.one_of(
        st.builds(ip.Epochs, inside, st.integers(1, 100)),
        st.builds(
            lambda order, copies, width: ip.Repeat(order, copies, copies * width),
            inside,
            st.integers(1, 4),
            st.integers(1, 12),
        ),
        subsets(inside),
    )


LAYERS = layers(INSIDE) | layers(layers(INSIDE)) | layers(layers(layers(INSIDE)))


def oracle(order: Any, epoch: int) -> list[list[int]]:
    """Return the units of an epoch, by the words of the docstrings alone."""
    if isinstance(order, ip.Epochs):
        size, row, inner = order.epoch_size, [], 0
        n = len(oracle(order.order, 0))
        inner, skip = divmod(epoch * size, n)
        row = oracle(order.order, inner)[skip:]
        while len(row) < size:
            inner += 1
            row += oracle(order.order, inner)
        return row[:size]
    if isinstance(order, ip.Repeat):
        row, left = [], oracle(order.order, epoch)
        width = order.span // order.copies
        while left:
            row += left[:width] * order.copies
            left = left[width:]
        return row
    if isinstance(order, ip.Subset):
        kept = order.indices if isinstance(order.indices, range) else order.indices.array.tolist()
        return [[kept[sample] for sample in unit] for unit in oracle(order.order, epoch)]
    return units(order, epoch)


@given(LAYERS, st.sampled_from([0, 1, 2, 7]))
def test_layers_are_their_words(order: ip.Order, epoch: int) -> None:
    """Every unit of an epoch is the oracle's, taken whole, in cuts and one by one."""
    row = oracle(order, epoch)
    assert row == units(order, epoch)
    num = len(row)
    ends = sorted({0, num, num // 3, num // 2})
    cuts = order.take(epoch, ends[:-1], ends[1:])
    flat = [sample for unit in row for sample in unit]
    assert flat == cuts.tolist()
    backwards = list(range(num))[::-1]
    assert [s for at in backwards for s in row[at]] == order.take(epoch, backwards).tolist()
    counts = Counter(flat)
    most = max(counts.values())
    assert {"once": most == 1 and len(counts) == order.num_samples, "at most once": most == 1}.get(
        order.traits.reads, True
    )


def test_a_unit_that_holds_a_sample_twice_is_verified() -> None:
    """It is named twice, and found so."""
    order = ip.Subset(Bins(3), [1, 0, 0], 3)
    assert [[1], [0, 0]] == units(order, 0)
    assert ([1, 1], [0, 2]) == tuple(part.tolist() for part in order.locate_all(0, [0]))
    assert ip.verify(ip.Plan(order, world_size=1, batch_size=1)).ok


def test_known_answers() -> None:
    """Bits that never change."""
    assert [0, 1, 2, 3] * 3 + [4, 5, 6, 7] * 3 + [8, 9] * 3 == ip.Repeat(
        ip.Sequential(10), copies=3, span=12
    ).take(0, 0, 30).tolist()
    shuffled = ip.Epochs(ip.Shuffle(10, seed=3), epoch_size=4)
    assert [[6, 8, 2, 9], [5, 3, 0, 1]] == [shuffled.take(e, 0, 4).tolist() for e in range(2)]
    assert "48b91b9f3c83e829" == shuffled.fingerprint[:16]
    subset = ip.Subset(ip.Shuffle(10, seed=3), range(100, 110), 200)
    assert [106, 108, 102] == subset.take(0, 0, 3).tolist()
    assert {"range": [100, 110, 1]} == subset.to_dict()["indices"]
    assert "32510284c70ab9d7" == subset.fingerprint[:16]
    listed = ip.Subset(ip.Shuffle(3, seed=3), [5, 6, 7], 200)
    assert "09b684e0fa7eb624" == listed.fingerprint[:16]


@given(st.integers(1, 30), st.integers(1, 90), st.integers(0, 20), st.integers(1, 9))
def test_nothing_comes_twice_before_all_have_come(n: int, size: int, first: int, num: int) -> None:
    """Over some epochs counts differ by at most 2, and from the start by at most 1."""
    order = ip.Epochs(ip.Shuffle(n, seed=5), size)
    for begin, most in ((0, 1), (first, 2)):
        counts = sum(order.count(epoch, range(n)) for epoch in range(begin, begin + num))
        assert counts.max() - counts.min() <= most
    period = [order.take(*divmod(place, size))[0] for place in range(first * n, first * n + n)]
    assert sorted(period) == list(range(n))


def test_runs_may_go_on_where_the_order_inside_may() -> None:
    """A layer asks the order inside, from where on the two may differ."""
    for layer, epoch in ((ip.Epochs(Later(20), 10), 3), (ip.Repeat(Later(20), 2), 1)):
        other = {
            since: type(layer)(Later(20, since=since), *list(vars(layer).values())[1:2])
            for since in (1, 2)
        }
        saved = layer.to_dict()
        assert not other[1].continues(saved, epoch, 5)
        assert other[2].continues(saved, epoch, 5)
        assert not other[2].continues({**saved, "algorithm": "x"}, epoch, 5)


def test_what_was_worked_out_is_not_pickled() -> None:
    """A subset's sorted list stays where it was sorted."""
    subset = ip.Subset(ip.Shuffle(10**4), np.arange(10**4)[::-1], 10**4)
    before = len(pickle.dumps(subset))
    subset.locate(0, 5)
    assert before == len(pickle.dumps(subset))


def test_huge_streams() -> None:
    """Places up to 2**63 are exact; past that, and past the last epoch inside, there are none."""
    order = ip.Epochs(ip.Shuffle(2**40, seed=1), 2**36)
    epoch = 2**27 - 2
    inner, start = divmod(epoch * 2**36 + 12345, 2**40)
    assert order.take(epoch, 12345).tolist() == order.order.take(inner, start).tolist()
    sample = order.take(epoch, 12345)
    assert order.locate(epoch, sample).tolist() == [12345]
    with pytest.raises(ip.IndexPlanError, match="epoch must be below 134217727, where the stream"):
        order.take(2**27 - 1, 0)
    small = ip.Epochs(ip.Shuffle(3), 2)
    assert 2 == len(small.take(2**32 - 1, 0, 2))
    with pytest.raises(ip.IndexPlanError, match="epoch must be below"):
        ip.Epochs(ip.Shuffle(3), 4).take(2**32 - 1, 0)


def test_answers_cost_what_they_hold() -> None:
    """Of a billion copies, or a million short epochs, the first is found and all are counted."""
    copies = ip.Repeat(ip.Shuffle(3, seed=1), 2**30)
    assert 2**30 == copies.count(0, 1)
    assert copies.take(5, copies.locate(5, 1)).tolist() == [1]
    ends = ip.Epochs(ip.Shuffle(3, seed=1), 10**9)
    assert 10**9 == ends.count(1, [0, 1, 2]).sum()
    assert ends.take(1, ends.locate(1, [0, 1, 2])).tolist() == [0, 1, 2]
    with pytest.raises(ip.IndexPlanError, match="index must be"):
        ip.Plan(copies, world_size=1, batch_size=1).locate([[1], [2, 3]], 0)
    plan = ip.Plan(copies, world_size=1, batch_size=1)
    assert plan.locate(1, 0).step == copies.locate(0, 1)
    rest = plan.resume(plan.cursor(0, step=2**31))  # which every first read comes before
    for listed in (rest.locate, plan.locate_all):
        with pytest.raises(ip.IndexPlanError, match="reads to list must be at most 134217728"):
            listed(1, 0)


def test_layers_over_a_stored_order(tmp_path: Any) -> None:
    """They are saved, and read again, as over the order that is stored."""
    inside = ip.Subset(ip.Shuffle(5, seed=1), [7, 3, 1, 9, 2], 10)
    ip.save(ip.Plan(inside, batch_size=2), tmp_path / "inside.plan")
    order = ip.Epochs(ip.load(tmp_path / "inside.plan").order, 3)
    assert order == ip.Epochs(inside, 3)
    ip.save(ip.Plan(order, batch_size=2), tmp_path / "a.plan", epochs=range(2))
    again = ip.load(tmp_path / "a.plan")
    assert again.order.take(9, 0, 3).tolist() == ip.Epochs(inside, 3).take(9, 0, 3).tolist()


@pytest.mark.parametrize("make", [list, tuple, lambda mask: mask.tolist()])
def test_masks_of_any_kind_keep_their_samples(make: Any) -> None:
    """A mask may be a list or a tuple; tests/adapters has tensors."""
    mask = np.arange(9) % 4 == 1
    assert ip.Subset(ip.Shuffle(2), mask, 9) == ip.Subset(ip.Shuffle(2), make(mask), 9)


def test_ranges_of_the_same_samples_are_equal() -> None:
    """However a range is written, it is its samples."""
    one, other = (ip.Subset(ip.Shuffle(2), range(0, stop, 2), 9) for stop in (3, 4))
    assert one == other
    assert ip.Subset(ip.Shuffle(1), range(5, 4, -(2**63)), 9) == ip.Subset(
        ip.Shuffle(1), range(5, 6), 9
    )


SHUFFLED = ip.Shuffle(40, seed=3)
WEIGHTED = ip.Weighted([1, 2, 3], 9)
MIXED = ip.Mixture({"a": ip.Shuffle(30), "b": ip.Shuffle(9, seed=1)}, {"a": 1, "b": 1}, seed=4)
CHANGED: dict[str, tuple[ip.Order, ip.Order]] = {  # an order, and what it becomes during a run
    "weights of samples": (WEIGHTED, reweighted(WEIGHTED, 2, [3, 1, 1])),
    "weights of sources": (MIXED, MIXED.with_phase(50, {"a": 3, "b": 1})),
    "a source": (
        MIXED,
        MIXED.with_phase(50, {"a": 3, "b": 1, "c": 1}, sources={"c": ip.Shuffle(5, seed=2)}),
    ),
    "excluded samples": (
        SHUFFLED,
        ip.Without(SHUFFLED, [7], since=ip.Plan(SHUFFLED, global_batch_size=9).cursor(1, step=2)),
    ),
}
AROUND: dict[str, Any] = {
    "itself": lambda order: order,
    "epochs": lambda order: ip.Epochs(order, 7),
    "copies": lambda order: ip.Repeat(order, 2, 6),
    "subset": lambda order: ip.Subset(order, range(2, 2 + order.num_samples), 90),
    "mixture": lambda order: ip.Mixture({"x": order, "y": ip.Shuffle(6, seed=9)}, {"x": 2, "y": 1}),
}


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("changed", CHANGED)
def test_a_changed_order_agrees_up_to_its_last_place(changed: str, around: str) -> None:
    """It continues there and not at the next; all before it reads the same, to `diff` too."""
    try:
        before, after = map(AROUND[around], CHANGED[changed])
    except ip.IndexPlanError:  # epochs of other lengths, which only some layers take
        assert changed == "excluded samples"
        return
    saved = before.to_dict()
    until = agrees_until(after, saved)
    renumbered = changed == "a source" and around in ("subset", "mixture")
    assert (until == (0, 0)) == renumbered
    if renumbered:
        assert not after.continues(saved, 0, 0)
        return
    epoch, position = until
    assert after.continues(saved, epoch, position)
    assert not after.continues(saved, epoch, position + 1)
    assert not after.continues(saved, epoch + 1, 0)
    for each in range(epoch + 1):
        stop = position if each == epoch else before.num_units(each)
        assert np.array_equal(before.take(each, 0, stop), after.take(each, 0, stop))
    one, other = (ip.Plan(order, world_size=2, batch_size=1) for order in (before, after))
    parted = ip.diff(one, other).steps_from
    assert parted is None or parted >= (epoch, 0, position // 2)
