"""Drawn histories of a run that takes samples out and skips steps, held against lists of units.

What a run reads is kept as lists: of each epoch the units, each with its sub-epoch. Taking out and
skipping change what follows in these lists, and nothing else; a plan has to read just that, after
any resumes, under any number of ranks.
"""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import numpy as np

import indexplan as ip

EPOCHS = 4
Unit = tuple[tuple[int, ...], int]  # its samples, and its sub-epoch

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
        lambda: ip.Mixture(
            {"a": ip.Shuffle(num, seed=seed), "b": ip.Sequential(7)}, {"a": 1, "b": 1}
        ),
    ]
    made: ip.Order = drawn.choice(kinds)()
    return made


def units_of(order: ip.Order, epoch: int) -> list[tuple[int, ...]]:
    """Return the samples of each unit of an epoch."""
    num = order.num_units(epoch)
    samples, offsets = order.take(epoch, 0, num).tolist(), order.offsets(epoch, 0, num).tolist()
    return [tuple(samples[a:b]) for a, b in pairwise(offsets)]


class LeftOut:
    """A run, and the lists that it has to read."""

    def __init__(self, drawn: random.Random) -> None:
        self.drawn, self.inner = drawn, inner_orders(drawn)
        self.order, self.parts = self.inner, drawn.choice([1, 1, 2, 3, 7])
        self.rows: list[list[Unit]] = []
        for epoch in range(EPOCHS + 1):
            units = units_of(self.inner, epoch)
            each, more = divmod(len(units), self.parts)
            sizes = [each + (part < more) for part in range(self.parts)]
            numbers = np.repeat(np.arange(self.parts), sizes).tolist()
            self.rows.append(list(zip(units, numbers, strict=True)))
        self.gone: list[list[int]] = [[0, 0] for _ in self.rows]  # skipped, excluded
        self.excluded: set[int] = set()
        self.cut = drawn.choice(["piece", "unit"])
        self.put_off = False
        self.cursor = self.plan().start
        self.past: list[tuple[int, int, tuple[int, ...]]] = []

    def plan(self) -> ip.Plan:
        """Return a plan for any number of ranks."""
        remainder = self.drawn.choice(["spread", "pad", "carry", "drop"])
        if remainder == "drop" and self.put_off:
            remainder = "spread"
        fields: dict[str, Any] = {"world_size": self.drawn.randrange(1, 6)}
        name = self.drawn.choice(["batch_size", "global_batch_size"])
        fields |= {name: self.drawn.randrange(1, 6), "sub_epochs": self.parts}
        try:
            return ip.Plan(self.order, remainder=remainder, **fields)
        except ip.IndexPlanError as error:
            if "needs an order with the same number of units" not in str(error):
                raise
            return ip.Plan(self.order, remainder="spread", **fields)

    def resumed(self) -> ip.Plan:
        """Return a plan of what is left."""
        return self.plan().resume(self.cursor)

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
        self.check(plan)
        cursor = self.ahead(plan, 12)
        self.cursor = cursor if cursor.epoch < EPOCHS - 1 else self.cursor

    def take_out(self) -> None:
        """Take some samples out from the place of the run on."""
        left = sorted(set(range(self.order.num_samples)) - self.excluded)
        samples = self.drawn.sample(left, min(len(left), self.drawn.choice([1, 1, 2, 5, 20])))
        since = self.cursor if self.drawn.random() < 0.6 else self.ahead(self.resumed(), 12)
        if (
            isinstance(self.order, ip.Without)
            and (since.epoch, since.position) < (self.order.since[-1][:2])
        ):
            return
        if since.epoch >= EPOCHS - 1:
            return
        rows, gone = [], []
        for epoch, row in enumerate(self.rows):
            kept: list[Unit] = []
            for place, (unit, part) in enumerate(row):
                stays = unit
                if (epoch, place) >= (since.epoch, since.position):
                    stays = tuple(each for each in unit if each not in samples)
                    stays = () if self.cut == "unit" and stays != unit else stays
                kept += [(stays, part)] if stays or not unit else []
            rows.append(kept)
            gone.append([self.gone[epoch][0], self.gone[epoch][1] + len(row) - len(kept)])
        try:
            order = ip.Without(self.order, samples, since=since, cut=self.cut)
        except ip.IndexPlanError as error:
            if all(rows) and "must be inside at most" not in str(error):
                raise
            return
        if not all(rows):
            return
        self.order, self.rows, self.gone = order, rows, gone
        self.excluded |= set(samples)

    def skip(self) -> None:
        """Skip some steps, now or further ahead."""
        plan = self.resumed()
        then = self.drawn.choice(["drop", "later"])
        places = self.places(plan)[:16]
        first, last = sorted(self.drawn.choices(range(len(places)), k=2))
        start, stop = (plan.cursor(*places[i][:2], step=places[i][2]) for i in (first, last))
        rows, gone = [list(row) for row in self.rows], [list(each) for each in self.gone]
        a, b = (start.epoch, start.position), (stop.epoch, stop.position)
        right = True
        for epoch, row in enumerate(self.rows):
            low = a[1] if epoch == a[0] else len(row) if epoch < a[0] else 0
            high = b[1] if epoch == b[0] else 0 if epoch > b[0] else len(row)
            if low < high:
                rows[epoch] = row[:low] + row[high:]
                if then == "later":
                    right = right and len(row) - high >= high - low
                    rows[epoch] += [(unit, self.parts - 1) for unit, _ in row[low:high]]
                else:
                    gone[epoch][0] += high - low
        right = (
            right
            and rows != self.rows
            and all(rows)
            and (then == "drop" or plan.remainder != "drop")
        )
        try:
            order = plan.skip(start, stop, then=then).order
        except ip.IndexPlanError as error:
            if right and "must be inside at most" not in str(error):
                raise
            return
        assert right, (start, stop, then)
        self.order, self.rows, self.gone = order, rows, gone
        self.put_off |= then == "later"

    # What a plan has to read.

    def check(self, plan: ip.Plan) -> None:
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
        for epoch in range(at, EPOCHS):
            assert plan.order.num_units(epoch) == len(self.rows[epoch])
            whole = plan.account(epoch)
            counts = (whole.num_skipped, whole.num_excluded)
            assert counts == tuple(self.gone[epoch])
            assert whole.num_units == len(self.rows[epoch]) + sum(counts)
            left = whole.num_read + whole.num_dropped + whole.num_finished
            assert whole.num_units == left + sum(counts)
            parts = [plan.account(epoch, part) for part in range(self.parts)]
            for name in ("units", "read", "dropped", "finished", "skipped", "excluded", "padded"):
                added = sum(getattr(part, f"num_{name}") for part in parts)
                assert added == getattr(whole, f"num_{name}"), name
            for part in range(self.parts):
                if (epoch, part) < (at, self.cursor.sub_epoch):
                    continue
                mine = [unit for e, _, unit, of in expected if (e, of) == (epoch, part)]
                read: list[tuple[int, ...]] = []
                for step in plan.steps(epoch, part):
                    where: list[tuple[int, ...]] = []
                    for rank in ranks:
                        batch = plan.units(epoch, part, step=step, rank=rank)
                        units = [
                            tuple(batch.samples[a:b].tolist()) for a, b in pairwise(batch.offsets)
                        ]
                        self.check_found(plan, (epoch, part, step, rank), units[: batch.num_valid])
                        where += units[: batch.num_valid]
                    read += where
                stream += read
                if plan.remainder == "carry":
                    continue
                dropped = parts[part].num_dropped
                assert read == mine[: len(mine) - dropped], (epoch, part)
        if plan.remainder == "carry":
            units = [unit for _, _, unit, _ in expected]
            num = min(len(stream), len(units))  # the last step may read on past what is listed
            assert stream[:num] == units[:num]
            assert len(stream) >= sum(1 for epoch, *_ in expected if epoch < EPOCHS)

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
        drawn.choice([run.read, run.take_out, run.skip])()
    run.check(run.resumed())
    again = ip.Plan.from_dict(run.resumed().to_dict(), columns=run.order.columns.values())
    assert again.order == run.order
