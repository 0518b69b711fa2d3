"""Drawn runs that a ledger is kept of: resumes, returns, other ranks, data taken out and in.

What a run reads is kept as a list: of each step that counts the batches of all ranks. A ledger has
to answer as this list does, however the run came to be.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import indexplan as ip
from indexplan.ledger import Tail
from tests.ledger.listing import Step, check, steps_of
from tests.support.left_out import LENGTHS, inner_orders, new_sources
from tests.support.planned import planned, replaced

EPOCHS = 4


@dataclass
class Checkpoint:
    """What a run saves: the ledger's hash and its cursor; and what it had read by then."""

    hash: str
    cursor: ip.Cursor
    plan: ip.Plan
    steps: list[Step]
    num_skipped: int = 0


class Run:
    """A run that goes through drawn changes."""

    def __init__(
        self, drawn: random.Random, folder: Path, cuts: random.Random | None = None
    ) -> None:
        folder.mkdir(exist_ok=True)
        self.drawn, self.path = drawn, folder / f"{drawn.randrange(2**40)}.ledger"
        self.cuts = cuts  # where lines end that nobody saves
        order = inner_orders(drawn)
        self.plan = planned(
            order,
            world_size=drawn.randrange(1, 5),
            batch_size=self._batches(),
            sub_epochs=drawn.choice([1, 1, 1, 2, 5]),
            remainder=drawn.choice(["spread", "drop", "pad", "carry"]),
            balance=self._balance(order),
        )
        self.ledger = ip.Ledger(self.path)
        self.steps: list[Step] = []
        self.void: list[Step] = []
        self.inner, self.num_skipped = order, 0
        self.cursor, self.remainders = self.plan.start, {self.plan.remainder}
        self.saved = [Checkpoint(self.ledger.hash, self.cursor, self.plan, [])]

    def _batches(self) -> Any:
        """Draw a batch size, or a schedule whose phases start at sub-epochs."""
        first = self.drawn.randrange(1, 9)
        if self.drawn.random() < 0.7:
            return first
        epochs = sorted(self.drawn.sample(range(1, EPOCHS), self.drawn.randrange(1, EPOCHS)))
        later = [ip.Phase((epoch, 0), self.drawn.randrange(1, 9)) for epoch in epochs]
        return [ip.Phase(size=first), *later]

    def _balance(self, order: ip.Order) -> ip.Balance | None:
        if order.traits.cuts_samples or self.drawn.random() < 0.8:
            return None
        lengths = [
            LENGTHS[i % len(LENGTHS)] for i in range(order.num_samples)
        ]  # any that join, too
        return ip.Balance(lengths)

    def live(self, length: int) -> None:
        """Go through some changes."""
        changes = [self.resume, self.back, self.back, self.exclude, self.exclude, self.skip]
        changes += [self.join] * 3 if mixture_in(self.plan.order) else []
        for _ in range(length):
            self.read()
            self.drawn.choice(changes)()
            if self.cursor.epoch >= EPOCHS:
                return

    def read(self) -> None:
        """Read some steps, and save."""
        plan, left = self.plan.resume(self.cursor), self.drawn.choice([1, 1, 2, 3, 5, 12])
        for each in islice(steps_of(plan), left):
            _, epoch, part, step = each.named
            if epoch >= EPOCHS:
                break
            self.steps.append(each)
            self.cursor = plan.cursor(epoch, part, step=step + 1)
            if self.cuts is not None and self.cuts.random() < 0.2:
                self.ledger.record(plan, self.cursor)
        told = Tail.from_dict(json.loads(json.dumps(self.ledger.tail.to_dict())))  # another rank
        self.ledger.record(plan, self.cursor, {"steps": len(self.steps)})
        assert self.ledger.tail == told.record(plan, self.cursor, {"steps": len(self.steps)})[1]
        stands = self.ledger.hash, self.cursor, self.plan, self.steps.copy(), self.num_skipped
        self.saved.append(Checkpoint(*stands))

    def resume(self) -> None:
        """Start another process, perhaps with other ranks and batches."""
        self.ledger = ip.Ledger(self.path)
        if self.drawn.random() < 0.7:
            self.plan = replaced(self.plan, world_size=self.drawn.randrange(1, 5))
        if self.drawn.random() < 0.2:
            size = self.drawn.choice([(2, 3), self.drawn.randrange(4, 30)])
            self.plan = replaced(self.plan, global_batch_size=size)
        if self.drawn.random() < 0.3:
            rest: Any = self.drawn.choice(["spread", "drop", "pad", "carry"])
            self._change(lambda: self.plan.replace(remainder=rest))
        self.remainders.add(self.plan.remainder)
        self.ledger.begin(self.plan.resume(self.cursor))

    def back(self) -> None:
        """Load a checkpoint, perhaps one whose steps were void since, in another process."""
        found = self.drawn.choice(self.saved)
        if not found.steps:  # it starts over, with the order that it started with
            found = self.saved[0] if self._starts_alike() else self.saved[-1]
        self.ledger = ip.Ledger(self.path)
        self.ledger.rewind(found.hash)
        same = 0
        for one, other in zip(self.steps, found.steps, strict=False):
            if one != other:
                break
            same += 1
        self.void += self.steps[same:]
        self.steps, self.plan, self.cursor = found.steps.copy(), found.plan, found.cursor
        self.num_skipped = found.num_skipped

    def _starts_alike(self) -> bool:
        """Return whether the first steps of all were read in the order of the first plan."""
        first = next((each for each in self.saved if each.steps), self.saved[0])
        return first.plan.order == self.saved[0].plan.order

    def exclude(self) -> None:
        """Take samples out."""
        order = self.plan.order
        left = np.setdiff1d(np.arange(order.num_samples), getattr(order, "samples", []))
        some = self.drawn.sample(left.tolist(), min(len(left), self.drawn.randrange(1, 6)))
        self._change(lambda: self.plan.replace(order=ip.Without(order, some, since=self.cursor)))

    def skip(self) -> None:
        """Leave the next steps out, and read on after them."""
        plan, ahead = self.plan.resume(self.cursor), list[ip.Cursor]()
        epoch, part = self.cursor.epoch, self.cursor.sub_epoch
        while epoch < EPOCHS:
            ahead += [plan.cursor(epoch, part, step=step) for step in plan.steps(epoch, part)]
            epoch, part = (epoch, part + 1) if part + 1 < plan.sub_epochs else (epoch + 1, 0)
        if ahead:
            to = self.drawn.choice(ahead[: self.drawn.choice([2, 5, len(ahead)])])
            self.ledger.begin(self.plan.resume(to), skip=True)
            if to != ahead[0]:  # up to which units may be dropped, and no step is skipped
                before = [units_before(plan.order, cursor) for cursor in (self.cursor, to)]
                self.num_skipped += before[1] - before[0]
            self.cursor = to
            self.read()

    def join(self) -> None:
        """Let sources join, or change the weights alone."""
        order: Any = self.plan.order
        mixture = mixture_in(order)
        assert mixture is not None
        new = new_sources(mixture, self.drawn)
        weights = {name: self.drawn.randrange(4) for name in (*mixture.names, *new)}
        weights[self.drawn.choice(list(weights))] = 1

        def joined() -> ip.Plan:
            grown = order.with_phase(self.cursor, weights, sources=new or None, planned="drop")
            return self.plan.replace(order=grown, balance=self._balance(grown))

        self._change(joined)

    def _change(self, change: Any) -> None:
        """Change the plan, unless this one cannot be changed so."""
        try:
            plan = change()
            for epoch in range(EPOCHS + 1):
                plan.order.num_units(epoch)
            plan.resume(self.cursor)
        except ip.IndexPlanError:
            return
        self.plan = plan


def mixture_in(order: Any) -> ip.Mixture | None:
    """Return the mixture inside what was left out, if there is one."""
    while order is not None and not isinstance(order, ip.Mixture):
        order = getattr(order, "order", None)
    return order


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


def check_run(run: Run) -> None:
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
    assert run.num_skipped == account.num_skipped
    for epoch in range(run.cursor.epoch + 1 if ledger.tail.place else 0):
        one = ledger.account(epoch)
        parts = one.num_read + one.num_dropped + one.num_skipped + one.num_excluded + one.num_left
        assert run.inner.num_units(epoch) == one.num_units == parts
        assert min(one.num_read, one.num_dropped, one.num_left) >= 0
        total += one.num_read
        if not run.remainders & {"drop", "pad"}:
            assert 0 == one.num_dropped
    assert total == account.num_read


def live(seed: int, length: int, folder: Path) -> Run:
    """Go through a run, named by its seed, and check its ledger at the end."""
    run = Run(random.Random(seed), folder)  # noqa: S311 (draws a test)
    run.live(length)
    check_run(run)
    return run
