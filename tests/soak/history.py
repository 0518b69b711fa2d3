"""One history: a run that stops anywhere and goes on under anything, until an epoch's end."""

from __future__ import annotations

import os
import tempfile
import traceback
from pathlib import Path
from random import Random

import indexplan as ip
from tests.soak import drawing
from tests.soak.counting import Count
from tests.soak.drawing import Part
from tests.soak.reading import CARRIERS, WAYS, Plans, Read, WrongError, read
from tests.support.stories import Story

# of a hundred histories, those with what takes long
PER_CENT = {"huge orders": 3, "plan directories": 1.5}
MOST_LEGS = 30
MOST_CALLS = 60  # of batch, in a leg that asks for every one
LATEST = drawing.LAST_EPOCH - 10**6  # of the epochs in which a history begins


def tell(seed: int, kinds: frozenset[str] | None = None) -> Story:
    """Run the history of a seed; whatever is wrong is in the story, exceptions too.

    Parameters
    ----------
    kinds : frozenset of str, optional
        Of PER_CENT; drawn if left out.
    """
    story = Story(seed)
    try:
        # what is shown does not depend on the disk, and this one syncs at once
        fast = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108
        with tempfile.TemporaryDirectory(dir=fast) as folder:
            History(story, Random(seed), Path(folder), kinds).run()  # noqa: S311 (to draw with)
    except Exception as error:  # whatever it is, it is a finding
        words = str(error) if isinstance(error, WrongError) else traceback.format_exc().strip()
        story.wrong.append(words)
        story.count("", "histories that raised")
    return story


class History:
    """A run, of one order and one number of sub-epochs."""

    def __init__(
        self, story: Story, random: Random, folder: Path, kinds: frozenset[str] | None
    ) -> None:
        drawn = frozenset(kind for kind, per in PER_CENT.items() if random.random() * 100 < per)
        self.kinds = drawn if kinds is None else kinds
        self.story, self.random, self.folder = story, random, folder
        self.huge = "huge orders" in self.kinds
        order = drawing.order(random, huge=self.huge)
        sub_epochs = drawing.sub_epochs(random, order.num_units(0), huge=self.huge)
        run = ip.Plan(order, world_size=1, batch_size=1, sub_epochs=sub_epochs)
        self.cursor = cursor = self._beginning(run)
        self.tally = Count(order, cursor.epoch, cursor.position, huge=self.huge)
        self.plans = Plans(run, random, self._stored(run, cursor.epoch))
        story.words.append(
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
        cursor = CARRIERS[carrier](self.cursor)
        plan, how = self._plan(cursor, last=last)
        parts = drawing.parts(random, plan, most_steps=5 if self.huge else 10**6)
        if last:
            parts = drawing.parts_to_the_end(plan)
        way = "indices"
        calls = (plan.world_size or 0) * sum(part.stop - part.start for part in parts)
        if calls < MOST_CALLS:  # a batch by itself is the fastest to ask for
            way = random.choices(list(WAYS), list(WAYS.values()))[0]
        story.words.append(
            f"leg {story.counts['', 'legs']}: {told(plan)}; a cursor through {carrier}, "
            f"plan {how}; {[*map(tuple, parts)]}; read by {way}"
        )
        for part in parts:
            self._count(plan, part, read(plan, part, way))
        end = parts[-1]
        self.cursor = plan.cursor(end.epoch, end.sub_epoch, step=end.stop)
        for part in parts:
            now = self.cursor
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
        """Draw the plan of a leg."""
        run, random = self.plans.run, self.random
        most = drawing.MOST_RANKS
        if last:
            most = min(most, max(1, MOST_CALLS // (run.sub_epochs - cursor.sub_epoch)))
        fields = drawing.partition(random, run, cursor, most)
        while last and fields["remainder"] == "carry":
            fields = drawing.partition(random, run, cursor, most)
        return self.plans.resumed(fields, cursor)

    def _count(self, plan: ip.Plan, part: Part, found: Read) -> None:
        """Count what was read in a part."""
        self.tally.add(part.epoch, found.before)
        add_last = self.tally.add_carried if plan.remainder == "carry" else self.tally.add
        add_last(part.epoch, found.last)
        self.story.count("", "samples read", len(found.before) + len(found.last))

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
