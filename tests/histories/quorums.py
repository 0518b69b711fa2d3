"""Simulated quorums: groups of ranks that are killed, joined, healed and split, as torchft does.

A group has a number of steps, and each of its ranks a `LiveLoader`, with a manager that answers as
torchft's would in the quorum that was drawn. In a quorum those groups take part that are at the
most steps, or all, where those behind are given their state first (sync). Else such a group reads
what the first one reads, is given its state as of the step's start when the step is over, and
commits that step with the others (async). A step may fail for all, or for some groups, which are
given the state later. The groups may be split: two quorums run the same step, neither knows of the
other, and one of them is lost.

The laws, by their numbers: L1 whole epochs of the lineage that survives read each sample once. L2 a
step is one set of samples for any number of ranks. L3 equal states after equal steps. L4 a step
that does not count leaves no trace. L5 while nothing changes, each rank reads what a PlanLoader
does: test_loader.py has it with torchft. L6 each rank reads what the plan deals it as resumed at
a cursor, for the ranks of the step. L7 a ledger, written at checkpoints as if one rank had read
all, has what the lineage has read.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import indexplan as ip
from indexplan_torch.live import LiveLoader
from tests.histories.stories import Given, Story
from tests.support.model import run_of, walk

MOST_GROUPS = 4
SPARED = 2  # groups that take part where others are spares


# --- what steps read, by a model, and by the recipe of docs/live.md, whose state is a cursor


def steps(plan: ip.Plan, num_epochs: int) -> list[list[int]]:
    """Return the samples of each step that begins in the first epochs, in order: the oracle."""
    run = run_of(plan.replace(world_size=1))
    units = plan.order.num_units(0)
    rows = [plan.order.take(epoch, 0, units).tolist() for epoch in range(num_epochs + 1)]
    parts = walk(run, num_epochs)
    return [
        [rows[slot.epoch][slot.position] for slot in step.slots]
        for part in parts
        for step in part.steps
    ]


def dealt(plan: ip.Plan, cursor: ip.Cursor, world_size: int) -> list[list[int]]:
    """Return what each rank reads in the step that comes next."""
    cursor = there(plan, cursor)
    rest = plan.replace(world_size=world_size).resume(cursor)
    where = cursor.epoch, cursor.sub_epoch
    ranks = range(world_size)
    return [rest.batch(*where, step=cursor.step, rank=rank).tolist() for rank in ranks]


def after(plan: ip.Plan, cursor: ip.Cursor) -> ip.Cursor:
    """Return where the run stands after the step that comes next."""
    cursor = there(plan, cursor)
    rest = plan.resume(cursor)
    return there(plan, rest.cursor(cursor.epoch, cursor.sub_epoch, step=cursor.step + 1))


def there(plan: ip.Plan, cursor: ip.Cursor) -> ip.Cursor:
    """Return where the next step starts: some sub-epochs have none."""
    rest = plan.resume(cursor)
    number = cursor.epoch * plan.sub_epochs + cursor.sub_epoch
    while not (steps := rest.steps(*divmod(number, plan.sub_epochs))):
        number += 1
    return rest.cursor(*divmod(number, plan.sub_epochs), step=steps.start)


# --- the simulation


class Lineage(NamedTuple):
    """What has been read, as far as a group knows: the samples of its last step, and all before."""

    before: Lineage | None
    samples: list[int]


class Told(NamedTuple):
    """What a rank is told of a quorum: how many groups take part, and which of them its own is.

    None is a group without a share. One that is behind is given another's state and its step.
    """

    groups: int
    group: int | None
    sync: bool
    healed: tuple[str, int] | None = None


class Manager:
    """A rank's manager: it says what the simulation has drawn, in torchft's words."""

    def __init__(self, step: int) -> None:
        self.step = step + 1  # torchft's first one reads nothing
        self.told = Told(1, 0, sync=True)
        self.counts = True

    def register_state_dict_fn(self, _: str, load: Any, state: Any) -> None:
        """Keep how to load a state, and how to make one."""
        self.load, self.state = load, state

    def start_quorum(self) -> None:
        """Do nothing: the simulation has started it."""

    def wait_quorum(self) -> None:
        """Learn of the step at once, where the group is behind, but async not yet of the state."""
        if self.told.healed is not None:
            self.step = self.told.healed[1]
            if self.told.sync:
                self._heal()

    def _heal(self) -> None:
        if self.told.healed is not None:
            self.load(self.told.healed[0])
            self.told = self.told._replace(healed=None)

    def is_participating(self) -> bool:
        """Return whether the group has a share in the step."""
        return self.told.group is not None

    def participating_rank(self) -> int | None:
        """Return its number among those that do."""
        return self.told.group

    def num_participants(self) -> int:
        """Return how many groups there are that do."""
        return self.told.groups

    def current_step(self) -> int:
        """Return the number of the step that is run next."""
        return self.step

    def should_commit(self) -> bool:
        """Return whether the step counts."""
        self._heal()
        self.step += self.counts
        return self.counts


class Rank:
    """A process: its manager, its loader, and the loop over it."""

    def __init__(self, plan: ip.Plan, step: int, **options: Any) -> None:
        self.manager = Manager(step)
        self.loader = LiveLoader(
            range(plan.order.num_samples), plan, self.manager, as_array=True, **options
        )
        self.loop = iter(self.loader)

    def read(self, told: Told, *, again: bool) -> list[int]:
        """Return what the rank reads in a quorum, in its loop, or in another one."""
        self.manager.told = told
        if again:
            self.loop = iter(self.loader)
        batch: list[int] = next(self.loop).tolist()
        return batch

    def decide(self, counts: bool) -> None:
        """Hear whether the step counts."""
        self.manager.counts = counts
        assert counts is self.manager.should_commit()


@dataclass(eq=False)
class Group:
    """The processes of one group, and what it knows to have been read."""

    ranks: list[Rank]
    read: Lineage | None = None

    @property
    def step(self) -> int:
        """How many steps it has committed."""
        return self.ranks[0].manager.step - 1

    @property
    def cursor(self) -> ip.Cursor:
        """Where it stands."""
        return self.ranks[0].loader.cursor

    @property
    def states(self) -> list[str]:
        """The state that each of its ranks sends to others."""
        return [rank.manager.state() for rank in self.ranks]


class Saved(NamedTuple):
    """A checkpoint."""

    state: dict[str, Any]
    read: Lineage | None
    hash: str  # of the ledger


@dataclass
class Quorums:
    """A run of groups, each with some ranks, of which each step is checked against lists.

    `counts` has what happened: commits, failed steps, void commits, kills, joins, heals, swaps.
    """

    plan: ip.Plan
    random: Random
    inner: int = 1
    sync: bool = False
    spares: bool = False
    counts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._truth = list[list[int]]()
        self._epochs = 1
        self.groups = [self._fresh() for _ in range(self.random.randint(1, MOST_GROUPS))]

    def _fresh(self, plan: ip.Plan | None = None, step: int = 0) -> Group:
        ranks: list[dict[str, int]] = [
            {"inner_rank": rank, "inner_size": self.inner} for rank in range(self.inner)
        ]
        return Group([Rank(plan or self.plan, step, **each) for each in ranks])

    def _read(self, step: int) -> list[int]:
        """Return what a step reads, by the model."""
        while step >= len(self._truth):
            self._epochs *= 2
            self._truth = steps(self.plan, self._epochs)
        return self._truth[step]

    @property
    def best(self) -> Group:
        """A group that has committed the most steps."""
        return max(self.groups, key=lambda group: group.step)

    @property
    def step(self) -> int:
        """The most steps that a group has committed."""
        return self.best.step

    def run(self, num_steps: int) -> None:
        """Run until so many steps are committed, and check what the lineage has read (L1, L7)."""
        with TemporaryDirectory() as folder:
            self.path = Path(folder, "run.ledger")
            self.saved = self._save(self.best)
            while self.step < num_steps:
                self.change()
                if len(self.groups) > 1 and self.random.random() < 0.02:
                    self.split()
                else:
                    self.quorum(self.groups)
            self._save(self.best)
            self.check_epochs(ip.Ledger(self.path))

    def change(self) -> None:
        """Kill a group, or all, or let one join; or give the groups another order (a swap)."""
        drawn = self.random.random()
        if drawn < 0.03 and len(self.groups) > 1:
            self.groups.pop(self.random.randrange(len(self.groups)))
            self.counts["kills"] += 1
        elif drawn < 0.06 and len(self.groups) < MOST_GROUPS:
            self.groups.insert(self.random.randint(0, len(self.groups)), self._fresh())
            self.counts["joins"] += 1
        elif drawn < 0.08:
            self.random.shuffle(self.groups)
            self.counts["swaps"] += 1
        elif drawn < 0.082:  # the whole run stops, and continues from its checkpoint
            self.groups = [self._restarted()]
            self.counts["restarts"] += 1
        elif drawn < 0.1:
            self.saved = self._save(self.best)

    def _save(self, group: Group) -> Saved:
        """Return a checkpoint, up to which the ledger is written by the recipe of docs/live.md."""
        ledger = ip.Ledger(self.path)
        ledger.rewind(min(group.step, ledger.step))
        ledger.record(self.plan.replace(world_size=1), group.cursor)
        assert group.step == ledger.step, "L7: other steps in the ledger"
        return Saved(group.ranks[0].loader.state_dict(), group.read, ledger.hash)

    def _restarted(self) -> Group:
        """Return a group of the checkpoint: by its state, or by its cursor alone."""
        state, step = self.saved.state, self.saved.state["step"] - 1
        ip.Ledger(self.path).rewind(self.saved.hash)
        if self.random.random() < 0.5:
            cursor = ip.Cursor.from_dict(state["cursor"])
            group = self._fresh(self.plan.resume(cursor), step)
        else:
            group = self._fresh(step=step)
            for rank in group.ranks:
                rank.loader.load_state_dict(state)
        group.read = self.saved.read
        return group

    def split(self) -> None:
        """Run two quorums that know nothing of each other, and lose what one has committed."""
        cut = self.random.randint(1, len(self.groups) - 1)
        parts = self.groups[:cut], self.groups[cut:]
        before = self.step
        for part in parts:
            for _ in range(self.random.randint(1, 3)):
                self.quorum(part)
        kept, lost = self.random.sample(parts, 2)
        if max(group.step for group in kept) < before:  # those that are left have no state yet
            kept, lost = lost, kept
        self.groups = kept
        self.counts["void"] += max(0, max(group.step for group in lost) - before)
        if self.random.random() < 0.5:  # they come back, some steps behind or ahead
            self.groups = self.groups + lost

    def quorum(self, groups: list[Group]) -> None:
        """Run one step with some groups; it may fail for some of them or all."""
        most = max(group.step for group in groups)
        behind = [group for group in groups if group.step < most]
        ahead = [group for group in groups if group.step == most]
        source = self.random.choice(ahead)
        states, cursor = source.states, source.cursor
        if most % 4 == 0:
            for group in ahead:
                assert states == group.states, "L3: other states"
        taking = groups if self.sync else ahead
        self.counts["spare"] += len(taking[SPARED:]) if self.spares else 0
        taking = taking[:SPARED] if self.spares else taking
        world = len(taking) * self.inner
        got, spare = list[list[int]](), []
        for group in groups:
            place = next((i for i, each in enumerate(taking) if each is group), None)
            read = self._draw(group, Told(len(taking), place, self.sync), states, most)
            if place is not None:
                got += read
            elif group not in behind or self.sync:
                spare.append(read)
        assert all(read == got[: self.inner] for read in spare), "a spare reads what the first does"
        samples = sum(got, [])
        assert samples == self._read(most), "L2: other samples than the model says"
        assert got == dealt(self.plan, cursor, world), "L6: others than a plan's"
        failed = self.random.random()
        read = Lineage(source.read, samples)
        for group in groups:
            some = 0.1 <= failed < 0.2 and group is not source and self.random.random() < 0.5
            counts = failed >= 0.1 and not some
            for rank in group.ranks:
                rank.decide(counts)
            if group in behind:
                self.counts["heals"] += 1
                group.read = read.before  # of the source, which may have this step already
            self.counts["failed for some"] += some
            if counts:
                group.read = read
            else:
                assert states == group.states, "L4: a trace"
        self.counts["failed" if failed < 0.1 else "commits"] += 1
        self.counts["of several ranks a group"] += self.inner > 1 and failed >= 0.1
        if failed >= 0.1:
            assert after(self.plan, cursor) == source.cursor, (
                "L6: stands elsewhere than the plan says"
            )

    def _draw(self, group: Group, told: Told, states: list[str], most: int) -> list[list[int]]:
        """Return what each rank of a group reads, in its loop or in another one."""
        got = []
        behind, again = group.step < most, self.random.random() < 0.1
        for rank, state in zip(group.ranks, states, strict=True):
            healed = (state, most + 1) if behind else None
            got.append(rank.read(told._replace(healed=healed), again=again))
            assert got[-1], "an empty batch"
        return got

    def check_epochs(self, ledger: ip.Ledger) -> None:
        """Count what the lineage has read in whole epochs: each sample once, and no other (L1).

        It is what the ledger tells of the steps that count (L7).
        """
        stream, each = list[int](), self.best.read
        parts = []
        while each is not None:
            parts.append(each.samples)
            each = each.before
        for step, part in enumerate(reversed(parts)):
            stream += part
            assert part == ledger.batch(step, 0).tolist(), "L7: other samples in the ledger"
        assert (len(parts), True) == (ledger.step, ledger.verify().ok), "L7: another ledger"
        num_samples, size = self.plan.order.num_samples, self.plan.global_batch_size
        assert isinstance(size, int)
        length = num_samples
        if self.plan.remainder == "drop":
            length -= num_samples % size
        if self.plan.remainder == "pad":
            length += -num_samples % size
        for start in range(0, len(stream) - length + 1, length):
            epoch = stream[start : start + length]
            assert min(length, num_samples) == len(set(epoch)), "L1: a sample lost or read twice"
            self.counts["epochs"] += 1


def live(story: Story, given: Given) -> None:
    """Run a drawn plan with at least three steps an epoch, and the groups that read it.

    Every fourth has spares, about every other several ranks a group.
    """
    random = Random(story.number)  # noqa: S311 (which is repeatable)
    inner, sync, spares = random.choice([1, 1, 2, 3]), random.random() < 0.5, story.number % 4 == 0
    size = random.randint(2 * MOST_GROUPS * inner, 60)
    order = ip.Shuffle(random.randint(3 * size, 500), seed=story.number)
    remainder = random.choice(["spread", "spread", "drop", "pad", "carry"])
    plan = ip.Plan(order, global_batch_size=size, remainder=remainder)  # type: ignore[arg-type]
    story.say(f"{plan!r}, {inner} ranks a group, sync: {sync}, spares: {spares}")
    quorums = Quorums(plan, random, inner, sync, spares)
    quorums.run(given.steps or 200)
    for name, number in quorums.counts.items():
        story.count("", name, number)
