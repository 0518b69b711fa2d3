"""The picture of batch sizes shows what the plan says, under each policy."""

from __future__ import annotations

from typing import Any

import pytest

import indexplan as ip
from indexplan import plot
from indexplan.partition.remainders import REMAINDERS
from tests.support.bins import ChangingBins
from tests.support.figures import BLUE, ORANGE, PLAN, RED, SKY, bars, heading, notes


def panels(figure: Any) -> dict[str, Any]:
    """The panel of each policy, by its name."""
    return {axes.get_title(loc="left").split('"')[1]: axes for axes in figure.axes}


def said(figure: Any) -> dict[str, str]:
    """What the panel of each policy says."""
    return dict(zip(panels(figure), notes(figure), strict=True))


def test_sizes() -> None:
    """A bar for each rank and step; padded, dropped and borrowed units in their colours."""
    figure = plot.batch_sizes(PLAN)
    drop, pad, spread, carry = map(panels(figure).get, ("drop", "pad", "spread", "carry"))
    assert {8.0} == {height[BLUE] for place, height in bars(drop).items() if place < 6}
    assert {RED: 11 / 4} == bars(drop)[6]
    assert 4 * 7 == len(bars(spread))
    assert 203 == sum(height[BLUE] for height in bars(spread).values())
    for axes, other in ((pad, ORANGE), (carry, SKY)):
        heights = bars(axes).values()
        assert 203 == sum(height.get(BLUE, 0) for height in heights)
        assert 21 == sum(height.get(other, 0) for height in heights)
    assert 0 == drop.get_ylim()[0]
    assert drop.get_ylim()[1] >= 10  # bars end below the words
    words = {
        "drop": "11 units dropped (2.75 a rank)",
        "pad": "21 slots padded, from step 6, rank 1 on",
        "spread": "every unit is read once; batches may be one smaller",
        "carry": "21 units of what comes next, from step 6, rank 1 on",
    }
    assert words.items() <= said(figure).items()


def test_sizes_under_each_policy_that_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """A policy that is added has a panel, without a word here."""
    monkeypatch.setitem(REMAINDERS, "fifth", REMAINDERS["pad"])  # type: ignore[misc]
    figure = plot.batch_sizes(PLAN)
    assert list(REMAINDERS) == list(panels(figure))
    assert said(figure)["pad"] == said(figure)["fifth"]


def test_sizes_of_a_sub_epoch() -> None:
    """What carry reads of the next sub-epoch is not the sub-epoch's own."""
    plan = PLAN.replace(sub_epochs=2, remainder="carry")
    heights = bars(panels(plot.batch_sizes(plan, 0, 0))["carry"]).values()
    assert 102 == sum(height.get(BLUE, 0) for height in heights)
    assert 26 == sum(height.get(SKY, 0) for height in heights)


def test_sizes_of_a_resumed_plan() -> None:
    """Every policy starts where the plan does."""
    plan = PLAN.resume(PLAN.cursor(1, step=3))
    for axes in plot.batch_sizes(plan, 1).axes:
        assert ["3", "4", "5"] == [label.get_text() for label in axes.get_xticklabels()][:3]
        units = sum(h.get(BLUE, 0) + 4 * h.get(RED, 0) for h in bars(axes).values())
        assert plan.account(1).num_read == units


def test_sizes_without_steps() -> None:
    """A policy without steps says what becomes of the units."""
    plan = ip.Plan(ip.Shuffle(3), world_size=2, batch_size=1, sub_epochs=2)
    words = said(plot.batch_sizes(plan, 0, 1))
    assert "no steps: all 1 unit dropped" == words["drop"]
    plan = ip.Plan(ip.Shuffle(3), world_size=8, batch_size=256, sub_epochs=2)
    figure = plot.batch_sizes(plan, 0, 1)
    words = said(figure)
    why = "epoch 0 must have a full step, as remainder='drop' reads no other"
    assert why == panels(figure)["drop"].get_xlabel().replace("\n", " ")
    assert "no steps: one that starts before reads these 1 unit" == words["carry"]
    empty = ip.Plan(ip.Shuffle(3), world_size=8, batch_size=256, sub_epochs=5)
    said_by_all = {"no steps: no units are left", "not for this plan"}
    assert said_by_all == set(notes(plot.batch_sizes(empty, 0, 4)))


def test_sizes_of_many() -> None:
    """Sampled ranks are named, large step numbers short, and where padding starts is exact."""
    plan = ip.Plan(ip.Shuffle(10**12), world_size=4096, batch_size=256, sub_epochs=40)
    figure = plot.batch_sizes(plan, 3, 7)
    ranks = "0, 585, 1,170, 1,755, 2,340, 2,925, 3,510, 4,095"
    title, caption = heading(figure)
    assert "Last batches of epoch 3, sub-epoch 7: 8 of 4,096 ranks" == title
    assert caption.startswith(f"Each bar is the batch of a rank ({ranks}): ")
    labels = [label.get_text() for label in figure.axes[0].get_xticklabels()]
    assert ["23,833", "23,835", "23,837", "23,839", "dropped"] == labels
    assert "step" == figure.axes[0].get_xlabel()
    pad = plan.replace(remainder="pad")
    assert "148,992 slots padded, from step 23,841, rank 3,514 on" == said(figure)["pad"]
    assert [256, 0] == [pad.units(3, 7, step=23_841, rank=rank).num_valid for rank in (3513, 3514)]


def test_sizes_where_carry_is_not_for_the_order() -> None:
    """A policy that the order does not allow says why."""
    figure = plot.batch_sizes(ip.Plan(ChangingBins(50), world_size=2, batch_size=3))
    carry = panels(figure)["carry"]
    assert "carry needs an order with the same number of units in every epoch" == (
        carry.get_xlabel().replace("\n", " ")
    )
