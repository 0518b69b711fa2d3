"""How many ranks a plan's steps suffice for, without ever giving one an empty batch."""

from __future__ import annotations

from indexplan.errors import IndexPlanError
from indexplan.orders.extents import gaps_of
from indexplan.partition.steps import Steps
from indexplan.plan.plan import Plan, layout_of
from indexplan.seeds import EPOCH_STOP


def smallest_step(steps: Steps) -> int:
    """Return the units of the smallest step of a sub-epoch that has one, padding included."""
    return min(span.length // span.num_steps for span in steps.spans)


def largest_world(plan: Plan) -> int:
    """Return how many ranks all steps of a plan for one rank suffice for, from its start on.

    Where epochs differ in units, and the order does not name those at which they change, it is that
    of the first two.

    Raises
    ------
    IndexPlanError
        If there is no step in any of the epochs that are looked at.
    """
    accounts = (plan.account(epoch) for epoch in _different_epochs(plan))
    sizes = [account.min_batch_size or 0 for account in accounts if account.num_steps]
    if not sizes:
        raise IndexPlanError(
            "a live plan",
            "must have steps",
            f"none in epoch {plan.start.epoch}, under remainder={plan.remainder!r}",
            "use a smaller global_batch_size, or another remainder",
        )
    return min(sizes)


def _different_epochs(plan: Plan) -> list[int]:
    """Return epochs from the start of a plan on: all others have the same steps as one of them.

    Steps change where a phase begins, which can be an epoch later than its place, and where the
    order says that the number of units does.
    """
    layout, start = layout_of(plan), plan.start.epoch
    changes = {start}
    for at in layout.partition.ats:
        changes.add(at[0] if not isinstance(at, int) else layout.held(at)[0])
    if (extent := gaps_of(plan.order)) is not None and extent.sums_up:
        changes.update(extent.changed)
    near = {epoch + more for epoch in changes for more in (0, 1)}
    return sorted(epoch for epoch in near if start <= epoch < EPOCH_STOP)
