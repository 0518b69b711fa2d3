"""A run of plans, which stops anywhere and goes on under anything, until an epoch's end.

It is a run of one order and one number of sub-epochs. It goes on with other ranks, another batch
size, schedule, nesting and remainder, computed or from a plan directory. What lies between two
stops is a leg. In the end each sample of each epoch has to have been read once, or to be accounted
for as dropped or padded.
"""

from __future__ import annotations

import json
import os
import pickle
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import indexplan as ip
from tests.histories import drawing
from tests.histories.counting import Count
from tests.histories.drawing import Part
from tests.histories.stories import Given, Story, WrongError
from tests.support.units import micro_batches

Int64 = NDArray[np.int64]
# of a hundred histories, those with what takes long
PER_CENT = {"huge orders": 3, "plan directories": 1.5}
MOST_LEGS = 30
MOST_CALLS = 60  # of batch, in a leg that asks for every one
LATEST = drawing.LAST_EPOCH - 10**6  # of the epochs in which a history begins
CARRIERS: dict[str, Callable[[ip.Cursor], ip.Cursor]] = {
    "itself": lambda cursor: cursor,
    "JSON": lambda cursor: ip.Cursor.from_json(cursor.to_json()),
    "dict": lambda cursor: ip.Cursor.from_dict(json.loads(json.dumps(cursor.to_dict()))),
    "pickle": lambda cursor: pickle.loads(pickle.dumps(cursor)),  # noqa: S301 (ours)
}
"""How a checkpoint keeps a cursor."""
WAYS = {"indices": 30, "batches": 15, "batch": 50, "micro_batches": 10}
"""How batches are asked for, and how often: together, as a stream, each by itself."""


def live(story: Story, _: Given | None = None, kinds: frozenset[str] | None = None) -> None:
    """Run a history; `kinds` are of PER_CENT, and drawn if left out."""
    # what is shown does not depend on the disk, and this one syncs at once
    fast = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108
    with tempfile.TemporaryDirectory(dir=fast) as folder:
        History(story, Random(story.number), Path(folder), kinds).run()  # noqa: S311 (to draw with)


class History:
    """A run, and the count of what it reads."""

    def __init__(
        self, story: Story, random: Random, folder: Path, kinds: frozenset[str] | None
    ) -> None:
        drawn = frozenset(kind for kind, per in PER_CENT.items() if random.random() * 100 < per)
        self.kinds = drawn if kinds is None else kinds
        self.story, self.random, self.folder = story, random, folder
        self.huge = "huge orders" in self.kinds
        order = drawing.order(random, huge=self.huge)
        sub_epochs = drawing.sub_epochs(random, order.num_units(0), huge=self.huge)
        self.last = run = ip.Plan(order, world_size=1, batch_size=1, sub_epochs=sub_epochs)
        self.cursor = cursor = self._beginning(run)
        self.tally = Count(order, cursor.epoch, cursor.position, huge=self.huge)
        self.stored = self._stored(run, cursor.epoch)
        story.say(
            f"{order!r}, {sub_epochs} sub-epochs, from epoch {cursor.epoch}, sub-epoch "
            f"{cursor.sub_epoch}, step {cursor.step}, position {cursor.position}"
        )
        story.count("orders", type(order).__name__ + (", huge" if self.huge else ""))
        for kind in self.kinds:
            story.count("histories with", kind)

    def _beginning(self, run: ip.Plan) -> ip.Cursor:
        """Draw where the run begins: at an epoch's start, or anywhere if it is huge."""
        random = self.random
        epoch = random.choice([0, 0, 0, 1, random.randint(2, 9), random.randrange(LATEST)])
        near = run.cursor(epoch, 0, step=0)
        if not self.huge:
            return near
        plan = run.replace(**drawing.partition(random, run, near, drawing.MOST_RANKS))
        sub_epoch = random.randrange(run.sub_epochs)
        num_steps = plan.steps(epoch, sub_epoch).stop
        step = random.choice([random.randint(0, num_steps), num_steps - random.randint(0, 5)])
        return plan.cursor(epoch, sub_epoch, step=max(0, step))

    def _stored(self, run: ip.Plan, epoch: int) -> Path | None:
        """Build a plan directory of the first epochs."""
        if "plan directories" not in self.kinds or self.huge:
            return None
        directory = self.folder / "run.plan"
        ip.save(run, directory, epochs=range(epoch, epoch + self.random.randint(1, 3)))
        return directory

    def run(self) -> None:
        """Run legs, and then what is left of the epoch; count."""
        for _ in range(self.random.randint(1, 12 if self.huge else MOST_LEGS)):
            self._leg()
        end = self.cursor
        place = end.epoch, end.position
        if not self.huge and (end.sub_epoch, end.position) != (0, 0):
            self._leg(last=True)
            place = end.epoch + 1, 0
        lost, repeated, words = self.tally.wrong(*place)
        self.story.count("", "samples lost", lost)
        self.story.count("", "samples repeated", repeated)
        self.story.wrong += words

    def _leg(self, *, last: bool = False) -> None:
        """Go on from what was saved, under another partition, to a stop; save."""
        random, story = self.random, self.story
        carrier = random.choice([*CARRIERS])
        plan, how = self._plan(CARRIERS[carrier](self.cursor), last=last)
        if last:
            parts = drawing.parts_to_the_end(plan)
        else:
            parts = drawing.parts(random, plan, most_steps=5 if self.huge else 10**6)
        way = "indices"
        calls = (plan.world_size or 0) * sum(part.stop - part.start for part in parts)
        if calls < MOST_CALLS:  # a batch by itself is the fastest to ask for
            way = random.choices(list(WAYS), list(WAYS.values()))[0]
        story.say(
            f"leg {story.counts['', 'legs']}: {told(plan)}; a cursor through {carrier}, "
            f"plan {how}; {[*map(tuple, parts)]}; read by {way}"
        )
        end = parts[-1]
        self.cursor = now = plan.cursor(end.epoch, end.sub_epoch, step=end.stop)
        for part in parts:
            found = read(plan, part, way)
            self.tally.add(part.epoch, found.before)
            add_last = self.tally.add_carried if plan.remainder == "carry" else self.tally.add
            add_last(part.epoch, found.last)
            story.count("", "samples read", len(found.before) + len(found.last))
        for part in parts:
            if last or (part.epoch, part.sub_epoch) < (now.epoch, now.sub_epoch):
                self._account(plan, part)
        story.count("", "legs")
        story.count("", "steps", sum(part.stop - part.start for part in parts))
        story.count("read by", way)
        story.count("remainders", plan.remainder)
        story.count("cursors carried by", carrier)
        story.count("plans", how)
        story.count("legs with", "phases", len(plan._layout.phases) > 1)

    def _plan(self, cursor: ip.Cursor, *, last: bool) -> tuple[ip.Plan, str]:
        """Draw a plan that goes on after a cursor, and how it is made."""
        random, run = self.random, self.last
        most = drawing.MOST_RANKS
        if last:
            most = min(most, max(1, MOST_CALLS // (run.sub_epochs - cursor.sub_epoch)))
        fields = drawing.partition(random, run, cursor, most)
        while last and fields["remainder"] == "carry":
            fields = drawing.partition(random, run, cursor, most)
        how = random.choice(["new", "replaced", "JSON", "spaced JSON", "pickle"])
        plan = run.replace(**fields)
        if self.stored is not None and random.random() < 0.6:
            how = random.choice(["stored", "stored, pickled"])
            plan = ip.load(self.stored).replace(**fields)
        elif how == "new":
            plan = ip.Plan(self.tally.order, sub_epochs=run.sub_epochs, **fields)
        plan = plan.resume(cursor)
        if "JSON" in how:
            text = plan.to_json()
            spaced = json.dumps(json.loads(text), indent=1)
            plan = ip.Plan.from_json(text if how == "JSON" else spaced)
        elif "pickle" in how:
            plan = pickle.loads(pickle.dumps(plan))  # noqa: S301 (ours)
        self.last = plan
        return plan, how

    def _account(self, plan: ip.Plan, part: Part) -> None:
        """Count what the account says that an ended sub-epoch dropped and padded."""
        account = plan.account(part.epoch, part.sub_epoch)
        dropped, padded = account.num_dropped, account.num_padded
        ranks = plan.world_size if plan.global_batch_size is None else 1
        full = max(phase.num_units for phase in plan._layout.phases) * (ranks or 1)
        for number, remainder in ((dropped, "drop"), (padded, "pad")):
            if number and (plan.remainder != remainder or number >= full):
                raise WrongError(f"{told(plan)}, of {full} units a step, at {part}: {account}")
        self.tally.add_account(part.epoch, dropped=dropped, padded=padded)
        self.story.count("", "units dropped, as accounted for", dropped)
        self.story.count("", "units padded, as accounted for", padded)


def told(plan: ip.Plan) -> str:
    """Return the partition of a plan in words."""
    name = "batch_size" if plan.global_batch_size is None else "global_batch_size"
    phases = "; ".join(f"{phase.size} from {phase.at}" for phase in plan._layout.phases)
    return f"{plan.world_size} ranks, {name} {phases}, {plan.remainder}"


class Read(NamedTuple):
    """What all ranks read in a part: in its last step, rank by rank, and in the steps before."""

    before: Int64
    last: Int64


def flat(arrays: Iterable[Any]) -> Int64:
    """Return arrays or lists of indices as one array."""
    return np.concatenate([np.empty(0, np.int64), *(np.asarray(a, np.int64) for a in arrays)])


def leaves(nested: Any) -> list[Any]:
    """Return the arrays inside nested lists."""
    if not isinstance(nested, list):
        return [nested]
    return [leaf for part in nested for leaf in leaves(part)]


def read(plan: ip.Plan, part: Part, way: str) -> Read:
    """Read the steps of a part on all ranks; the last step apart, as epochs can mix in it."""
    where, ranks = (part.epoch, part.sub_epoch), range(plan.world_size or 0)
    steps = range(part.start, part.stop)
    if way == "indices":  # the last step apart only where epochs do mix
        stop = part.stop - (plan.remainder == "carry" and len(steps) > 0)
        interval = {"start_step": part.start, "stop_step": stop}
        before = flat(plan.indices(*where, rank=rank, **interval) for rank in ranks)
        last = [part.stop - 1] if stop < part.stop else []
        return Read(before, flat(plan.batch(*where, step=s, rank=r) for s in last for r in ranks))

    def batches(rank: int) -> list[Any]:
        if way == "batches":
            interval = {"start_step": part.start, "stop_step": part.stop}
            return list(plan.batches(*where, rank=rank, **interval))
        if way == "batch":
            return [plan.batch(*where, step=step, rank=rank) for step in steps]
        inner = (micro_batches(plan.units(*where, step=step, rank=rank)) for step in steps)
        return [flat(leaves(each)) for each in inner]

    every = [batches(rank) for rank in ranks]
    for rank, got in enumerate(every):
        if len(got) != len(steps):
            raise WrongError(f"rank {rank} received {len(got)} batches of {len(steps)}, in {part}")
    before = flat(batch for got in every for batch in got[:-1])
    return Read(before, flat(got[-1] for got in every if got))
