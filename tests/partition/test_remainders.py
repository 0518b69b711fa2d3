"""A remainder policy is one entry of a table: the steps of any that is added follow from it."""

from __future__ import annotations

import pytest

import indexplan as ip
from indexplan.partition.remainders import REMAINDERS, Policy


class Short(Policy):
    """All steps are full but for the last."""

    def lengths(self, left: int, size: int) -> tuple[int, ...]:
        return left // size * size, left % size


def test_a_policy_that_is_added(monkeypatch: pytest.MonkeyPatch) -> None:
    """It cuts the last steps as it says; accounts, cursors and `locate` follow."""
    monkeypatch.setitem(REMAINDERS, "short", Short("only the last step is smaller"))  # type: ignore[misc]
    phases = [ip.Phase(0, 4), ip.Phase(50, 3)]
    plan = ip.Plan(ip.Shuffle(100), world_size=2, batch_size=phases, remainder="short")  # type: ignore[arg-type]
    assert [8] * 7 + [6] * 7 + [2] == [plan.step_size(0, step=step) for step in plan.steps(0)]
    assert (100, 0, 0, 15) == (
        plan.account(0).num_read,
        plan.account(0).num_dropped,
        plan.account(0).num_padded,
        plan.account(0).num_steps,
    )
    rest = plan.resume(plan.cursor_at(98))
    assert (plan.cursor_at(98), range(14, 15)) == (plan.cursor(0, step=14), rest.steps(0))
    for each in (plan, rest, plan.replace(world_size=5, batch_size=7, sub_epochs=3)):
        report = ip.verify(each)
        assert report.ok, str(report)
