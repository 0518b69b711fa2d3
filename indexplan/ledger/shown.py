"""A run's stretches of steps, as a table and pictures show them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from indexplan.answers import table
from indexplan.ledger.history import History, Segment

SHOWN = 12  # the last stretches that are listed
WORDS = ("world", "batch", "exclude", "weights", "sources", "order")
_BATCH = ("batch_size", "global_batch_size", "sub_epochs", "remainder", "balance")


class Listed(NamedTuple):
    """A stretch of steps of a run, with what is said of it."""

    segment: Segment
    world_size: int
    void: bool
    words: tuple[str, ...]  # what changed since the stretch before, "skip" among it


def listed(history: History) -> list[Listed]:
    """Return all stretches of steps, those that are void among them, in the order of the file."""
    segments = [(each, True) for gone in history.void for each in gone]
    segments += [(each, False) for each in history.live]
    segments.sort(key=lambda pair: (pair[0].line, pair[0].step))
    jumped = {segment.line: segment.step for _, segment in history.jumps()}
    before, rows = None, []
    for segment, void in segments:
        words = ("skip",) * (jumped.get(segment.line) == segment.step)
        plan = history.plans[segment.plan].line.plan
        if before is not None:
            words += why(before, plan)
        before = plan
        rows.append(Listed(segment, plan["world_size"], void, words))
    return rows


def why(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what changed from one plan to the next, in their dict forms, in a few words."""
    one, other = _parts(before), _parts(after)
    found = [word for word in WORDS if one[word] != other[word]]
    of_mixtures = ("sources", "weights") if "order" in found else ()  # of two other orders
    return tuple(word for word in found if word not in of_mixtures)


def _parts(plan: Mapping[str, Any]) -> dict[str, Any]:
    """Return what each of the words is about."""
    batch, order = [plan.get(name) for name in _BATCH], plan["order"]
    parts = {"world": plan["world_size"], "batch": batch, "sources": None, "weights": None}
    left_out, rest = parts["exclude"], parts["order"] = [], list[Any]()
    while isinstance(order, Mapping):  # layer by layer from outside
        own = {name: value for name, value in order.items() if name != "order"}
        if own.get("algorithm") == "without-v1":
            left_out.append(own)
        elif "sources" in own:
            parts |= {"sources": own.pop("sources"), "weights": own}
        else:
            rest.append(own)
        order = order.get("order")
    return parts


def stretches_shown(history: History) -> list[str]:
    """Return lines with the last stretches of steps, those that are void among them, if any."""
    rows = []
    for segment, world_size, void, words in (of_all := listed(history))[-SHOWN:]:
        numbers = (segment.step, segment.steps, world_size, *segment.start.unit)
        rows.append([*(f"{each:,}" for each in numbers), ", ".join(("void",) * void + words)])
    if not rows:
        return []
    heading = ["step", "steps", "ranks", "epoch", "position", ""]
    lines = [line.rstrip() for line in table([heading, *rows], least=(9, 7, 5, 5, 12))]
    if first := len(of_all) - len(rows):
        lines.insert(1, f"... {first:,} before these")
    return lines
