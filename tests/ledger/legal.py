"""Ledgers that somebody forged by legal moves: each line follows, though no run wrote it so.

`verify` has to accept them, and all answers have to be those of a plain list of the steps.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any, TypeAlias

import indexplan as ip
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
        """Read more steps, with a plan that was named, or on other ranks and batches."""
        ledger = ip.Ledger(self.path)
        if ledger.step > LONG:
            return
        if not ledger.step:
            place, order = self.lines[self.runs()[0]]["from"], None
        else:
            at, order = ledger.cursor, ledger.plan.order
            place = [at.epoch, at.sub_epoch, at.step, at.position]
        plan = ledger.plan
        lengths = [1 + sample * 7 % 10 for sample in range(plan.order.num_samples)]
        remainders = [
            *(["carry"] if plan.order.constant_num_units else []),
            "spread",
            "pad",
            "drop",
        ]
        fields: list[dict[str, Any]] = [
            {},
            {"world_size": self.drawn.randint(1, 4)},
            {"global_batch_size": self.drawn.randint(1, 12)},
            {"remainder": self.drawn.choice(remainders)},
            {"balance": ip.Balance(lengths)},
        ]
        try:
            changed = plan.replace(**self.drawn.choice(fields))
        except ip.IndexPlanError:  # an epoch would be shorter than a batch
            changed = plan
        if order is not None and self.drawn.random() < 0.3 and changed.remainder != "carry":
            changed = self.another_order(changed, ledger)
        if self.drawn.random() < 0.2 and ledger.step:  # skip some steps
            place = place_after(changed, place, self.drawn.choice([1, 2, 9]))
        ledger._file.keep_columns(changed)
        more = self.drawn.randint(1, 9)
        line = {"kind": "plan", "plan": json.loads(changed.to_json()), "data": None}
        if line not in self.lines or self.drawn.random() < 0.2:
            self.lines.append(line)
        number = 1 + max(at for at, each in enumerate(self.lines) if each == line)
        steps = {"step": ledger.step, "steps": more}
        to = {"from": place, "to": place_after(changed, place, more)}
        self.lines.append({"kind": "run", "plan": number, **steps, **to})

    def another_order(self, plan: ip.Plan, ledger: ip.Ledger) -> ip.Plan:
        """Leave out a sample from here on, or give a mixture other weights."""
        order, here = plan.order, ledger.cursor
        while isinstance(order, ip.Layer):
            order = order.order
        try:
            if isinstance(order, ip.Mixture) and self.drawn.random() < 0.5:
                weights = {name: self.drawn.randint(1, 3) for name in order.names}
                return plan.replace(order=plan.order.with_phase(here, weights, planned="drop"))  # type: ignore[attr-defined]
            out = ip.Without(plan.order, [self.drawn.randrange(plan.order.num_samples)], since=here)
            return plan.replace(order=out)
        except ip.IndexPlanError:  # it is out already, or here no order begins
            return plan


def place_after(plan: ip.Plan, place: list[int], steps: int) -> list[int]:
    """Return where a run stands after some steps of a plan from a place on."""
    names = ("epoch", "sub_epoch", "step", "position")
    own: dict[str, Any] = dict(zip(names, place, strict=True))
    own |= {"order": plan.order.to_dict(), "sub_epochs": plan.sub_epochs}
    plan = plan.resume(ip.Cursor(**own))
    epoch, part = plan.start.epoch, plan.start.sub_epoch
    while steps > len(plan.steps(epoch, part)):
        steps -= len(plan.steps(epoch, part))
        epoch, part = (epoch, part + 1) if part + 1 < plan.sub_epochs else (epoch + 1, 0)
    at = plan.cursor(epoch, part, step=plan.steps(epoch, part).start + steps)
    return [at.epoch, at.sub_epoch, at.step, at.position]


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
    Forger.read_on,
    Forger.read_on,
    Forger.read_on,
    Forger.read_on,
]
