"""How many ranks a plan's steps suffice for, without ever giving one an empty batch."""

from __future__ import annotations

from indexplan.errors import IndexPlanError
from indexplan.partition.steps import Steps
from indexplan.plan.epochs import different_epochs
from indexplan.plan.plan import Plan, layout_of


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
        If no step is left: of the last epoch of all, "drop" may leave none.
    """
    accounts = (plan.account(epoch) for epoch in different_epochs(layout_of(plan)))
    sizes = [account.min_batch_size or 0 for account in accounts if account.num_steps]
    if not sizes:
        raise IndexPlanError(
            "a live plan",
            "must have steps",
            f"none in epoch {plan.start.epoch}, under remainder={plan.remainder!r}",
            "use a smaller global_batch_size, or remainder='spread'",
        )
    return min(sizes)
