"""Drawn runs that take data out and in, skip, return to checkpoints, and keep a ledger.

What a run reads is kept as lists. Of each epoch the units that are left, each with its sub-epoch
and its position in the order inside: taking out and sources that join change what follows in these
lists, and nothing else, and a plan has to read just that, after any resumes, under any number of
ranks. And of each step that counts the batches of all ranks: a ledger has to answer as this list
does, however the run came to be.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import islice, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

import indexplan as ip
from indexplan.ledger import Tail
from indexplan.plan.plan import columns_of, layout_of
from tests.histories.listing import Step, check, steps_of
from tests.histories.lists import (
    EPOCHS,
    LENGTHS,
    Lists,
    Out,
    check_joined,
    inner_orders,
    new_sources,
)
from tests.histories.stories import Given, Story
from tests.support.planned import READS_NOTHING, planned, replaced


@dataclass(frozen=True)
class Stand:
    """Where a run stands: its plan and cursor, its lists, and what it has read."""

    plan: ip.Plan
    cursor: ip.Cursor
    lists: Lists
    steps: list[Step] = field(default_factory=list)
    num_skipped: int = 0
    hash: str = ""  # of the ledger, when this was saved


class Run:
    """A run that goes through drawn changes; `cuts` draws where lines end that nobody saves."""

    def __init__(
        self, drawn: random.Random, folder: Path, cuts: random.Random | None = None
    ) -> None:
        folder.mkdir(exist_ok=True)
        self.drawn, self.path = drawn, folder / f"{drawn.randrange(2**40)}.ledger"
        self.cuts, self.looks = cuts, random.Random(drawn.random())  # noqa: S311 (draws a test)
        order, parts = inner_orders(drawn), drawn.choice([1, 1, 1, 2, 3, 5, 7])
        plan = planned(
            order,
            world_size=drawn.randrange(1, 5),
            batch_size=self._batches(),
            sub_epochs=parts,
            remainder=drawn.choice(["spread", "drop", "pad", "carry"]),
            balance=self._balance(order),
        )
        self.cut = drawn.choice(["piece", "unit"])
        self.ledger, self.void = ip.Ledger(self.path), list[Step]()
        self.now = Stand(plan, plan.start, Lists(order, parts), hash=self.ledger.hash)
        self.saved, self.remainders = [self.now], {plan.remainder}

    @property
    def plan(self) -> ip.Plan:
        """The plan that it reads."""
        return self.now.plan

    @property
    def steps(self) -> list[Step]:
        """The steps that count."""
        return self.now.steps

    @property
    def cursor(self) -> ip.Cursor:
        """Where it reads on."""
        return self.now.cursor

    def _batches(self) -> Any:
        """Draw a batch size, or a schedule whose phases start at sub-epochs."""
        first = self.drawn.randrange(1, 6)
        if self.drawn.random() < 0.7:
            return first
        epochs = sorted(self.drawn.sample(range(1, EPOCHS), self.drawn.randrange(1, EPOCHS)))
        later = [ip.Phase((epoch, 0), self.drawn.randrange(1, 9)) for epoch in epochs]
        return [ip.Phase(size=first), *later]

    def _balance(self, order: ip.Order) -> ip.Balance | None:
        if order.traits.cuts_samples or self.drawn.random() < 0.8:
            return None
        lengths = [LENGTHS[i % len(LENGTHS)] for i in range(order.num_samples)]
        return ip.Balance(lengths)

    def live(self, length: int) -> None:
        """Go through some changes."""
        changes = [self.resume, self.back, self.back, *[self.exclude] * 4, self.skip]
        changes += [self.join] * 3 if isinstance(self.now.lists.inner, ip.Mixture) else []
        for _ in range(length):
            self.read()
            self.drawn.choice(changes)()
            if self.cursor.epoch >= EPOCHS:
                return

    def resumed(self) -> ip.Plan:
        """Return a plan of what is left; it spreads where its remainder would read nothing."""
        try:
            plan = self.plan.resume(self.cursor)
            layout_of(plan)
        except ip.IndexPlanError as error:
            if error.rule != READS_NOTHING:
                raise
            self._set(plan=self.plan.replace(remainder="spread"))
            plan = self.plan.resume(self.cursor)
        self.remainders.add(plan.remainder)
        return plan

    def _set(self, **changes: Any) -> None:
        self.now = replace(self.now, **changes)

    def places(self, plan: ip.Plan, *, ends: bool) -> list[tuple[int, int, int]]:
        """Return the steps at which a plan may be left, those after a sub-epoch's last, too."""
        found = []
        epoch, part = self.cursor.epoch, self.cursor.sub_epoch
        while epoch < EPOCHS:
            steps = plan.steps(epoch, part)
            found += [(epoch, part, step) for step in range(steps.start, steps.stop + ends)]
            epoch, part = (epoch, part + 1) if part + 1 < plan.sub_epochs else (epoch + 1, 0)
        return found

    def since(self) -> ip.Cursor | None:
        """Draw where a change begins: here, or not far ahead; None where the run ends soon."""
        since = self.cursor
        if self.drawn.random() < 0.4:
            plan = self.resumed()
            places = self.places(plan, ends=True)[:12]
            places = [place for place in places if place[0] < EPOCHS] or places[:1]
            if places:
                epoch, part, step = self.drawn.choice(places)
                since = plan.cursor(epoch, part, step=step)
        return since if since.epoch < EPOCHS else None

    # What happens to the run, and to the lists.

    def read(self) -> None:
        """Read some steps, and save."""
        plan, left = self.resumed(), self.drawn.choice([1, 1, 2, 3, 5, 12])
        self.check(plan, min(self.cursor.epoch + 1, EPOCHS))
        for each in islice(steps_of(plan), left):
            _, epoch, part, step = each.named
            if epoch >= EPOCHS:
                break
            cursor = plan.cursor(epoch, part, step=step + 1)
            self._set(steps=[*self.steps, each], cursor=cursor)
            if self.cuts is not None and self.cuts.random() < 0.2:
                self.ledger.record(plan, cursor)
        note = {"steps": len(self.steps)}
        told = Tail.from_dict(json.loads(json.dumps(self.ledger.tail.to_dict())))  # another rank
        self.ledger.record(plan, self.cursor, note)
        assert self.ledger.tail == told.record(plan, self.cursor, note)[1]
        self._set(hash=self.ledger.hash)
        self.saved.append(self.now)

    def resume(self) -> None:
        """Start another process, perhaps with other ranks and batches."""
        self.ledger, plan = ip.Ledger(self.path), self.plan
        if self.drawn.random() < 0.7:
            plan = replaced(plan, world_size=self.drawn.randrange(1, 6))
        if self.drawn.random() < 0.3:
            name = self.drawn.choice(["batch_size", "global_batch_size"])
            plan = replaced(plan, **{name: self.drawn.choice([(2, 3), self.drawn.randrange(1, 9)])})
        self._set(plan=plan)
        if self.drawn.random() < 0.3:
            rest: Any = self.drawn.choice(["spread", "drop", "pad", "carry"])
            self._set(plan=self._of(plan.order, remainder=rest))
        self.ledger.begin(self.resumed())

    def _of(self, order: ip.Order, **fields: Any) -> ip.Plan:
        """Return the run's plan with another order; it spreads if it cannot do otherwise."""
        fields = {"order": order, **fields}
        try:
            made = self.plan.replace(**fields)
            layout_of(made.resume(self.cursor))
        except ip.IndexPlanError as error:
            uneven = "needs an order with the same number of units" in str(error)
            if not uneven and error.rule != READS_NOTHING:
                raise
            made = self.plan.replace(**{**fields, "remainder": "spread"})
        return made

    def back(self) -> None:
        """Load a checkpoint, perhaps one whose steps were void since, in another process."""
        found = self.drawn.choice(self.saved)
        if not found.steps:  # it starts over, with the order that it started with
            first = next((each for each in self.saved if each.steps), self.saved[0])
            alike = first.plan.order == self.saved[0].plan.order
            found = self.saved[0] if alike else self.saved[-1]
        self.ledger = ip.Ledger(self.path)
        self.ledger.rewind(found.hash)
        same = 0
        for one, other in zip(self.steps, found.steps, strict=False):
            if one != other:
                break
            same += 1
        self.void += self.steps[same:]
        self.now = found

    def exclude(self) -> None:
        """Take some samples out, from the place of the run on or later."""
        order, lists = self.plan.order, self.now.lists
        left = sorted(set(range(order.num_samples)) - lists.excluded)
        samples = self.drawn.sample(left, min(len(left), self.drawn.choice([1, 1, 2, 5, 20])))
        since = self.since()
        if since is None or not samples:
            return
        place = since.epoch, since.position
        if isinstance(order, ip.Without) and place < order.since[-1][:2]:
            return
        lists = lists._replace(outs=(*lists.outs, Out(frozenset(samples), place, self.cut)))
        found = lists.rows
        try:
            order = ip.Without(order, samples, since=since, cut=self.cut)
        except ip.IndexPlanError as error:
            if found and "must be inside at most" not in str(error):
                raise
            return
        if found:
            self._set(plan=self._of(order), lists=lists)

    def skip(self) -> None:
        """Leave the next steps out, and read on after them."""
        plan = self.resumed()
        if not (places := self.places(plan, ends=False)):
            return
        ahead = places[: self.drawn.choice([2, 5, len(places)])]
        epoch, part, step = self.drawn.choice(ahead)
        to = plan.cursor(epoch, part, step=step)
        self.ledger.begin(self.plan.resume(to), skip=True)
        if (epoch, part, step) != places[0]:  # up to which units may be dropped, none is skipped
            before = [units_before(plan.order, cursor) for cursor in (self.cursor, to)]
            self._set(num_skipped=self.now.num_skipped + before[1] - before[0])
        self._set(cursor=to)
        self.read()

    def join(self) -> None:
        """Let sources join, and change the weights, from the place of the run on or later."""
        lists, since = self.now.lists, self.since()
        old: Any = lists.inner
        if since is None:
            return
        new = new_sources(old, self.drawn)
        weights = {name: self.drawn.randrange(4) for name in (*old.names, *new)}
        weights[self.drawn.choice(list(weights))] = 1
        more: Any = {"sources": new or None, "planned": "drop"}
        read = [at for _, _, at in lists.rows[since.epoch][: since.position]]
        place = since.epoch * old.epoch_size + max(read, default=-1) + 1  # in the mixture's run
        lists = lists._replace(inner=old.with_phase(place, weights, **more))
        found, changed = lists.rows, self.plan.order
        try:
            order = changed = changed.with_phase(since, weights, **more)  # type: ignore[attr-defined]
        except ip.IndexPlanError:
            if found:
                raise
            return
        while not isinstance(changed, ip.Mixture):
            changed = changed.order  # type: ignore[attr-defined]
        assert changed == lists.inner
        check_joined(old, changed, new, place)
        if not found:  # an epoch that was not looked at has nothing left
            return
        row, at = found[self.cursor.epoch], self.cursor.position
        balance = self._balance(order)
        if at < len(row) and row[at][1] < self.cursor.sub_epoch:
            # it was the next one that was not left out as a whole
            with pytest.raises(ip.IndexPlanError, match="a cursor's sub_epoch must be"):
                self.plan.replace(order=order, balance=balance).resume(self.cursor)
            return
        self._set(plan=self._of(order, balance=balance), lists=lists)

    # What a plan has to read.

    def check(self, plan: ip.Plan, epochs: int = EPOCHS) -> None:
        """Hold what a plan reads in its first epochs against the lists."""
        at, position, parts = self.cursor.epoch, self.cursor.position, range(plan.sub_epochs)
        rows, inside = self.now.lists.rows, self.now.lists.inside
        expected = [
            (epoch, *unit)
            for epoch in range(at, EPOCHS + 1)
            for unit in rows[epoch][position if epoch == at else 0 :]
        ]
        stream: list[list[tuple[int, ...]]] = []
        for epoch in range(at, epochs):
            num, num_excluded = len(rows[epoch]), len(inside[epoch]) - len(rows[epoch])
            assert plan.order.num_units(epoch) == num
            whole, each = plan.account(epoch), [plan.account(epoch, part) for part in parts]
            assert (whole.num_units, whole.num_excluded) == (num + num_excluded, num_excluded)
            assert num == whole.num_read + whole.num_dropped + whole.num_finished
            for name in ("units", "read", "dropped", "finished", "excluded", "padded"):
                added = sum(getattr(account, f"num_{name}") for account in each)
                assert added == getattr(whole, f"num_{name}"), name
            for part in parts:
                if (epoch, part) < (at, self.cursor.sub_epoch):
                    continue
                steps = self.units_read(plan, epoch, part)
                stream += steps
                if plan.remainder != "carry":
                    mine = [unit for e, unit, of, _ in expected if (e, of) == (epoch, part)]
                    left = len(mine) - each[part].num_dropped
                    check_same(plan, steps, mine[:left])
                    assert left == sum(map(len, steps)), (epoch, part)
        if plan.remainder == "carry":
            check_same(plan, stream, [unit for _, unit, *_ in expected])
            assert sum(map(len, stream)) >= sum(epoch < epochs for epoch, *_ in expected)

    def units_read(self, plan: ip.Plan, epoch: int, part: int) -> list[list[tuple[int, ...]]]:
        """Return the units of each step of a sub-epoch, rank by rank, drawn together or one by one.

        Some are found again by one of their samples.
        """
        ranks, steps = range(plan.world_size or 1), plan.steps(epoch, part)
        if self.looks.random() < 0.7:
            batches = [list(plan.batches(epoch, part, rank=rank, units=True)) for rank in ranks]
        else:
            batches = [
                [plan.units(epoch, part, step=s, rank=rank) for s in steps] for rank in ranks
            ]
        read = []
        for number, step in enumerate(steps):
            units: list[tuple[int, ...]] = []
            for rank, batch in enumerate(of[number] for of in batches):
                mine = [tuple(batch.samples[a:b].tolist()) for a, b in pairwise(batch.offsets)]
                mine = mine[: batch.num_valid]
                units += mine
                if mine and self.looks.random() < 0.1:
                    slot = self.looks.randrange(len(mine))
                    epochs = range(epoch, epoch + 40)  # under "carry" a step may read from many
                    for sample in mine[slot][:1]:
                        found = (plan.locate_all([sample], e)[0] for e in epochs)
                        reads = (
                            tuple(map(int, x)) for some in found for x in zip(*some, strict=True)
                        )
                        assert (epoch, part, step, rank, slot) in reads
            read.append(units)
        return read


def check_same(
    plan: ip.Plan, steps: list[list[tuple[int, ...]]], expected: list[tuple[int, ...]]
) -> None:
    """Compare steps with units in reading order, which a balance changes inside a step.

    The last step may read on past what is listed.
    """
    for step in steps:
        wanted, expected = expected[: len(step)], expected[len(step) :]
        if plan.balance is None:
            assert wanted == step[: len(wanted)]
        else:
            assert not Counter(wanted) - Counter(step)


def units_before(order: ip.Order, cursor: ip.Cursor) -> int:
    """Return how many units all epochs have before a place."""
    return sum(map(order.num_units, range(cursor.epoch))) + cursor.position


def _check_draws(ledger: ip.Ledger) -> None:
    """What was read of each source is what is in the batches of the steps that count."""
    read: Counter[str] = Counter()
    for number in range(ledger.step):
        at = ledger.at(number)
        order = at.plan.order
        for rank in range(at.plan.world_size or 1):
            batch = at.plan.units(at.epoch, at.sub_epoch, step=at.step, rank=rank)
            firsts = batch.samples[batch.offsets[: batch.num_valid]]  # of each bin, or all
            read.update(order.group_names[group] for group in order.group_of(firsts).tolist())
    found = ip.draws(ledger)
    drawn = dict(zip(found.names, found.drawn.tolist(), strict=True))
    assert {name: read[name] for name in found.names} == drawn
    assert read.total() == pytest.approx(found.aimed.sum())


def check_ledger(run: Run) -> None:
    """Hold the ledger against the run's list, and its accounts against the order."""
    ledger = ip.Ledger(run.path)
    report = ledger.verify(ledger.hash)
    assert report.ok, str(report)
    check(ledger, (run.steps, run.void))
    if not ledger.tail.num_lines:
        return
    if run.steps and ledger.plan.order.group_names:
        _check_draws(ledger)
    account, total = ledger.account(), 0
    assert run.now.num_skipped == account.num_skipped
    inner = run.saved[0].plan.order
    for epoch in range(run.cursor.epoch + 1 if ledger.tail.place else 0):
        one = ledger.account(epoch)
        parts = one.num_read + one.num_dropped + one.num_skipped + one.num_excluded + one.num_left
        assert inner.num_units(epoch) == one.num_units == parts
        assert min(one.num_read, one.num_dropped, one.num_left) >= 0
        total += one.num_read
        if not run.remainders & {"drop", "pad"}:
            assert 0 == one.num_dropped
    assert total == account.num_read


def check_orders(run: Run) -> None:
    """Change the data some more where the run once stood; a plan of any ranks reads the lists."""
    run = copy(run)
    run.now = run.drawn.choice([each for each in run.saved if each.cursor.epoch < EPOCHS])
    changes = [run.exclude] * 2 + [run.join] * isinstance(run.now.lists.inner, ip.Mixture)
    for _ in range(4):
        run.drawn.choice(changes)()
    plan = run.resumed()
    again = ip.Plan.from_json(plan.to_json(), columns=columns_of(plan).values())
    assert again == plan
    run._set(plan=replaced(run.plan, world_size=run.drawn.randrange(1, 6)))
    for each in (plan, again, run.resumed()):  # the second was made at once, not step by step
        run.check(each)


def run_of(number: int, length: int, folder: Path) -> Run:
    """Go through a run, named by its number; check its ledger, and what orders read after it."""
    run = Run(random.Random(number), folder)  # noqa: S311 (draws a test)
    run.live(length)
    check_ledger(run)
    check_orders(run)
    return run


def live(story: Story, given: Given) -> None:
    """Run a history."""
    with TemporaryDirectory() as folder:
        run = run_of(story.number, given.steps or 8, Path(folder))
    story.count("", "steps that count", len(run.steps))
    story.count("", "steps that are void", len(run.void))
