"""Ledgers that somebody forged by legal moves: each line follows, though no run wrote it so.

`verify` has to accept them, and all answers have to be those of a plain list of the steps.
"""

from __future__ import annotations

import json
import random
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

import indexplan as ip
from tests.histories.listing import cursor_at, place_of, steps_of
from tests.support.forging import ledger_of

Lines: TypeAlias = list[dict[str, Any]]
LONG = 120  # steps after which a ledger gets no more of them


def lines_of(path: Path) -> Lines:
    """Return the lines of a ledger, without their checksums and hashes."""
    lines: Lines = [json.loads(line) for line in path.read_text().splitlines()]
    return [{k: v for k, v in line.items() if k not in ("check", "previous")} for line in lines]


class Forger:
    """Changes a ledger by one legal move after another."""

    def __init__(self, path: Path, seed: int) -> None:
        self.path = path
        self.lines = lines_of(path)
        self.drawn = random.Random(seed)  # noqa: S311 (draws a test)

    def forge(self, moves: int) -> ip.Ledger:
        """Make some moves, and return the ledger."""
        for _ in range(moves):
            before = [dict(line) for line in self.lines]
            try:
                self.drawn.choice(MOVES)(self)
            except ip.IndexPlanError:  # there is no such place, or no such plan
                self.lines = before
            self.path.write_bytes(ledger_of(self.lines))
        return ip.Ledger(self.path)

    def plan(self, number: int) -> ip.Plan:
        """Return the plan of a line."""
        return ip.Plan.from_json(
            json.dumps(self.lines[number - 1]["plan"]), columns=self.path.parent / "columns"
        )

    def runs(self) -> list[int]:
        """Return where the lines of steps are."""
        return [at for at, line in enumerate(self.lines) if line["kind"] == "run"]

    def renumber(self, at: int) -> None:
        """Let lines name the plans behind a new line by their new numbers."""
        for line in self.lines:
            if line["kind"] == "run" and line["plan"] > at:
                line["plan"] += 1

    # --- the moves

    def cut(self) -> None:
        """Drop the last lines."""
        first = self.runs()[0]
        self.lines = self.lines[: self.drawn.randint(first + 1, len(self.lines))]

    def note(self) -> None:
        """Write something next to a line of steps."""
        self.lines[self.drawn.choice(self.runs())]["note"] = {"n": self.drawn.randrange(9)}

    def name_again(self) -> None:
        """Name a plan a second time, and let later lines of steps refer to either."""
        at = self.drawn.choice([at for at, each in enumerate(self.lines) if each["kind"] == "plan"])
        new = self.drawn.randint(at + 1, len(self.lines))
        self.renumber(new)
        self.lines.insert(new, self.lines[at])
        for line in self.lines[new:]:
            if line["kind"] == "run" and line["plan"] == at + 1 and self.drawn.random() < 0.5:
                line["plan"] = new + 1

    def split(self) -> None:
        """Let two lines say what one said."""
        at = self.drawn.choice(self.runs())
        line = self.lines[at]
        if line["steps"] < 2:
            return
        first = self.drawn.randrange(1, line["steps"])
        place = place_after(self.plan(line["plan"]), line["from"], first)
        rest = {"step": line["step"] + first, "steps": line["steps"] - first, "from": place}
        self.renumber(at + 1)
        self.lines[at : at + 1] = [{**line, "steps": first, "to": place}, {**line, **rest}]

    def merge(self) -> None:
        """Let one line say what two said."""
        for at in self.runs():
            one, two = [*self.lines, {}, {}][at : at + 2]
            same = one["plan"] == two.get("plan") and two["kind"] == "run"
            if same and one["to"] == two["from"]:  # the second has not jumped
                one |= {"steps": one["steps"] + two["steps"], "to": two["to"]}
                del self.lines[at + 1]
                for line in self.lines:
                    if line["kind"] == "run" and line["plan"] > at + 1:
                        line["plan"] -= 1
                return

    def discard(self) -> None:
        """Return to a step, perhaps in the middle of a line, or to the beginning."""
        if step := ip.Ledger(self.path).step:
            to = self.drawn.choice([0, self.drawn.randrange(step), self.drawn.randrange(step)])
            self.lines.append({"kind": "discard", "step": to})

    def begin_late(self) -> None:
        """Begin a ledger of the last plan in the middle of its second epoch."""
        plan = ip.Ledger(self.path).plan
        place = place_after(plan, [1, 0, 0, 0], 1)
        line = {"kind": "plan", "plan": json.loads(plan.to_json()), "data": None}
        steps = {"step": 0, "steps": 2, "from": place, "to": place_after(plan, place, 2)}
        self.lines = [line, {"kind": "run", "plan": 1, **steps}]

    def start_over(self) -> None:
        """Make all steps void, and read in another order where the run began."""
        if ip.Ledger(self.path).step:
            place = self.lines[self.runs()[0]]["from"]
            plan = ip.Plan(ip.Shuffle(60, seed=5), world_size=2, batch_size=3)
            if self.drawn.random() < 0.5:
                plan = plan.replace(sub_epochs=3)
            try:
                to = place_after(plan, place, 3)
            except ip.IndexPlanError:  # it has no such place
                return
            self.lines += [{"kind": "discard", "step": 0}]
            self.lines += [{"kind": "plan", "plan": json.loads(plan.to_json()), "data": None}]
            steps = {"step": 0, "steps": 3, "from": place, "to": to}
            self.lines += [{"kind": "run", "plan": len(self.lines), **steps}]

    def commit_again(self) -> None:
        """Make the last line of steps void, and write it once more."""
        last = self.lines[-1]
        if last["kind"] == "run":
            self.lines += [{"kind": "discard", "step": last["step"]}, dict(last)]

    def read_on(self) -> None:
        """Read more steps, perhaps on other ranks, perhaps after some that are skipped."""
        ledger = ip.Ledger(self.path)
        if 0 < ledger.step <= LONG:
            plan, here = ledger.plan.replace(world_size=self.drawn.randint(1, 4)), ledger.cursor
            if self.drawn.random() < 0.2:
                here = cursor_after(plan, here, self.drawn.choice([1, 2, 9]))
                ledger.begin(plan.resume(here), skip=True)
            ledger.record(plan.resume(here), cursor_after(plan, here, self.drawn.randint(1, 9)))
            self.lines = lines_of(self.path)


def place_after(plan: ip.Plan, place: list[int], steps: int) -> list[int]:
    """Return where a run stands after some steps of a plan from a place on."""
    return place_of(cursor_after(plan, cursor_at(plan, place), steps))


def cursor_after(plan: ip.Plan, cursor: ip.Cursor, steps: int) -> ip.Cursor:
    """Return the cursor after some steps of a plan that is resumed at another one."""
    plan = plan.resume(cursor)
    _, epoch, part, step = next(islice(steps_of(plan), steps - 1, None)).named
    return plan.cursor(epoch, part, step=step + 1)


MOVES = [
    Forger.cut,
    Forger.note,
    Forger.name_again,
    Forger.split,
    Forger.merge,
    Forger.discard,
    Forger.begin_late,
    Forger.start_over,
    Forger.commit_again,
    *[Forger.read_on] * 4,
]
