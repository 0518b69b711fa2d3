"""The counts are right: planted faults show, and our loaders lose nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.runs import page
from tests.runs.counting import Tally, torture
from tests.runs.histories import (
    ANYTHING,
    KINDS,
    NOTHING,
    WORKERS,
    WORLD,
    History,
    Leg,
    history,
)
from tests.runs.loaders import LOADERS, Entry, drops_batches
from tests.runs.results import text
from tests.runs.running import Place, Saved, play

pytestmark = pytest.mark.torture

PLAIN = Entry("planted", "", "", "", "", "")
TWO = History(0, False, NOTHING, 100, (Leg(2, 5, 0, 4), Leg(2, 5, 0)))


class Exact:
    """Deals the samples out in their order; its state is how many were read."""

    late = 0  # steps that it does not read after a resume, or reads again

    def __init__(self, place: Place, saved: Saved | None) -> None:
        self.place = place
        self.epoch_of_start = saved.epoch if saved else 0
        self.start = saved.state(place.rank) if saved and not saved.after_pass else 0
        self.read = self.start

    def batches(self, epoch: int) -> Iterator[list[int]]:
        """Yield the rank's part of each step."""
        place, step = self.place, self.place.world * self.place.batch
        self.read = self.start if epoch == self.epoch_of_start else 0
        while self.read < place.n:
            first = self.read + place.rank * place.batch
            numbers = list(range(first, min(first + place.batch, place.n)))
            self.read += step
            yield numbers

    def state(self) -> int:
        """Return how many samples were read, by all ranks."""
        return self.read + self.late * self.place.world * self.place.batch


class Skips(Exact):
    """Goes on a step too late."""

    late = 1


class Repeats(Exact):
    """Goes on a step too early."""

    late = -1


class Refuses(Exact):
    """Refuses to resume."""

    def __init__(self, place: Place, saved: Saved | None) -> None:
        if saved:
            raise ValueError("not here")
        super().__init__(place, saved)


class Drops(Exact):
    """Drops what does not fill a batch on every rank."""

    def batches(self, epoch: int) -> Iterator[list[int]]:
        """Stop before a batch that is not full."""
        step = self.place.world * self.place.batch
        for numbers in super().batches(epoch):
            if self.read > self.place.n:
                self.read -= step
                return
            yield numbers


def tally(loader: Any, dealt: History, entry: Entry = PLAIN) -> Tally:
    """Return the counts of one history."""
    result = Tally()
    result.add(dealt, play(loader, dealt, "", forked=False), entry)
    return result


def test_planted_faults_are_counted() -> None:
    """A step skipped at a resume is ten samples lost, a step repeated ten read twice."""
    seen = [tally(loader, TWO) for loader in (Exact, Skips, Repeats)]
    assert [(0, 0, 1), (10, 0, 0), (0, 10, 0)] == [(x.lost, x.twice, x.exact) for x in seen]
    assert [200, 200, 200] == [x.samples for x in seen]


def test_a_refusal_is_not_a_loss() -> None:
    """A history ends at a refusal, and what it had not read is not lost."""
    seen = tally(Refuses, TWO)
    assert (1, 0, 0, 0, 40) == (seen.refused, seen.exact, seen.lost, seen.twice, seen.samples)
    assert {"ValueError: not here": 1} == seen.reasons


def test_what_a_policy_drops_is_counted_apart() -> None:
    """What an uninterrupted run drops too is not lost, unless the loader has no such policy."""
    dealt = History(0, False, NOTHING, 97, (Leg(2, 5, 0, 4), Leg(2, 5, 0)))
    policy = Entry("planted", "", "", "", "", "", drops_batches)
    assert (14, 0) == ((seen := tally(Drops, dealt, policy)).dropped, seen.lost)
    assert (0, 14) == ((seen := tally(Drops, dealt)).dropped, seen.lost)


def test_a_stop_may_come_after_a_pass() -> None:
    """The loop goes on with the next epoch then."""
    dealt = History(0, False, ANYTHING, 100, (Leg(2, 5, 0, 1, True), Leg(3, 7, 0)))
    assert (0, 0, 1) == ((seen := tally(Exact, dealt)).lost, seen.twice, seen.exact)


def test_ranks_of_processes_are_those_of_one_process() -> None:
    """A history of forked ranks reads what one in a single process reads."""
    outcomes = [play(Exact, TWO, "", forked=forked) for forked in (False, True)]
    assert outcomes[0].reads.tolist() == outcomes[1].reads.tolist()
    assert ["", ""] == [outcome.refused for outcome in outcomes]


@pytest.mark.parametrize("with_workers", [False, True])
def test_histories_change_what_their_kind_says(with_workers: bool) -> None:
    """Neighbouring legs differ in that, and in nothing else; numbers give the same again."""
    for number in range(300):
        dealt = history(number, with_workers=with_workers)
        assert dealt == history(number, with_workers=with_workers)
        assert dealt.legs[-1].steps is None
        for one, other in zip(dealt.legs, dealt.legs[1:], strict=False):
            steps = one.world * one.batch == other.world * other.batch
            same = one.world == other.world, one.batch == other.batch, one.workers == other.workers
            assert {
                NOTHING: all(same),
                WORKERS: same == (True, True, False),
                WORLD: steps and same[0] is False and same[2],
                ANYTHING: True,
            }[dealt.kind]


@pytest.mark.filterwarnings("ignore")  # of StatefulDataLoader: it calls what torch deprecated
@pytest.mark.parametrize(
    "entry", [each for each in LOADERS if each.ours], ids=lambda each: each.module
)
def test_ours_lose_and_repeat_nothing(entry: Entry) -> None:
    """Of the first histories, none loses a sample or reads one twice, and the page is written."""
    tallies = torture(entry, entry.load(), map(history, range(40)))
    assert [(0, 0)] * len(KINDS) == [(each.lost, each.twice) for each in tallies.values()]
    assert sum(each.exact for each in tallies.values()) > 30
    counts = {kind: each.to_dict() for kind, each in tallies.items()}
    record = {"plain": counts, "with_workers": {}, "version": "0", "missing": ""}
    told = text(page.overview({"loaders": {entry.name: record}})[0])
    assert f"| {entry.name} | 40 | 0 | 0 |" in told
