"""Drawn runs that take data out and in, held against lists of units.

What a run reads is kept as lists: of each epoch the units, each with its sub-epoch and its position
in the order inside. Taking out and sources that join change what follows in these lists,
and nothing else; a plan has to read just that, after any resumes, under any number of ranks.
"""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pytest

import indexplan as ip
from tests.support.planned import READS_NOTHING

EPOCHS = 4
Unit = tuple[tuple[int, ...], int, int]  # its samples, its sub-epoch, and its position inside
Rows = list[list[Unit]]  # of each epoch
Place = tuple[int, int]

LENGTHS = [3, 9, 2, 7, 7, 1, 12, 5, 40, 8, 4, 6] * 3


def inner_orders(drawn: random.Random) -> ip.Order:
    """Draw an order to take samples out of."""
    num, seed = drawn.randrange(2, 60), drawn.randrange(9)
    kinds: list[Any] = [
        lambda: ip.Shuffle(num, seed=seed),
        lambda: ip.Shuffle(num, seed=seed),
        lambda: ip.BlockShuffle(num, block_size=5, window=2, seed=seed),
        lambda: ip.Sequential(num),
        lambda: ip.Subset(ip.Shuffle(num, seed=seed), range(num + 5)[5:], num + 5),
        lambda: ip.Packed(LENGTHS, 50, seed=seed),
        lambda: ip.DocumentWindows(LENGTHS, 20, seed=seed),
        *3 * [lambda: mixed({"a": ip.Shuffle(num, seed=seed), "b": ip.Sequential(7)}, drawn)],
        lambda: mixed({"a": ip.Packed(LENGTHS, 50, seed=seed)}, drawn),
    ]
    made: ip.Order = drawn.choice(kinds)()
    return made


def mixed(sources: dict[str, ip.Order], drawn: random.Random) -> ip.Mixture:
    """Draw a mixture, whose epochs are not always those of its sources."""
    size = drawn.choice([None, None, drawn.randrange(2, 50)])
    return ip.Mixture(sources, dict.fromkeys(sources, 1), epoch_size=size)


def new_sources(mixture: ip.Mixture, drawn: random.Random) -> dict[str, ip.Order]:
    """Draw sources that join a mixture, one or two, or none: then only its weights change."""
    found: dict[str, ip.Order] = {}
    for number in range(len(mixture.names), len(mixture.names) + drawn.choice([0, 1, 1, 1, 2])):
        of_bins = ip.Packed(LENGTHS[: 20 + number], 40 + number, seed=number)
        of_samples = ip.Shuffle(drawn.randrange(1, 40), seed=100 + number)
        found[f"new {number}"] = of_bins if mixture.deals_bins else of_samples
    return found


def units_of(order: ip.Order, epoch: int) -> list[tuple[int, ...]]:
    """Return the samples of each unit of an epoch."""
    num = order.num_units(epoch)
    samples, offsets = order.take(epoch, 0, num).tolist(), order.offsets(epoch, 0, num).tolist()
    return [tuple(samples[a:b]) for a, b in pairwise(offsets)]


def check_joined(old: ip.Mixture, new: ip.Mixture, joined: Any, place: int) -> None:
    """Check a mixture that grew: what lies before, its weights, and that sources have no gap."""
    none = (0,) * len(joined)
    before = [(at, (*shares, *none)) for at, shares in old.weights if at < place]
    assert new.weights[:-1] == tuple(before)
    assert (new.weights[-1][0], new.names) == (place, (*old.names, *joined))
    assert new.sources[: len(old.names)] == old.sources
    assert (new.epoch_size, new.seed) == (old.epoch_size, old.seed)
    was, now = (
        [unit for epoch in range(EPOCHS + 1) for unit in units_of(each, epoch)]
        for each in (old, new)
    )
    assert was[:place] == now[:place]
    begins = np.cumsum([0, *(source.num_samples for _, source in new.sources)])
    of = np.searchsorted(begins, [unit[0] for unit in now], "right") - 1
    for number, (_, source) in enumerate(new.sources):
        mine = [unit for unit, j in zip(now, of, strict=True) if j == number]
        epochs = range(-(-len(mine) // source.num_units(0)))
        stream = [unit for epoch in epochs for unit in units_of(source, epoch)]
        begin = int(begins[number])
        assert mine == [tuple(begin + each for each in unit) for unit in stream[: len(mine)]]


class Out(NamedTuple):
    """Samples that are taken out from a place on."""

    samples: frozenset[int]
    since: Place
    cut: str

    def changed(self, rows: Rows) -> tuple[Rows, list[int]] | None:
        """Return the rows without the samples, and how many units of each are excluded.

        None if an epoch has nothing left.
        """
        left: Rows = []
        for epoch, row in enumerate(rows):
            kept: list[Unit] = []
            for position, (unit, part, at) in enumerate(row):
                stays = unit
                if (epoch, position) >= self.since:
                    stays = tuple(each for each in unit if each not in self.samples)
                    stays = () if self.cut == "unit" and stays != unit else stays
                kept += [(stays, part, at)] if stays or not unit else []
            left.append(kept)
        gone = [len(row) - len(kept) for row, kept in zip(rows, left, strict=True)]
        return (left, gone) if all(left) else None


class LeftOut:
    """A run, and the lists that it has to read."""

    def __init__(self, drawn: random.Random) -> None:
        self.drawn, self.inner = drawn, inner_orders(drawn)
        self.order, self.parts = self.inner, drawn.choice([1, 1, 2, 3, 7])
        self.changes: list[Out] = []
        self.rows = self.inside(self.inner)
        self.gone = [0] * len(self.rows)  # units that are excluded
        self.excluded: set[int] = set()
        self.cut = drawn.choice(["piece", "unit"])
        self.cursor = self.plan().start

    def inside(self, inner: ip.Order) -> Rows:
        """Return what the first epochs of the order inside are, all of it."""
        rows: Rows = []
        for epoch in range(EPOCHS + 1):
            units = units_of(inner, epoch)
            each, more = divmod(len(units), self.parts)
            sizes = [each + (part < more) for part in range(self.parts)]
            numbers = np.repeat(np.arange(self.parts), sizes).tolist()
            rows.append(list(zip(units, numbers, range(len(units)), strict=True)))
        return rows

    def after(self, rows: Rows, changes: list[Out]) -> tuple[Rows, list[int]] | None:
        """Return rows after some changes, and what they leave out; None if one cannot be made."""
        gone = [0] * len(rows)
        for change in changes:
            if (found := change.changed(rows)) is None:
                return None
            rows = found[0]
            gone = [a + b for a, b in zip(gone, found[1], strict=True)]
        return rows, gone

    def plan(self) -> ip.Plan:
        """Return a plan for any number of ranks."""
        remainder = self.drawn.choice(["spread", "pad", "carry", "drop"])
        fields: dict[str, Any] = {"world_size": self.drawn.randrange(1, 6)}
        name = self.drawn.choice(["batch_size", "global_batch_size"])
        fields |= {name: self.drawn.randrange(1, 6), "sub_epochs": self.parts}
        try:
            return ip.Plan(self.order, remainder=remainder, **fields)
        except ip.IndexPlanError as error:
            uneven = "needs an order with the same number of units" in str(error)
            if not uneven and error.rule != READS_NOTHING:
                raise
            return ip.Plan(self.order, remainder="spread", **fields)

    def resumed(self) -> ip.Plan:
        """Return a plan of what is left."""
        plan = self.plan()
        try:
            return plan.resume(self.cursor)
        except ip.IndexPlanError as error:
            if error.rule != READS_NOTHING:
                raise
            return plan.replace(remainder="spread").resume(self.cursor)

    def places(self, plan: ip.Plan) -> list[tuple[int, int, int]]:
        """Return the steps at which a plan may be left, in the first epochs."""
        found = []
        for epoch in range(self.cursor.epoch, EPOCHS):
            for part in range(self.parts):
                if (epoch, part) >= (self.cursor.epoch, self.cursor.sub_epoch):
                    steps = plan.steps(epoch, part)
                    found += [(epoch, part, step) for step in range(steps.start, steps.stop + 1)]
        return found

    def ahead(self, plan: ip.Plan, most: int) -> ip.Cursor:
        """Draw a cursor that is not far ahead."""
        places = self.places(plan)[:most]
        places = [place for place in places if place[0] < EPOCHS - 1] or places[:1]
        epoch, part, step = self.drawn.choice(places)
        return plan.cursor(epoch, part, step=step)

    # What happens to the run, and to the lists.

    def read(self) -> None:
        """Read some steps, and go on from there under other ranks."""
        plan = self.resumed()
        cursor = self.ahead(plan, 12)
        self.check(plan, min(cursor.epoch + 1, EPOCHS))
        self.cursor = cursor if cursor.epoch < EPOCHS - 1 else self.cursor

    def take_out(self) -> None:
        """Take some samples out from the place of the run on."""
        left = sorted(set(range(self.order.num_samples)) - self.excluded)
        samples = self.drawn.sample(left, min(len(left), self.drawn.choice([1, 1, 2, 5, 20])))
        since = self.cursor if self.drawn.random() < 0.6 else self.ahead(self.resumed(), 12)
        place = since.epoch, since.position
        if isinstance(self.order, ip.Without) and place < self.order.since[-1][:2]:
            return
        if since.epoch >= EPOCHS - 1:
            return
        changes = [*self.changes, Out(frozenset(samples), place, self.cut)]
        found = self.after(self.inside(self.inner), changes)
        try:
            order = ip.Without(self.order, samples, since=since, cut=self.cut)
        except ip.IndexPlanError as error:
            if found and "must be inside at most" not in str(error):
                raise
            return
        if found:
            self.order, self.changes, (self.rows, self.gone) = order, changes, found
            self.excluded |= set(samples)

    def join(self) -> None:
        """Let sources join, and change the weights, from the place of the run on or later."""
        old = self.inner
        if not isinstance(old, ip.Mixture):
            return
        since = self.cursor if self.drawn.random() < 0.6 else self.ahead(self.resumed(), 12)
        if since.epoch >= EPOCHS - 1:
            return
        new = new_sources(old, self.drawn)
        weights = {name: self.drawn.randrange(4) for name in (*old.names, *new)}
        weights[self.drawn.choice(list(weights))] = 1
        read = [at for _, _, at in self.rows[since.epoch][: since.position]]
        place = since.epoch * old.epoch_size + max(read, default=-1) + 1  # in the mixture's run
        inner = old.with_phase(place, weights, sources=new or None, planned="drop")
        found = self.after(self.inside(inner), self.changes)
        changed: Any = self.order
        try:
            order = changed = changed.with_phase(
                since, weights, sources=new or None, planned="drop"
            )
        except ip.IndexPlanError:
            if found:
                raise
            return
        while not isinstance(changed, ip.Mixture):
            changed = changed.order
        assert changed == inner
        check_joined(old, inner, new, place)
        if not found:  # an epoch that was not looked at has nothing left
            return
        row, before = found[0][self.cursor.epoch], self.order
        self.order = order
        if self.cursor.position < len(row) and (
            row[self.cursor.position][1] < self.cursor.sub_epoch
        ):  # which was the next one that was not left out as a whole
            with pytest.raises(ip.IndexPlanError, match="a cursor's sub_epoch must be"):
                self.resumed()
            self.order = before
            return
        self.inner, (self.rows, self.gone) = inner, found

    # What a plan has to read.

    def check(self, plan: ip.Plan, epochs: int = EPOCHS) -> None:
        """Hold what a plan reads in its first epochs against the lists."""
        (at, position), ranks = (
            (self.cursor.epoch, self.cursor.position),
            range(plan.world_size or 1),
        )
        expected = [
            (epoch, place, *self.rows[epoch][place])
            for epoch in range(at, EPOCHS + 1)
            for place in range(position if epoch == at else 0, len(self.rows[epoch]))
        ]
        stream: list[tuple[int, ...]] = []
        for epoch in range(at, epochs):
            assert plan.order.num_units(epoch) == len(self.rows[epoch])
            whole = plan.account(epoch)
            assert whole.num_excluded == self.gone[epoch]
            assert whole.num_units == len(self.rows[epoch]) + whole.num_excluded
            left = whole.num_read + whole.num_dropped + whole.num_finished
            assert whole.num_units == left + whole.num_excluded
            parts = [plan.account(epoch, part) for part in range(self.parts)]
            for name in ("units", "read", "dropped", "finished", "excluded", "padded"):
                added = sum(getattr(part, f"num_{name}") for part in parts)
                assert added == getattr(whole, f"num_{name}"), name
            for part in range(self.parts):
                if (epoch, part) < (at, self.cursor.sub_epoch):
                    continue
                mine = [unit for e, _, unit, of, _ in expected if (e, of) == (epoch, part)]
                read: list[tuple[int, ...]] = []
                steps = plan.steps(epoch, part)
                batches = [self.batches(plan, epoch, part, rank) for rank in ranks]
                for number, step in enumerate(steps):
                    for rank in ranks:
                        batch = batches[rank][number]
                        units = [
                            tuple(batch.samples[a:b].tolist()) for a, b in pairwise(batch.offsets)
                        ]
                        self.check_found(plan, (epoch, part, step, rank), units[: batch.num_valid])
                        read += units[: batch.num_valid]
                stream += read
                if plan.remainder == "carry":
                    continue
                dropped = parts[part].num_dropped
                assert read == mine[: len(mine) - dropped], (epoch, part)
        if plan.remainder == "carry":
            units = [unit for _, _, unit, *_ in expected]
            num = min(len(stream), len(units))  # the last step may read on past what is listed
            assert stream[:num] == units[:num]
            assert len(stream) >= sum(1 for epoch, *_ in expected if epoch < epochs)

    def batches(self, plan: ip.Plan, epoch: int, part: int, rank: int) -> list[ip.types.Batch]:
        """Return a rank's batches of a sub-epoch: drawn together, or one by one."""
        if self.drawn.random() < 0.7:
            return list(plan.batches(epoch, part, rank=rank, units=True))
        steps = plan.steps(epoch, part)
        return [plan.units(epoch, part, step=step, rank=rank) for step in steps]

    def check_found(
        self, plan: ip.Plan, where: tuple[int, ...], units: list[tuple[int, ...]]
    ) -> None:
        """Find a unit of a batch again by one of its samples."""
        if not units or self.drawn.random() > 0.1:
            return
        slot = self.drawn.randrange(len(units))
        epochs = range(where[0], where[0] + 40)  # under "carry" a step may read from many
        for sample in units[slot][:1]:
            found = (plan.locate_all([sample], epoch)[0] for epoch in epochs)
            reads = (tuple(map(int, each)) for some in found for each in zip(*some, strict=True))
            assert (*where, slot) in reads


def live(seed: int, length: int = 8) -> None:
    """Live through one drawn history."""
    drawn = random.Random(seed)  # noqa: S311 (histories, not keys)
    run = LeftOut(drawn)
    for _ in range(length):
        drawn.choice([run.read, run.take_out, run.join])()
    plan = run.resumed()
    run.check(plan)
    again = ip.Plan.from_json(plan.to_json(), columns=run.order.columns.values())
    assert again == plan
    run.check(again)  # which was made at once, not step by step
