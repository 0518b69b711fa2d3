"""A run's stretches of steps as a table, as a command prints them."""

from __future__ import annotations

from indexplan.answers import table
from indexplan.ledger.changes import why
from indexplan.ledger.history import History

SHOWN = 12  # the last stretches that are listed


def stretches_shown(history: History) -> list[str]:
    """Return lines with the last stretches of steps, those that are void among them, if any."""
    segments = [(each, "void") for gone in history.void for each in gone]
    segments += [(each, "") for each in history.live]
    segments.sort(key=lambda pair: (pair[0].line, pair[0].step))
    first = max(0, len(segments) - SHOWN)
    jumped = {segment.line for _, segment in history.jumps()}
    plan, rows = segments[first - 1][0].plan if first else 0, []
    for segment, void in segments[first:]:
        words = [void] if void else ["skip"] * (segment.line in jumped)
        if plan and plan != segment.plan:
            words += why(*(history.plans[each].line.plan for each in (plan, segment.plan)))
        plan = segment.plan
        named = history.plans[plan].line.plan
        numbers = (segment.step, segment.steps, named["world_size"], *segment.start.unit)
        rows.append([*(f"{each:,}" for each in numbers), ", ".join(words)])
    if not rows:
        return []
    heading = ["step", "steps", "ranks", "epoch", "position", ""]
    lines = [line.rstrip() for line in table([heading, *rows], least=(9, 7, 5, 5, 12))]
    if first:
        lines.insert(1, f"... {first:,} before these")
    return lines
