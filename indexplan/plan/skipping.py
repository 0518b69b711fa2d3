"""Steps that a run leaves out, between two cursors."""

from __future__ import annotations

from typing import Any

from indexplan.errors import wrong
from indexplan.orders.base import Order
from indexplan.orders.skipped import Skipped, check_then
from indexplan.partition.steps import Resume
from indexplan.plan.cursor import Cursor


def without_steps(
    order: Order, start: Any, stop: Any, then: Any, sub_epochs: int, resumed: Resume | None
) -> Skipped:
    """Return the order of what `Plan.skip` does, for a plan that was resumed there, if it was."""
    check_then(then)
    ends = []
    for name, each in (("start", start), ("stop", stop)):
        if not isinstance(each, Cursor):
            cure = "pass plan.cursor(...), or load it with Cursor.from_json or from_dict"
            raise wrong(name, "a Cursor", each, cure)
        ends.append(each.checked(order, sub_epochs)[::3])
    (epoch, position), (last, end) = ends
    spans = [(epoch, position, end if last == epoch else order.num_units(epoch), then)]
    if last > epoch:
        spans.append((last, 0, end, then))
    skips = tuple(span for span in spans if span[1] < span[2])
    if ends[0] > ends[1] or not skips:
        got = f"epoch {last}, position {end}"
        rule = f"after start, epoch {epoch}, position {position}"
        raise wrong("stop", rule, got, "swap them, or pass the cursor of a later step")
    if resumed is not None and ends[0] < (begin := resumed[::3]):
        rule = f"at or past epoch {begin[0]}, position {begin[1]}, where the plan was resumed"
        got = f"epoch {epoch}, position {position}"
        raise wrong("start", rule, got, "resume an earlier cursor first")
    if last - epoch > 1:
        rule = f"in epoch {epoch} or the next, as each epoch keeps a unit"
        raise wrong("stop", rule, f"epoch {last}", "skip fewer steps")
    return Skipped(order, skips)
