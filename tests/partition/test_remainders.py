"""A remainder policy is one entry of a table: the steps of any that is added follow from it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import indexplan as ip
from indexplan.partition.remainders import REMAINDERS, Policy
from tests.support.planned import planned


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


@given(st.integers(1, 300), st.integers(1, 9), st.integers(1, 20), st.integers(1, 5))
def test_sizes_of_batches(num: int, ranks: int, size: int, sub_epochs: int) -> None:
    """What docs/epochs.md says of batches: two sizes at most under "spread", one under the others.

    Two sizes differ by one, and none is larger than the batch size; of a pass, without phases.
    """
    order = ip.Sequential(num)
    for remainder in ("spread", "drop", "pad", "carry"):
        plan = planned(
            order, world_size=ranks, batch_size=size, sub_epochs=sub_epochs, remainder=remainder
        )
        for part in range(sub_epochs):
            sizes = {
                plan.batch(0, part, step=step, rank=rank).size
                for step in plan.steps(0, part)
                for rank in range(ranks)
            }
            if remainder == "spread":
                assert max(sizes, default=0) <= size
                assert max(sizes, default=0) - min(sizes, default=0) <= 1
            else:
                assert sizes <= {size}
