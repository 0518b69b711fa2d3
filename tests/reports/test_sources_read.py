"""What a run reads of each source of a mixture: counted by formula, against walking through it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import indexplan as ip
from indexplan.cli import main
from indexplan.reports.show import show_plan
from tests.support.nested import MIXTURES

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


def test_wanted_is_what_was_written() -> None:
    """Percents with four decimals, which the old shares of 1/65,536 missed by 2.5 %."""
    sources = {"a": ip.Shuffle(10**7, seed=1), "b": ip.Shuffle(10**5, seed=2)}
    found = ip.draws(
        ip.Plan(ip.Mixture(sources, {"a": 99.9866, "b": 0.0134}), batch_size=8), stop=10**9
    )
    assert [999_866_000, 134_000] == pytest.approx(found.aimed.tolist(), rel=1e-12)
    assert [999_866_000, 134_000] == found.drawn.tolist()


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
    words += 'Epochs(order, 100) reads as an epoch, in a run of "spread" or "carry" from '
    words += "plan.cursor_at(place) on"
    assert f"\nepoch size   {words}\n" in str(shown)
    assert 100 == shown.to_dict()["sizes_together"]


@pytest.mark.parametrize("remainder", ["spread", "carry"])
@pytest.mark.parametrize("step", [2, 8], ids=["inside an epoch", "at the end of one"])
def test_a_run_goes_on_in_epochs_that_have_grown(step: int, remainder: str) -> None:
    """As `show` says: `Epochs` reads the same samples from the cursor on, in longer epochs."""
    sources = {"a": ip.Shuffle(50, seed=1), "b": ip.Shuffle(30, seed=2)}
    plan = ip.Plan(ip.Mixture(sources, {"a": 1, "b": 1}), global_batch_size=10, remainder=remainder)
    cursor = plan.cursor(1, step=step)
    place = cursor.epoch * 80 + cursor.position
    new = {"c": ip.Shuffle(20, seed=3)}
    grown = plan.order.with_phase(cursor, {"a": 1, "b": 1, "c": 1}, sources=new)
    one = plan.replace(order=grown, world_size=1).resume(cursor)
    other = plan.replace(order=ip.Epochs(grown, 100), world_size=1)
    other = other.resume(other.cursor_at(place))
    assert 100 == other.order.num_units(2)
    units = [
        np.concatenate([each for more in range(4) for each in rest.batches(first + more, rank=0)])
        for rest, first in ((one, one.start.epoch), (other, other.start.epoch))
    ]
    shortest = min(map(len, units))
    assert shortest >= 200
    assert units[0][:shortest].tolist() == units[1][:shortest].tolist()


def test_the_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`show` counts an epoch; `ledger draws` counts what a run read."""
    plan = ip.Plan(WHOLE, world_size=2, batch_size=100)
    path = tmp_path / "plan.json"
    path.write_text(plan.to_json())
    found = ip.draws(plan)
    assert 0 == main(["show", str(path)])
    assert str(found) in capsys.readouterr().out
    assert 0 == main(["show", str(path), "--json"])
    assert found.to_dict() == json.loads(capsys.readouterr().out)["draws"]
    ledger = ip.Ledger(tmp_path / "run.ledger")
    ledger.record(plan, plan.cursor(epoch=2, step=0))
    assert 0 == main(["ledger", str(ledger.path), "draws"])
    assert f"{ip.draws(ledger)}\n" == capsys.readouterr().out
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
