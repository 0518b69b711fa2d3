"""Simulated quorums: groups of ranks that are killed, joined, healed and split, as torchft does.

A group has a number of steps and the standing of each of its ranks. In a quorum those groups take
part that are at the most steps, or all, where those behind are given their state first (sync). A
group is given its state as of the step's start, and commits that step with the others (async). A
step may fail for all, or for some groups, which are given the state later. The groups may be split:
two quorums run the same step, neither knows of the other, and one of them is lost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

import indexplan as ip
from tests.live.steps import Read, steps

MOST_GROUPS = 4
FURTHEST_BACK = 5000  # steps that a run may fall back, to its checkpoint


@dataclass
class Group:
    """The processes of one group: how many steps it has committed, and where each stands."""

    step: int
    standings: list[ip.live.Standing]


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
        self.groups = [self._fresh() for _ in range(self.random.randint(1, MOST_GROUPS))]
        self.saved = self.groups[0].standings[0].cursor.to_json(), 0

    def _fresh(self) -> Group:
        return Group(0, [ip.live.Standing(self.plan) for _ in range(self.inner)])

    def _read(self, step: int) -> list[Read]:
        """Return what a step reads, by lists; those that nobody can ask for again are dropped."""
        while step >= (known := self._first + len(self._truth)):
            self._truth[known] = next(self._steps)
            if len(self._truth) > FURTHEST_BACK:
                del self._truth[self._first]
                self._first += 1
        return self._truth[step]

    @property
    def step(self) -> int:
        """The most steps that a group has committed."""
        return max(group.step for group in self.groups)

    def run(self, num_steps: int) -> None:
        """Run until so many steps are committed."""
        while self.step < num_steps:
            self.change()
            if len(self.groups) > 1 and self.random.random() < 0.02:
                self.split()
            else:
                self.quorum(self.groups)

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
            text, step = self.saved
            cursor = ip.Cursor.from_json(text)
            resumed = [ip.live.Standing(self.plan, cursor) for _ in range(self.inner)]
            self.groups = [Group(step, resumed)]
            self.counts["restarts"] += 1
        elif drawn < 0.1:
            best = max(self.groups, key=lambda group: group.step)
            self.saved = best.standings[0].cursor.to_json(), best.step

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
        source = self.random.choice([group for group in groups if group.step == most])
        state = [standing.to_json() for standing in source.standings]
        if most % 8 == 0:  # equal states after equal steps
            for group in groups:
                assert group.step < most or state == [each.to_json() for each in group.standings]
        if self.sync:
            self._heal(behind, most, state)
        taking = [group for group in groups if group.step == most]
        if self.spares:
            taking = taking[:2]
        world = len(taking) * self.inner
        got: list[list[int]] = []
        for place, group in enumerate(taking):
            for number, standing in enumerate(group.standings):
                dealt = standing.deal(world, place * self.inner + number)
                assert len(dealt), "an empty batch"
                got.append(dealt.tolist())
        for group in groups:  # those without a share run the same code
            if group not in taking:
                for standing in group.standings:
                    standing.deal(world, 0)
        assert [sample for _, sample in self._read(most)] == sum(got, [])
        failed = self.random.random()
        if failed < 0.1:
            self.counts["failed"] += 1
            return
        if not self.sync:
            self._heal(behind, most, state)
        for group in groups:
            if failed < 0.2 and group is not source and self.random.random() < 0.5:
                self.counts["failed for some"] += 1
                continue
            for standing in group.standings:
                standing.commit()
            group.step += 1
        self.counts["commits"] += 1

    def _heal(self, behind: list[Group], step: int, state: list[str]) -> None:
        for group in behind:
            for standing, text in zip(group.standings, state, strict=True):
                standing.load_json(text)
            group.step = step
            self.counts["heals"] += 1
