"""Runs that take samples out: what is left is read as if nothing had happened."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import indexplan as ip
from indexplan.cli.main import main
from indexplan.testing import check_order
from tests.golden.lines import crc32
from tests.support.left_out import live

SHUFFLE = ip.Shuffle(1000, seed=1)
PLAN = ip.Plan(SHUFFLE, world_size=4, batch_size=8)
GOLDEN = Path(__file__).parents[1] / "golden"


def check_answer(order: ip.Order, case: dict[str, Any]) -> None:
    """Check what an epoch reads against a known answer."""
    row = order.take(case["epoch"], 0, case["num_units"])
    assert case["num_units"] == order.num_units(case["epoch"])
    assert (case["first"], case["last"]) == (row[:8].tolist(), row[-8:].tolist())
    assert case["crc32_of_all_as_little_endian_int64"] == crc32(row)
    assert np.array_equal(np.arange(len(row)), order.locate(case["epoch"], row))


@pytest.mark.parametrize("case", json.loads((GOLDEN / "without_v1.json").read_text())["cases"])
def test_known_answers(case: dict[str, Any]) -> None:
    """They are those of plain lists, from `tests.golden.make`."""
    order: ip.Order = ip.Shuffle(case["n"], case["seed"])
    for epoch, position, samples in case["groups"]:
        cursor = {"epoch": epoch, "position": position, "order": order.to_dict()}
        since = ip.Cursor.from_dict({**cursor, "sub_epoch": 0, "step": 0, "sub_epochs": 1})
        order = ip.Without(order, samples, since=since)
    check_answer(order, case)


def read(plan: ip.Plan, epoch: int, sub_epoch: int = 0) -> list[int]:
    """Return what all ranks read in the steps of a sub-epoch that are left."""
    return [
        int(sample)
        for step in plan.steps(epoch, sub_epoch)
        for rank in range(plan.world_size or 1)
        for sample in plan.batch(epoch, sub_epoch, step=step, rank=rank)
    ]


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_drawn_histories(seed: int) -> None:
    """Samples leave, sources join, and ranks come and go, in any order."""
    live(seed)


@pytest.mark.parametrize("remainder", ["spread", "pad", "carry", "drop"])
def test_what_was_read_stays(remainder: Any) -> None:
    """Every batch before the place is equal; after it no excluded sample is read."""
    plan = PLAN.replace(remainder=remainder)
    cursor = plan.cursor(1, step=7)
    bad = list(range(0, 1000, 7))
    without = plan.replace(order=ip.Without(SHUFFLE, bad, since=cursor))
    for epoch, steps in ((0, plan.steps(0)), (1, range(7))):
        for step in steps:
            for rank in range(4):
                expected = plan.batch(epoch, step=step, rank=rank)
                assert np.array_equal(expected, without.batch(epoch, step=step, rank=rank))
    resumed = without.replace(world_size=3, batch_size=5).resume(cursor)
    order = SHUFFLE.take(1, cursor.position, 1000).tolist()
    left = [sample for sample in order if sample not in bad]
    mine = read(resumed, 1)
    dropped = resumed.account(1).num_dropped
    assert left[: len(left) - dropped] == mine[: len(left) - dropped]


def test_the_account() -> None:
    """Excluded units are counted, and the sum is the order's number."""
    cursor = PLAN.cursor(1, step=7)
    plan = PLAN.replace(order=ip.Without(SHUFFLE, range(100), since=cursor))
    assert 1000 == plan.account(0).num_units == plan.account(0).num_read
    assert (100, 900, 1000) == (
        plan.account(2).num_excluded,
        plan.account(2).num_read,
        plan.account(2).num_units,
    )
    assert ", 100 excluded; " in str(plan.account(2))


def test_several_in_one_order() -> None:
    """An order without more samples is one order, however often samples left."""
    first = ip.Without(SHUFFLE, [5, 3], since=PLAN.cursor(0, step=3))
    later = PLAN.replace(order=first).cursor(1, step=2)
    both = ip.Without(first, [9, 1], since=later)
    assert both.order == SHUFFLE
    assert [3, 5, 1, 9] == both.samples.array.tolist()
    assert ((0, 96, 2), (1, later.position, 2)) == both.since
    data = both.to_dict()
    again = ip.Plan.from_json(
        ip.Plan(both, batch_size=2).to_json(), columns=both.columns.values()
    ).order
    assert both == again
    assert data == again.to_dict()


def test_a_cursor_of_an_earlier_order() -> None:
    """A run continues with a cursor of any of its earlier orders, up to where samples left."""
    first = ip.Without(SHUFFLE, [5, 3], since=PLAN.cursor(0, step=3))
    plan = PLAN.replace(order=first)
    both = plan.replace(order=ip.Without(first, [9, 1], since=plan.cursor(1, step=2)))
    for cursor in (PLAN.cursor(0, step=2), PLAN.cursor(0, step=3), plan.cursor(1, step=1)):
        assert cursor.position == both.resume(cursor).start.position
    for cursor in (PLAN.cursor(0, step=4), plan.cursor(1, step=3)):
        with pytest.raises(ip.IndexPlanError, match="since which units are left out"):
            both.resume(cursor)
    with pytest.raises(ip.IndexPlanError, match="must belong to the plan's order"):
        PLAN.resume(both.cursor(1, step=4))


@settings(deadline=None)
@given(st.data())
def test_a_run_continues_up_to_a_change_inside(data: st.DataObject) -> None:
    """It does as long as nothing has been read of what the change moves, in whatever sequence."""
    num, weights = 50, {"a": 3, "b": 2}
    mixture = ip.Mixture({"a": ip.Shuffle(30, seed=1), "b": ip.Shuffle(20, seed=2)}, weights)
    samples = data.draw(st.sets(st.integers(0, num - 1), min_size=1, max_size=20), label="samples")
    place = data.draw(st.integers(0, num - 1), label="place")

    def taken_out(inside: ip.Order) -> ip.Order:
        return ip.Without(inside, sorted(samples))

    order = taken_out(mixture)
    changed = taken_out(mixture.with_phase(place, {"a": 1, "b": 1}, planned="drop"))
    inner = mixture.take(0, 0, num).tolist()
    read = [inner.index(sample) for sample in order.take(0, 0, order.num_units(0)).tolist()]
    for position in range(len(read) + 1):
        untouched = all(each < place for each in read[:position])
        assert untouched == changed.continues(order.to_dict(), 0, position), position


def test_all_that_was_left_of_an_epoch() -> None:
    """Where all of the rest leaves, its sub-epoch has no step left."""
    cursor = PLAN.replace(sub_epochs=2).cursor(0, 1, step=14)
    rest = SHUFFLE.take(0, cursor.position, 1000)
    plan = PLAN.replace(sub_epochs=2, order=ip.Without(SHUFFLE, rest, since=cursor)).resume(cursor)
    assert not plan.steps(0, 1)
    left = set(range(1000)) - set(rest.tolist())
    assert left == set(read(plan, 1, 0)) | set(read(plan, 1, 1))


@pytest.mark.parametrize("cut", ["piece", "unit"])
def test_bins_and_windows(cut: str) -> None:
    """A sample leaves its bin, its parts their windows; or the units go that hold it."""
    lengths = [3, 9, 2, 7, 7, 1, 12, 5, 40, 8, 4, 6] * 4
    bad = [0, 8, 20]
    for inner in (ip.Packed(lengths, 50, seed=1), ip.DocumentWindows(lengths, 20, seed=1)):
        order = ip.Without(inner, bad, cut=cut)
        check_order(order)
        plan = ip.Plan(order, world_size=1, batch_size=1)
        before = ip.Plan(inner, world_size=1, batch_size=1)
        expected = []
        for step in before.steps(1):
            unit = before.units(1, step=step, rank=0)
            pairs = np.full((len(unit.samples), 2), -1) if unit.spans is None else unit.spans
            row = list(zip(unit.samples.tolist(), pairs.tolist(), strict=True))
            kept = [pair for pair in row if pair[0] not in bad]
            if kept and (cut == "piece" or kept == row):
                expected.append(kept)
        got = []
        for step in plan.steps(1):
            unit = plan.units(1, step=step, rank=0)
            pairs = np.full((len(unit.samples), 2), -1) if unit.spans is None else unit.spans
            got.append(list(zip(unit.samples.tolist(), pairs.tolist(), strict=True)))
        assert expected == got


def test_words() -> None:
    """`explain` says that a sample was excluded, and since when."""
    cursor = PLAN.cursor(0, step=3)
    plan = PLAN.replace(order=ip.Without(SHUFFLE, [5, 3], since=cursor))
    (first, second) = ip.explain(plan, 5, [0, 1])
    at = int(SHUFFLE.locate(0, 5))
    assert (at < cursor.position) == (first.where is not None)
    assert "excluded: not read from epoch 0, position 96 on" == second.words


def test_what_diff_says() -> None:
    """Runs part at the first step that reads other samples, past where they were left out."""
    plan = PLAN.replace(order=ip.Without(SHUFFLE, range(100), since=PLAN.cursor(1, step=7)))
    later = plan.replace(order=ip.Without(plan.order, [100], since=plan.cursor(3, step=1)))
    for one, other, since in ((PLAN, plan, (1, 0, 7)), (plan, later, (3, 0, 1))):
        found = ip.diff(one, other)
        assert found.why
        assert {each.partition(".")[0] for each in found.why} == {"order"}
        assert found.steps_from is not None
        assert found.steps_from >= since


def test_what_the_command_shows(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A plan in JSON is shown with what it excludes."""
    plan = PLAN.replace(order=ip.Without(SHUFFLE, range(100), since=PLAN.cursor(0, step=7)))
    np.save(tmp_path / "samples.npy", np.arange(100))
    (tmp_path / "plan.json").write_text(plan.to_json())
    main(["show", str(tmp_path / "plan.json"), "--column", str(tmp_path / "samples.npy")])
    shown = capsys.readouterr().out
    assert "epoch   steps      read dropped excluded padded" in shown
    row = "1          29       900       0      100      0"
    assert row in shown


def test_the_stream_of_a_carry() -> None:
    """Places count what is read, so frameworks that count samples find their place."""
    cursor = PLAN.cursor(1, step=7)
    plan = PLAN.replace(order=ip.Without(SHUFFLE, range(100), since=cursor), remainder="carry")
    for epoch, step in ((0, 5), (1, 3), (2, 9), (5, 1)):
        expected = plan.cursor(epoch, step=step)
        place = sum(plan.order.num_units(each) for each in range(expected.epoch))
        assert expected == plan.cursor_at(place + expected.position)
    phases = [ip.Phase(0, 8), ip.Phase(1500, 4)]
    scheduled = plan.replace(batch_size=phases)
    assert 8 == scheduled.units(1, step=0, rank=0).phase.size
    assert 4 == scheduled.units(2, step=0, rank=0).phase.size
