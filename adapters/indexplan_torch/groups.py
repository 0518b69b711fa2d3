"""Groups of samples in a step: the sources of a mixture, or the classes, for a loop's log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from indexplan_torch.run import Received


def groups_of(received: Received) -> Any:
    """Return the group of each sample of a batch; int64, shape (samples,)."""
    epoch, sub_epoch = received.where
    order = received.plan.order
    batch = received.plan.batch(epoch, sub_epoch, step=received.step, rank=received.rank)
    return order.group_of(batch)


def shares_of(received: Received) -> dict[str, float]:
    """Return the share of each group that the order aims at in a step, by name."""
    plan, where, step = received.plan, received.where, received.step
    order, size = plan.order, plan.step_size(*where, step=step)
    place = plan.cursor(*where, step=step)
    epoch, position, left = place.epoch, place.position, size
    counts = [0.0] * len(order.group_names)
    while left:  # a step may cross epochs
        units = min(left, order.num_units(epoch) - position)
        shares = order.group_shares(epoch, position, position + units).tolist() if units else counts
        counts = [count + share * units for count, share in zip(counts, shares, strict=True)]
        epoch, position, left = epoch + 1, 0, left - units
    return {name: count / size for name, count in zip(order.group_names, counts, strict=True)}
