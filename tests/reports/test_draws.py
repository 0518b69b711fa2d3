"""What a run reads of each group: counted by formula, against walking through its batches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import indexplan as ip
from indexplan.reports.show import show_plan
from tests.orders.test_protocol import LAYERS, Leaning, aims
from tests.support.nested import MIXTURES
from tests.support.shell import Shell
from tests.support.strategies import plans
from tests.support.units import valid_samples

BIG, SMALL = 1_000_003, 4
SIZES = {"big": BIG, "small": SMALL}
WHOLE = ip.Mixture({name: ip.Shuffle(n) for name, n in SIZES.items()}, SIZES)


def sources_at(order: ip.Order, places: list[tuple[int, int]]) -> list[int]:
    """Return the source of each unit, by its first sample."""
    firsts = [order.take(epoch, at)[0] for epoch, at in places]
    return order.group_of(np.array(firsts, np.int64)).tolist()


@st.composite
def layers(draw: st.DrawFn) -> ip.Order:
    """Draw a mixture, whose phases begin anywhere, or a layer around one."""
    order = draw(MIXTURES)
    kinds: list[Any] = [
        lambda: order,
        lambda: ip.Epochs(order, draw(st.integers(1, 90))),
        lambda: ip.Subset(order, np.arange(order.num_samples)[::-1], order.num_samples),
    ]
    if not order.deals_bins:
        some = st.lists(st.integers(0, order.num_samples - 1), min_size=1, max_size=5)
        kinds += [lambda: ip.Without(order, sorted(set(draw(some))))]
    try:
        made: ip.Order = draw(st.sampled_from(kinds))()
        for epoch in range(9):  # all that the law asks for
            made.num_units(epoch)
    except ip.IndexPlanError:  # nothing would be left of an epoch
        return order
    return made


@given(layers(), st.sampled_from(["spread", "drop", "pad", "carry"]), st.data())
def test_counts_between_any_two_places(order: ip.Order, rest: Any, data: st.DataObject) -> None:
    """They are those of the units that are read there; under "drop", of those in full batches."""
    if rest == "carry" and not order.constant_num_units:
        rest = "spread"
    size = data.draw(st.integers(1, 6))
    if rest == "drop":  # each epoch has to hold a full batch
        size = min(size, *(order.num_units(epoch) for epoch in range(9)))
    plan = ip.Plan(order, world_size=1, batch_size=size, remainder=rest)
    units = [(epoch, at) for epoch in range(4) for at in range(order.num_units(epoch))]
    start = data.draw(st.integers(0, len(units)), label="start")
    stop = data.draw(st.integers(start, len(units)), label="stop")
    found = ip.draws(plan, start=start, stop=stop)
    read = units[start:stop]
    if rest == "drop":
        full = [order.num_units(e) - plan.account(e).num_dropped for e in range(4)]
        read = [(epoch, at) for epoch, at in read if at < full[epoch]]
    expected = np.bincount(sources_at(order, read), minlength=len(found.names))
    assert expected.tolist() == found.drawn.tolist()
    wanted = np.zeros(len(found.names))
    for epoch, at in read:
        wanted += order.group_shares(epoch, at, at + 1)
    assert np.allclose(wanted, found.aimed)
    assert len(read) == found.drawn.sum()
    if found.sizes is not None:
        (mixture,) = (
            each for each in (order, getattr(order, "order", None)) if hasattr(each, "sources")
        )
        sizes = [source.num_units(0) for _, source in mixture.sources]
        assert [n / size for n, size in zip(expected, sizes, strict=True)] == found.epochs.tolist()


def test_a_small_source_is_read_as_often_as_it_was_written() -> None:
    """A weight in proportion to its size reads a source once an epoch, and the reports say so."""
    plan = ip.Plan(WHOLE, world_size=8, batch_size=32)
    shown = show_plan(plan, None, None, None)
    assert (
        "epoch 0: 1,000,007 samples read\n"
        "group      samples        got     wanted  epochs\n"
        "big      1,000,003  99.99960%  99.99960%    1.00\n"
        "small            4   0.00040%   0.00040%    1.00"
    ) in str(shown)
    big, small = shown.to_dict()["draws"]["groups"]
    assert {"name": "small", "samples": 4, "size": 4, "epochs": 1.0} == {
        name: small[name] for name in ("name", "samples", "size", "epochs")
    }
    assert small["wanted"] == pytest.approx(SMALL / (BIG + SMALL), rel=1e-12)
    assert (BIG, 1.0) == (big["samples"], big["epochs"])


def test_a_place_is_a_cursor_or_a_unit() -> None:
    """Both of the run; from a place alone, to the end of its epoch; and a resumed plan's start."""
    plan = ip.Plan(WHOLE, world_size=4, batch_size=250)
    cursor = plan.cursor(epoch=1, step=7)
    place = BIG + SMALL + 7000
    assert ip.draws(plan, stop=cursor).to_dict() == ip.draws(plan, stop=place).to_dict()
    rest = plan.resume(cursor)
    found = ip.draws(rest)
    assert ((1, 7000), (2, 0)) == (found.start, found.stop)
    assert found.to_dict() == ip.draws(plan, start=cursor).to_dict()
    assert str(found).startswith("from epoch 1, position 7,000 to epoch 2, position 0: 993,007 ")
    with pytest.raises(ip.IndexPlanError, match="start must be an integer from 1007007 to"):
        ip.draws(rest, start=place - 1)


def test_the_command(tmp_path: Path, shell: Shell) -> None:
    """`ledger draws` counts what a run read."""
    plan = ip.Plan(WHOLE, world_size=2, batch_size=100)
    ledger = ip.Ledger(tmp_path / "run.ledger")
    ledger.record(plan, plan.cursor(epoch=2, step=0))
    assert f"{ip.draws(ledger)}\n" == shell.run("ledger", str(ledger.path), "draws")
    assert [2 * BIG, 2 * SMALL] == ip.draws(ledger).drawn.tolist()


def test_a_ledger_counts_through_changes_of_plan(tmp_path: Path) -> None:
    """What each plan read of it: other weights, sources that joined, and "drop" in between."""
    sources = {"a": ip.Shuffle(50, seed=1), "b": ip.Shuffle(30, seed=2)}
    mixture = ip.Mixture(sources, {"a": 1, "b": 1})
    plan = ip.Plan(mixture, world_size=2, batch_size=5, remainder="drop")
    ledger = ip.Ledger(tmp_path / "run.ledger")
    cursor = plan.cursor(epoch=1, step=4)
    ledger.record(plan, cursor)
    new = {"c": ip.Shuffle(20, seed=3)}
    grown = plan.order.with_phase(cursor, {"a": 0, "b": 1, "c": 3}, sources=new)
    plan = plan.replace(order=grown, world_size=3, batch_size=2).resume(cursor)
    ledger.record(plan, plan.cursor(epoch=1, step=10))
    found = ip.draws(ledger)
    assert ("a", "b", "c") == found.names
    assert [60, 69, 27] == found.drawn.tolist()  # 80 + 40, half each; then 36, 1 : 3
    assert [60.0, 69.0, 27.0] == found.aimed.tolist()
    assert [60 / 50, 69 / 30, 27 / 20] == found.epochs.tolist()
    assert [60 - 40, 69 - 40, 27] == ip.draws(ledger, 1).drawn.tolist()
    assert [40, 40, 0] == ip.draws(ledger, stop=80).drawn.tolist()


@given(plans(LAYERS))
def test_counts_are_those_of_the_batches(plan: ip.Plan) -> None:
    """So many samples of each group are in the batches of all ranks, without padding."""
    epoch, order = plan.start.epoch, plan.order
    found = ip.draws(plan)
    steps = [
        valid_samples(plan, epoch, part, step=step)
        for part in range(plan.start.sub_epoch, plan.sub_epochs)
        for step in plan.steps(epoch, part)
    ]
    read = np.array(sum(steps, []), np.int64)
    if plan.remainder == "carry":  # steps read into the next epoch
        read = order.take(epoch, plan.start.position, order.num_units(epoch))
    assert np.bincount(order.group_of(read), minlength=2).tolist() == found.drawn.tolist()
    assert len(read) == pytest.approx(found.aimed.sum())
    if len(read) and plan.remainder == "spread" and plan._resumed is None:
        low = sum(aims(order, epoch))
        assert [low, len(read) - low] == pytest.approx(found.aimed.tolist())
    assert str(found).count("\n") == 3
    assert [row["samples"] for row in found.to_dict()["groups"]] == found.drawn.tolist()


def test_epochs_that_have_not_grown_are_named() -> None:
    """Where sources join, an epoch keeps its size: `show` says so, next to what there is."""
    sources = {"a": ip.Shuffle(50, seed=1), "b": ip.Shuffle(30, seed=2)}
    plan = ip.Plan(ip.Mixture(sources, {"a": 1, "b": 1}), world_size=2, batch_size=5)
    shown = show_plan(plan, None, None, None)
    assert "\nepoch size" not in str(shown)
    assert 80 == shown.to_dict()["sizes_together"]
    new = {"c": ip.Shuffle(20, seed=3)}
    grown = plan.order.with_phase(plan.cursor(1, step=2), {"a": 1, "b": 1, "c": 1}, sources=new)
    shown = show_plan(plan.replace(order=grown), None, None, None)
    words = "80 samples, and so it stays where sources join; all sources together have 100, which "
    assert f"\nepoch size   {words}Epochs(order, 100) reads as an epoch, in a run" in str(shown)
    assert 100 == shown.to_dict()["sizes_together"]


def test_a_long_list_of_sources_is_cut() -> None:
    """The line that names the order stays readable; what programs read is whole."""
    sources = {f"bin {i}": ip.Shuffle(10, seed=i) for i in range(100)}
    opened = [(0, 50), (2000, 100)]
    phases = [(at, {f"bin {i}": int(i < num) for i in range(100)}) for at, num in opened]
    plan = ip.Plan(ip.Mixture(sources, phases), world_size=1, batch_size=8)
    shown = show_plan(plan, None, None, None)
    (line,) = (line for line in str(shown).splitlines() if line.startswith("order "))
    assert len(line) < 1200
    assert "phases [[0, [1, 1, 1, 1, 1, 1, 1, 1, ... 92 more]], [2000, [1, 1, " in line
    assert 100 == len(shown.to_dict()["plan"]["order"]["sources"])


LABELS = np.arange(3 * 17**2) ** 2 % 17
THREE = {"web": ip.Shuffle(700, seed=1), "code": ip.Shuffle(90, seed=2), "none": ip.Shuffle(5)}


@pytest.mark.parametrize(
    "order",
    [
        ip.ClassBalanced(LABELS, epoch_size=40000),
        ip.ClassBalanced(LABELS, epoch_size=40000, weights=np.arange(9)),
        ip.ClassBatches(LABELS, classes=4, per_class=3, epoch_size=4000),
        ip.ClassBatches(LABELS, classes=4, per_class=40, short="leave_out"),
        ip.Grouped(LABELS, 7),
        ip.Repeat(ip.ClassBalanced(LABELS), 2),
    ],
    ids=repr,
)
def test_groups_are_those_of_the_samples(order: ip.Order) -> None:
    """Also where an order tells them without drawing the samples."""
    for epoch in (0, 6):
        num = order.num_units(epoch)
        for start, stop in ((0, num), (num // 3, num // 2 + 2), (num - 1, num)):
            expected = order.group_of(order.take(epoch, [start], [stop]))
            assert expected.tolist() == order._groups_read(epoch, start, stop).tolist()


@pytest.mark.parametrize(
    "order",
    [
        ip.Mixture(THREE, dict.fromkeys(THREE, 1)),
        ip.ClassBalanced(LABELS),
        ip.ClassBatches(LABELS, classes=4, per_class=3),
    ],
    ids=lambda order: type(order).__name__,
)
def test_no_sample_is_drawn_whose_group_is_known(
    order: ip.Order, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As drawing them takes most of the time."""
    plan = ip.Plan(order, world_size=1, batch_size=5, remainder="spread")
    expected = ip.draws(plan).drawn.tolist()
    monkeypatch.setattr(type(order), "fill", None)
    assert expected == ip.draws(plan).drawn.tolist()


def test_samples_of_two_groups_are_not_counted() -> None:
    """Nobody knows as which of the two they are read; what shows a plan says so, or leaves it."""
    sources = {"all": ip.Sequential(2), "hard": ip.Shuffle(2)}
    order = ip.Subset(ip.Mixture(sources, {"all": 1, "hard": 1}), [0, 1, 1, 2], 3)
    plan = ip.Plan(order, world_size=1, batch_size=2)
    assert "draws: sample 1 of a subset" in str(show_plan(plan, None, None, None))
    assert [None, "all"] == [ip.explain(plan, index, [0])[0].group for index in (1, 0)]


def test_a_long_epoch_is_counted_by_draws_alone() -> None:
    """`show` draws no billion samples of its own accord, and says what to name."""
    order = ip.ClassBalanced([0, 0, 0, 1], epoch_size=10**9)
    plan = ip.Plan(order, world_size=8, batch_size=256)
    shown = show_plan(plan, None, None, None)
    said = "draws: not counted, as 1,000,000,000 units would be drawn; ip.draws(plan, stop=...) "
    assert str(shown).endswith(f"{said}counts some")
    assert 7 == ip.draws(plan, stop=7).drawn.sum()


def test_of_many_groups_the_first_are_named() -> None:
    """A text stays short, whatever number of classes there is; no count is lost in the data."""
    plan = ip.Plan(ip.ClassBalanced(range(1000)), world_size=1, batch_size=10, remainder="drop")
    found = ip.draws(plan.resume(plan.cursor(0, step=50)))
    assert str(found).count("\n") == 26
    assert str(found).endswith("\n... 976 more")
    assert 500 == found.drawn.sum()
    empty = ip.draws(plan.replace(batch_size=800).resume(plan.cursor(0, step=50)))
    assert (0, 0.0) == (empty.drawn.sum(), empty.aimed.sum())
    assert "from epoch 0, position 500 to epoch 1, position 0: 0 samples read" in str(empty)
    few = plan.replace(world_size=7)
    whole = ip.draws(few)
    assert whole.drawn.sum() == few.account(0).num_read


def mixed_bins() -> ip.Mixture:
    """Two sources of bins, one of 8 samples and one of 2, as often as each other."""
    large = ip.Grouped([0] * 80, 8, seed=1)
    small = ip.Grouped([0] * 60, 2, seed=2)
    return ip.Mixture({"large": large, "small": small}, {"large": 1, "small": 1}, epoch_size=40)


@pytest.mark.parametrize("layer", [lambda order: order, lambda order: ip.Epochs(order, 20)])
def test_of_a_mixture_of_bins_bins_are_counted(layer: Any) -> None:
    """As weights are of bins: of samples, four times as many are drawn of one source."""
    order = layer(mixed_bins())
    plan = ip.Plan(order, world_size=2, batch_size=2)
    found = ip.draws(plan)
    half = order.num_units(0) // 2
    assert ("units", "units") == (order.shares_of, found.counted)
    assert [half, half] == found.drawn.tolist() == found.aimed.tolist()
    assert f"epoch 0: {2 * half} bins read" in str(found)
    assert str(found) in str(show_plan(plan, None, None, None))
    samples = order.group_of(order.take(0, 0, 2 * half))
    assert [8 * half, 2 * half] == np.bincount(samples).tolist()
    assert "samples" == ip.draws(ip.Plan(Leaning(9), world_size=1, batch_size=2)).counted
