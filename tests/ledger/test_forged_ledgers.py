"""Ledgers that somebody wrote with care, to mislead or to stop who reads them: hashes are right.

A ledger comes from others: an auditor reads it. Whatever its lines say, opening it or asking it
gives the answer, or an error of this library, soon; and after `verify` says ok, the right answer.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import indexplan as ip
from tests.histories.ledgers import a_ledger
from tests.histories.listing import check, cursor_at, listed, place_of, steps_of
from tests.histories.runs import Run
from tests.support.forging import ledger_of

Lines: TypeAlias = list[dict[str, Any]]
LONG = 60  # steps after which a ledger gets no more of them


def lines_of(path: Path) -> Lines:
    """Return the lines of a ledger, without their checksums and hashes."""
    lines: Lines = [json.loads(line) for line in path.read_text().splitlines()]
    return [{k: v for k, v in line.items() if k not in ("check", "previous")} for line in lines]


# Ledgers that somebody forged by legal moves: each line follows, though no run wrote it so. verify
# has to accept them, and all answers have to be those of a plain list of the steps.


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


# What is asked of them, and of others.

JUNK: list[Any] = [None, "", "x", "0", -1, 0, 1, 2, 3, 7, 2**31, 2**32, 2**53, 2**63, 2**64, 2**97]
JUNK += [1.5, True, [], {}, [0], [0, 0, 0, 0], {"algorithm": "x"}, float("nan"), float("inf")]
DEEP: Any = []
for _ in range(60):
    DEEP = [DEEP]
MOST = 500  # steps that a list holds


def a_drawn_ledger(seed: int, folder: Path) -> ip.Ledger:
    """Write the ledger of a drawn run."""
    run = Run(random.Random(seed), folder)  # noqa: S311 (draws a test)
    run.live(4)
    return run.ledger


HONEST: list[Any] = [a_ledger, *(partial(a_drawn_ledger, seed) for seed in range(11))]


def paths_in(value: Any) -> Iterator[tuple[Any, ...]]:
    """Yield the path of each field and item of a line."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for name, each in items:
        yield (name,)
        if isinstance(each, dict | list):
            yield from ((name, *rest) for rest in paths_in(each))


def moved(drawn: random.Random, lines: list[Any]) -> None:
    """Let a line stop elsewhere, or after other steps, and let all that follow it start there."""
    at = drawn.choice([at for at, line in enumerate(lines) if line["kind"] == "run"])
    more = drawn.choice([-1, 0, 1, 2])
    lines[at]["to"][drawn.randrange(4)] += drawn.choice([-5, -2, -1, 0, 1, 2, 5])
    lines[at]["steps"] += more
    for line in lines[at + 1 :]:
        if "step" in line:
            line["step"] += more
        if line["kind"] == "run":
            line["from"] = lines[at]["to"]
            return


def changed(drawn: random.Random, lines: list[Any]) -> None:
    """Change a field, or a number of a place, of one of the lines; or leave one out."""
    line = drawn.choice(lines)
    inside, path = line, drawn.choice(list(paths_in(line)))
    for name in path[:-1]:
        inside = inside[name]
    value = inside[path[-1]]
    if isinstance(value, int) and drawn.random() < 0.6:
        inside[path[-1]] = value + drawn.choice([-7, -2, -1, 1, 2, 7, 2**13, 2**20, 2**40])
    elif drawn.random() < 0.2:
        del inside[path[-1]]
    else:
        inside[path[-1]] = drawn.choice([*JUNK, DEEP])


def questions(ledger: ip.Ledger) -> list[Callable[[], object]]:
    """Return all that a ledger can be asked."""
    last = max(0, ledger.step - 1)
    asked = [lambda step=step: ledger.at(step) for step in (0, last // 2, last)]
    asked += [lambda step=step: ledger.seen([0, 3], step) for step in (last // 2, last)]
    return [
        *asked,
        ledger.verify,
        ledger.__str__,
        ledger.__repr__,
        ledger.to_dict,
        lambda: ledger.replay(last),
        lambda: ledger.batch(last, 0),
        lambda: ledger.reads(3, void=True),
        ledger.account,
        lambda: ledger.account(0),
        lambda: ledger.cursor,
        lambda: ledger.plan,
        lambda: ip.diff(ledger, ledger),
        lambda: ip.plot.life(ledger),
        lambda: ledger.begin(ledger.plan.replace(world_size=1).resume(ledger.cursor)),
    ]


def ask(path: Path) -> ip.Ledger | None:
    """Ask a ledger everything; return it if it can be opened."""
    try:
        ledger = ip.Ledger(path)
    except ip.PlanFileError:
        return None
    whole = path.read_bytes()
    for question in questions(ledger):
        with suppress(ip.IndexPlanError):
            question()
    path.write_bytes(whole)
    return ip.Ledger(path)


@pytest.mark.slow
@settings(max_examples=settings().max_examples * 2)
@given(seed=st.integers(0, 2**32), write=st.sampled_from(HONEST), moves=st.integers(0, 12))
def test_legal_moves_are_accepted_and_answered(seed: int, write: Any, moves: int) -> None:
    """Lines cut, split, merged, written again, read on elsewhere: all pass, and all is right."""
    with TemporaryDirectory() as folder:
        ledger = Forger(write(Path(folder)).path, seed).forge(moves)
        assert ledger.verify().ok, ledger.verify()
        check(ledger)


@pytest.mark.slow
@settings(max_examples=settings().max_examples * 2)
@given(seed=st.integers(0, 2**32), write=st.sampled_from(HONEST))
def test_forged_lines_are_refused_or_answered(seed: int, write: Any) -> None:
    """Whatever stands in a field, nothing else is raised; once `verify` says ok, all is right."""
    forge(seed, write)


def forge(seed: int, write: Any) -> bool:
    """Change a ledger as its number says, and ask it; return whether `verify` says ok."""
    drawn = random.Random(seed)  # noqa: S311 (draws a test)
    with TemporaryDirectory() as folder:
        path = write(Path(folder)).path
        lines = lines_of(path)
        change = drawn.choice([moved, changed, changed])
        for _ in range(drawn.choice([1, 1, 1, 2, 3])):
            change(drawn, lines)
        path.write_bytes(ledger_of(lines))
        ledger = ask(path)
        if ledger is None or not ledger.verify().ok:
            return False
        if ledger.step <= MOST:
            check(ledger)
        return True


def run(**fields: Any) -> dict[str, Any]:
    """A line of steps of the plan on line 1."""
    place = {"from": [0, 0, 0, 0], "to": [0, 0, 1, 2]}
    return {"kind": "run", "plan": 1, "step": 0, "steps": 1, **place, **fields}


NAMED = ip.Plan(ip.Shuffle(42), world_size=2, batch_size=1)


@pytest.mark.parametrize("fields", [{}, {"sub_epochs": 2**50}, {"remainder": "pad"}])
def test_no_line_asks_for_endless_work(fields: Any, tmp_path: Path) -> None:
    """A line of a million epochs or sub-epochs is refused, and so is one of too many turns."""
    path, plan = tmp_path / "run.ledger", NAMED.replace(order=ip.Shuffle(2**60), **fields)
    if fields.get("remainder"):
        plan = NAMED.replace(order=ip.Sequential(1), batch_size=2**40, remainder="pad")
    named = {"kind": "plan", "plan": json.loads(plan.to_json()), "data": None}
    stops = [[2**20, 0, 0, 0], [2**14, 0, 0, 0], [2**32 - 1, 0, 1, 2], [1, 0, 0, 0]]
    for stop in [*stops, [0, plan.sub_epochs - 1, 0, 2]]:
        for steps in (1, 2**21, 2**90):
            path.write_bytes(ledger_of([named, run(to=stop, steps=steps)]))
            try:
                ledger = ip.Ledger(path)
            except ip.PlanFileError:
                continue
            assert not ledger.verify().ok
            ask(path)


@pytest.mark.slow
def test_a_long_stretch_has_several_lines(tmp_path: Path) -> None:
    """A run that records 4,100 epochs at once gets lines that its readers take."""
    for remainder in ("pad", "carry"):
        plan = ip.Plan(ip.Shuffle(3), world_size=1, batch_size=4, remainder=remainder)  # type: ignore[arg-type]
        ledger = ip.Ledger(tmp_path / f"{remainder}.ledger")
        ledger.record(plan, plan.cursor(4_100, step=0), {"n": 1})
        assert (3, True) == (ledger.tail.num_lines, ledger.verify().ok)
    live, _ = listed(ledger.path)
    assert len(live) == ledger.step
    counts = Counter(sample for step in live for batch in step.batches for sample in batch)
    assert [counts[sample] for sample in range(3)] == ledger.seen([0, 1, 2]).tolist()
    found = [(number, 0) for number, step in enumerate(live) for s in step.batches[0] if s == 1]
    assert found == [read[:2] for read in ledger.reads(1)]
    assert sum(step.num_units for step in live) == ledger.account().num_read
    assert {"n": 1} == ledger.at(ledger.step // 2).note


def test_a_plan_of_another_run_is_a_problem(tmp_path: Path) -> None:
    """Each line follows the one before, but the second plan reads in another order."""
    other = NAMED.replace(order=ip.Shuffle(42, seed=1))
    plans = [
        {"kind": "plan", "plan": json.loads(plan.to_json()), "data": None}
        for plan in (NAMED, other)
    ]
    more = run(plan=2, step=1, **{"from": [0, 0, 1, 2], "to": [0, 0, 2, 4]})
    path = tmp_path / "run.ledger"
    path.write_bytes(ledger_of([*plans, run(), more]))
    assert "line 4: its plan does not continue the one before" in str(ip.Ledger(path).verify())
