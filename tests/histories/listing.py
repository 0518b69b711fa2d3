"""What a ledger answers, held against a list of the batches of all ranks, step by step.

The list is that of a drawn run, or what the ledger's own lines say, read from their plans alone.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import indexplan as ip

PLACE = ("epoch", "sub_epoch", "step", "position")


class Step(NamedTuple):
    """A step: of which plan and place, what each rank read, how many units, and how many again."""

    named: tuple[str, int, int, int]
    batches: list[list[int]]
    num_units: int
    num_padded: int

    @property
    def epoch(self) -> int:
        """Its epoch."""
        return self.named[1]


def listed(path: Path) -> tuple[list[Step], list[Step]]:
    """Return the steps that count, and those that are void, of a ledger that `verify` accepts."""
    plans: dict[int, ip.Plan] = {}
    live: list[Step] = []
    void: list[Step] = []
    for number, text in enumerate(path.read_text().splitlines(), 1):
        line = json.loads(text)
        if line["kind"] == "plan":
            plans[number] = ip.Plan.from_json(
                json.dumps(line["plan"]), columns=path.parent / "columns"
            )
        elif line["kind"] == "run":
            plan = plans[line["plan"]]
            read = steps_of(plan.resume(cursor_at(plan, line["from"])))
            live += [next(read) for _ in range(line["steps"])]
        else:
            void += live[line["step"] :]
            del live[line["step"] :]
    return live, void


def steps_of(plan: ip.Plan) -> Iterator[Step]:
    """Yield the steps of a plan from where it was resumed on."""
    fingerprint = plan.replace(world_size=plan.world_size).fingerprint
    epoch, part, ranks = plan.start.epoch, plan.start.sub_epoch, range(plan.world_size or 0)
    while True:
        for step in plan.steps(epoch, part):
            units = [plan.units(epoch, part, step=step, rank=rank) for rank in ranks]
            valid = sum(each.num_valid for each in units)
            padded = sum(len(each) for each in units) - valid
            named = fingerprint, epoch, part, step
            yield Step(named, [each.samples.tolist() for each in units], valid, padded)
        epoch, part = (epoch, part + 1) if part + 1 < plan.sub_epochs else (epoch + 1, 0)


def check(ledger: ip.Ledger, of: tuple[list[Step], list[Step]] | None = None) -> None:
    """Hold all that a ledger can be asked against the steps that count, and those that are void."""
    live, void = of or listed(ledger.path)
    assert len(live) == ledger.step
    for number, step in enumerate(live):
        at, again = ledger.at(number), ledger.replay(number)
        ranks = range(len(step.batches))
        assert step.batches == [ledger.batch(number, rank).tolist() for rank in ranks]
        where = {"epoch": at.epoch, "sub_epoch": at.sub_epoch, "step": at.step}
        assert step.batches == [at.plan.batch(**where, rank=rank).tolist() for rank in ranks]
        assert at.plan.resume(at.cursor).steps(at.epoch, at.sub_epoch).start == at.step
        together = [sample for batch in step.batches for sample in batch]
        alone = again.batch(**where, rank=0).tolist()
        assert together == alone if at.plan.balance is None else Counter(together) == Counter(alone)
    if not ledger.tail.num_lines:
        return
    _check_samples(ledger, live, void)
    _check_segments(ledger, live)
    account = ledger.account()
    plans = [each.plan for each in ledger.history.plans.values()]
    assert sum(step.num_units for step in live) == account.num_read
    assert sum(step.num_padded for step in live) == account.num_padded
    assert sum(step.num_units for step in void) == account.num_void
    assert (len(live), len(void)) == (account.num_steps, account.num_void_steps)
    texts = map(json.loads, ledger.path.read_text().splitlines())
    begun = min((line["from"] for line in texts if line["kind"] == "run"), default=[0] * 4)
    for epoch in {step.epoch for step in live}:
        of_epoch = ledger.account(epoch)
        assert sum(step.epoch == epoch for step in live) == of_epoch.num_steps
        assert sum(step.epoch == epoch for step in void) == of_epoch.num_void_steps
        assert (begun[3] if epoch == begun[0] else 0) == of_epoch.num_finished
        parts = of_epoch.num_read + of_epoch.num_dropped + of_epoch.num_left + of_epoch.num_finished
        assert of_epoch.num_units == parts + of_epoch.num_skipped + of_epoch.num_excluded
        if all(plan.remainder != "carry" for plan in plans):  # else steps may cross epochs
            mine = [step for step in live if step.epoch == epoch]
            assert sum(step.num_units for step in mine) == of_epoch.num_read
            assert sum(step.num_padded for step in mine) == of_epoch.num_padded


def _check_segments(ledger: ip.Ledger, live: list[Step]) -> None:
    """The lines that count have all steps; where each starts, and stops, is the plan's to say."""
    step = 0
    for row in ledger.to_dict()["segments"]:
        if not row["void"]:
            assert step == row["step"]
            plan = ledger.at(step).plan
            first = next(steps_of(plan.resume(cursor_at(plan, row["from"]))))
            assert live[step] == first
            last = ledger.at(step + row["steps"] - 1)
            after = plan.resume(last.cursor).cursor(last.epoch, last.sub_epoch, step=last.step + 1)
            assert row["to"] == place_of(after)
            step += row["steps"]
    assert step == ledger.step


def cursor_at(plan: ip.Plan, place: list[int]) -> ip.Cursor:
    """Return the cursor of a place as a ledger's lines have it."""
    own: dict[str, Any] = dict(zip(PLACE, place, strict=True))
    return ip.Cursor(**own, order=plan.order.to_dict(), sub_epochs=plan.sub_epochs)


def place_of(cursor: ip.Cursor) -> list[int]:
    """Return a cursor as a ledger's lines have it."""
    return [getattr(cursor, name) for name in PLACE]


def _check_samples(ledger: ip.Ledger, live: list[Step], void: list[Step]) -> None:
    """Each read of each sample is found, by step and rank, and counted before any step."""
    found: dict[int, list[tuple[int, int]]] = {}
    for number, step in enumerate(live):
        for rank, batch in enumerate(step.batches):
            for sample in batch:
                found.setdefault(sample, []).append((number, rank))
    undone = Counter(sample for step in void for batch in step.batches for sample in batch)
    num = num_samples(ledger, live + void)
    for sample in range(num):
        reads = ledger.reads(sample, void=True)
        if sample % 3 == 0:  # which takes as long again
            assert [read for read in reads if not read.void] == ledger.reads(sample)
        assert sorted(found.get(sample, [])) == [each[:2] for each in reads if not each.void]
        assert undone[sample] == sum(each.void for each in reads)
    for until in (0, len(live) // 2, len(live)):
        counts = ledger.seen(np.arange(num), until).tolist()
        assert [sum(step < until for step, _ in found.get(s, [])) for s in range(num)] == counts


def num_samples(ledger: ip.Ledger, steps: list[Step]) -> int:
    """Return how many samples may be asked: also those that joined before a return."""
    read = (max(batch) for step in steps for batch in step.batches if batch)
    return max(ledger.plan.order.num_samples, 1 + max(read, default=0))


@dataclass(frozen=True)
class Leg:
    """A part of a run: it loads a state by name, and then reads so many steps or saves a state."""

    ranks: int
    load: str | None
    actions: tuple[int | str, ...]


def act(loader: Any, actions: tuple[int | str, ...]) -> Iterator[tuple[str | None, Any]]:
    """Read a loader of one rank, pass after pass; yield (None, batch) and (name, state)."""
    batches = endless(loader)
    for action in actions:
        if isinstance(action, str):
            yield action, loader.state_dict()
            continue
        for _ in range(action):
            yield None, next(batches)
    batches.close()  # the loop breaks


def endless(loader: Any) -> Any:
    """Yield the batches of one pass after another."""
    while True:
        yield from loader


@dataclass
class Listed:
    """The steps that count, and those that are void, as the ranks of a run have told them."""

    steps: list[list[list[int]]] = field(default_factory=list)  # the samples of each rank
    void: list[list[list[int]]] = field(default_factory=list)
    saved: dict[str, list[list[list[int]]]] = field(default_factory=dict)

    def add(self, leg: Leg, told: list[list[Any]]) -> None:
        """Add what the ranks of a leg tell: their batches, and None where they saved a state."""
        before = self.saved[leg.load] if leg.load else self.steps
        same = 0
        while same < min(len(before), len(self.steps)) and before[same] == self.steps[same]:
            same += 1
        self.void += self.steps[same:]
        self.steps = [*before]
        names = iter([each for each in leg.actions if isinstance(each, str)])
        for batches in zip(*told, strict=True):
            if batches[0] is None:
                self.saved[next(names)] = [*self.steps]
            else:
                self.steps.append([list(batch) for batch in batches])

    def check(self, ledger: ip.Ledger) -> None:
        """Compare every step, rank and sample with what a ledger tells."""
        assert ledger.verify().ok, str(ledger.verify())
        live, void = listed(ledger.path)
        assert self.steps == [step.batches for step in live]
        told = Counter(sample for step in void for batch in step.batches for sample in batch)
        undone = Counter(sample for step in self.void for batch in step for sample in batch)
        assert not undone - told  # a state that counts again has void steps too
        check(ledger, (live, void))
