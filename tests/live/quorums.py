"""Simulated quorums: groups of ranks that are killed, joined, healed and split, as torchft does.

A group has a number of steps and the standing of each of its ranks. In a quorum those groups take
part that are at the most steps, or all, where those behind are given their state first (sync). A
group draws for the quorum before, is given its state as of the step's start, and commits that step
with the others (async). A step may fail for all, or for some groups, which are given the state
later. The groups may be split: two quorums run the same step, neither knows of the other, and one
of them is lost.

The laws, by their numbers: L1 whole epochs of the lineage that survives read each sample once. L2 a
step is one set of samples for any number of ranks. L3 equal states after equal steps. L4 a step
that does not count leaves no trace. L5 while nothing changes, each rank reads what a PlanLoader
does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

import indexplan as ip
from indexplan_torch import PlanLoader
from tests.live.steps import Read, steps

MOST_GROUPS = 4
FURTHEST_BACK = 5000  # steps that a run may fall back, to its checkpoint
SPARED = 2  # groups that take part where others are spares


class Lineage(NamedTuple):
    """What has been read, as far as a group knows: the samples of its last step, and all before."""

    before: Lineage | None
    samples: list[int]


@dataclass
class Group:
    """The processes of one group: how many steps it has committed, and where each stands."""

    step: int
    standings: list[ip.live.Standing]
    read: Lineage | None = None
    known: tuple[int, int] | None = None  # the last world that it has heard of, and its place there


class Saved(NamedTuple):
    """A checkpoint."""

    cursor: str
    step: int
    read: Lineage | None


class Fixed(NamedTuple):
    """Loaders of a world that stays, from some step on, and the step that they read next."""

    world: int
    step: int
    batches: list[Iterator[list[int]]]


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
        self._truth: dict[int, list[Read]] = {}
        self._first = 0
        self._steps: Iterator[list[Read]] = steps(self.plan)
        self._fixed: Fixed | None = None
        self.groups = [self._fresh() for _ in range(self.random.randint(1, MOST_GROUPS))]
        self.saved = Saved(self.groups[0].standings[0].cursor.to_json(), 0, None)

    def _fresh(self) -> Group:
        return Group(0, [ip.live.Standing(self.plan) for _ in range(self.inner)])

    def _read(self, step: int) -> list[int]:
        """Return what a step reads, by lists; those that nobody can ask for again are dropped."""
        while step >= (known := self._first + len(self._truth)):
            self._truth[known] = next(self._steps)
            if len(self._truth) > FURTHEST_BACK:
                del self._truth[self._first]
                self._first += 1
        return [sample for _, sample in self._truth[step]]

    @property
    def best(self) -> Group:
        """A group that has committed the most steps."""
        return max(self.groups, key=lambda group: group.step)

    @property
    def step(self) -> int:
        """The most steps that a group has committed."""
        return self.best.step

    def run(self, num_steps: int) -> None:
        """Run until so many steps are committed, and check what the lineage has read (L1)."""
        while self.step < num_steps:
            self.change()
            if len(self.groups) > 1 and self.random.random() < 0.02:
                self.split()
            else:
                self.quorum(self.groups)
        self.check_epochs()

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
        elif drawn < 0.082:  # the whole run stops, and goes on from its checkpoint
            cursor = ip.Cursor.from_json(self.saved.cursor)
            resumed = [ip.live.Standing(self.plan, cursor) for _ in range(self.inner)]
            self.groups = [Group(self.saved.step, resumed, self.saved.read)]
            self.counts["restarts"] += 1
        elif drawn < 0.1:
            best = self.best
            self.saved = Saved(best.standings[0].cursor.to_json(), best.step, best.read)

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
        states = [standing.to_json() for standing in source.standings]
        if most % 4 == 0:
            for group in ahead:
                assert _same(states, group), "L3: other states"
        if self.sync:
            self._heal(behind, source, states)
        taking = groups if self.sync else ahead
        self.counts["spare"] += len(taking[SPARED:]) if self.spares else 0
        taking = taking[:SPARED] if self.spares else taking
        world = len(taking) * self.inner
        got = [
            part for place, group in enumerate(taking) for part in self._draw(group, world, place)
        ]
        for group in groups:  # those without a share run the same code
            if not any(group is each for each in taking):
                self._draw(group, world, 0)
        samples = sum(got, [])
        assert samples == self._read(most), "L2: other samples than lists say"
        self._check_fixed(source, world, got)
        failed = self.random.random()
        if failed < 0.1:
            self.counts["failed"] += 1
            for group in taking:
                assert _same(states, group), "L4: a trace"
            return
        if not self.sync:
            self._heal(behind, source, states)
        read = Lineage(source.read, samples)
        for group in groups:
            if failed < 0.2 and group is not source and self.random.random() < 0.5:
                self.counts["failed for some"] += 1
                continue
            for standing in group.standings:
                standing.commit()
            group.step, group.read = most + 1, read
        self.counts["commits"] += 1
        self.counts["of several ranks a group"] += self.inner > 1

    def _draw(self, group: Group, world: int, place: int) -> list[list[int]]:
        """Return what each rank of a group reads; one that guesses draws again where it is wrong.

        With the sync quorum it knows before it draws.
        """
        guess = (world, place) if self.sync or group.known is None else group.known
        got = []
        for number, standing in enumerate(group.standings):
            drawn = standing.deal(guess[0], guess[1] * self.inner + number)
            if guess != (world, place):
                drawn = standing.deal(world, place * self.inner + number)
                self.counts["drawn again"] += 1
            assert len(drawn), "an empty batch"
            got.append(drawn.tolist())
        group.known = world, place
        return got

    def _heal(self, behind: list[Group], source: Group, states: list[str]) -> None:
        for group in behind:
            for standing, text in zip(group.standings, states, strict=True):
                standing.load_json(text)
            group.step, group.read = source.step, source.read
            self.counts["heals"] += 1

    def _check_fixed(self, source: Group, world: int, got: list[list[int]]) -> None:
        """Compare what ranks read with loaders of a fixed world, as long as it stays (L5)."""
        fixed, step = self._fixed, source.step
        if fixed is None and self.random.random() < 0.01:
            fixed = Fixed(world, step, self._loaders(source.standings[0].cursor, world))
        if fixed is None or fixed.world != world or fixed.step not in (step, step + 1):
            self._fixed = None
            return
        if fixed.step == step:  # else it failed, and is dealt again
            expected = [next(each) for each in fixed.batches]
            assert expected == got, "L5: other batches than a loader's"
            self.counts["as a loader"] += 1
            self._fixed = fixed._replace(step=step + 1)

    def _loaders(self, cursor: ip.Cursor, world: int) -> list[Iterator[list[int]]]:
        rest, dataset = self.plan.resume(cursor), range(self.plan.order.num_samples)
        return [
            endless(PlanLoader(dataset, rest, rank=rank, world_size=world, as_array=True))
            for rank in range(world)
        ]

    def check_epochs(self) -> None:
        """Count what the lineage has read in whole epochs: each sample once, and no other (L1)."""
        stream, each = list[int](), self.best.read
        parts = []
        while each is not None:
            parts.append(each.samples)
            each = each.before
        for part in reversed(parts):
            stream += part
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


def endless(loader: PlanLoader) -> Iterator[list[int]]:
    """Yield a loader's batches, epoch after epoch."""
    while True:
        for batch in loader:
            yield batch.tolist()


def _same(states: list[str], group: Group) -> bool:
    """Return whether a group has these states."""
    return states == [each.to_json() for each in group.standings]
