"""Counts of loaders, frameworks and groups are right: planted faults show."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from inspect import getsource
from pathlib import Path
from typing import Any

import pytest

from benchmarks.measure.fresh import ROOT
from tests.histories.stories import Given, Story
from tests.histories.stories import run as run_histories
from tests.runs import page, results, through_page
from tests.runs.frameworks import FRAMEWORKS
from tests.runs.groups import live
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
from tests.runs.loaders import LOADERS, Entry, drops_batches, nothing
from tests.runs.results import text
from tests.runs.row import EXACT, LEGS, Steps, run
from tests.runs.row import KINDS as KINDS_THROUGH
from tests.runs.row import Leg as LegThrough
from tests.runs.running import Place, Policy, Saved, play
from tests.runs.running import counted as counted_of
from tests.runs.through_page import by_itself, by_stops

pytestmark = pytest.mark.torture

# --- loaders that get drawn histories

TWO = History(0, False, NOTHING, 100, (Leg(2, 5, 0, 4), Leg(2, 5, 0)))


class Planted:
    """Deals the samples out in their order, with a fault; its state is how many were read."""

    def __init__(
        self,
        place: Place,
        saved: Saved | None,
        late: int = 0,  # steps that it does not read after a resume, or reads again
        refuses: bool = False,
        drops: bool = False,  # what does not fill a batch on every rank
    ) -> None:
        if refuses and saved:
            raise ValueError("not here")
        self.place, self.drops = place, drops
        self.step = place.world * place.batch
        self.late = late * self.step
        self.epoch_of_start = saved.epoch if saved else 0
        self.start = saved.state(place.rank) if saved and not saved.after_pass else 0
        self.read = self.start

    def batches(self, epoch: int) -> Iterator[list[int]]:
        """Yield the rank's part of each step."""
        place = self.place
        self.read = self.start if epoch == self.epoch_of_start else 0
        while self.read + self.drops * (self.step - 1) < place.n:
            first = self.read + place.rank * place.batch
            self.read += self.step
            yield [*range(first, min(first + place.batch, place.n))]

    def state(self) -> int:
        """Return how many samples were read, by all ranks."""
        return self.read + self.late


def tally(dealt: History = TWO, policy: Policy = nothing, **fault: Any) -> dict[str, Any]:
    """Return the counts of one history."""
    return counted_of(dealt, play(partial(Planted, **fault), dealt, "", forked=False), policy)


def test_planted_faults_of_loaders_are_counted() -> None:
    """A step skipped at a resume is ten samples lost, a step repeated ten read twice.

    A history ends at a refusal, and what it had not read is not lost.
    """
    seen = [tally(), tally(late=1), tally(late=-1)]
    assert [(0, 0, 1), (10, 0, 0), (0, 10, 0)] == [
        (x["lost"], x["twice"], x["exact"]) for x in seen
    ]
    assert [200, 200, 200] == [x["samples"] for x in seen]
    refused = tally(refuses=True)
    counts = [refused[name] for name in ("refused", "exact", "lost", "twice", "samples")]
    assert [1, 0, 0, 0, 40] == counts
    assert {"ValueError: not here": 1} == refused["reasons"]


def test_what_a_policy_drops_is_counted_apart() -> None:
    """What an uninterrupted run drops too is not lost, unless the loader has no such policy."""
    dealt = History(0, False, NOTHING, 97, (Leg(2, 5, 0, 4), Leg(2, 5, 0)))
    for policy, counts in ((drops_batches, (14, 0)), (nothing, (0, 14))):
        seen = tally(dealt, policy, drops=True)
        assert counts == (seen["dropped"], seen["lost"])


def test_a_stop_may_come_after_a_pass() -> None:
    """The loop goes on with the next epoch then."""
    dealt = History(0, False, ANYTHING, 100, (Leg(2, 5, 0, 1, True), Leg(3, 7, 0)))
    seen = tally(dealt)
    assert (0, 0, 1) == (seen["lost"], seen["twice"], seen["exact"])


def test_ranks_of_processes_are_those_of_one_process() -> None:
    """A history of forked ranks reads what one in a single process reads."""
    one, other = (play(Planted, TWO, "", forked=forked) for forked in (False, True))
    by_leg = [[[*map(sorted, ran.reads)] for ran in rans] for rans in (one, other)]
    assert by_leg[0] == by_leg[1]
    assert [""] * 4 == [ran.refused for ran in (*one, *other)]


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
    given = Given(histories=40)
    with given.stack:
        num_wrong, record = run_histories(entry.name, entry.live, given)
    sums = page.total(record, [*KINDS])
    assert (0, 0, 0) == (num_wrong, sums["lost"], sums["twice"])
    assert sums["exact"] > 30
    told = [text(block) for block in page.blocks({entry.name: {"version": "0", **record}})]
    assert f"| {entry.name} | 40 | 0 | 0 |" in told[0]


# --- frameworks, whose runs are stopped twice


def dealt(leg: LegThrough, too_far: int = 0, one_step_more: bool = False, ranks: Any = ()) -> Steps:
    """Deal the samples out in their order, with a fault: a state that is wrong, a step too many."""
    read = int(leg.checkpoint.read_text()) if leg.checkpoint else 0
    if ranks and leg.checkpoint and leg.world_size not in ranks:
        raise ValueError("not here")
    steps, each = [], leg.global_batch // leg.world_size
    while read < leg.samples and len(steps) != leg.steps:
        first = read + leg.rank * each
        steps.append([*range(first, min(first + each, leg.samples))])
        read += leg.global_batch
    if one_step_more and leg.rank and leg.save:
        steps.append([])
    if leg.save and leg.rank == 0:
        leg.save.write_text(str(read + too_far))
    return steps


@pytest.mark.parametrize(
    ("train", "same", "other"),
    [
        (dealt, EXACT, EXACT),
        (partial(dealt, too_far=24), {**EXACT, "lost": 48}, {**EXACT, "lost": 48}),
        (partial(dealt, too_far=-24), {**EXACT, "twice": 48}, {**EXACT, "twice": 48}),
        (partial(dealt, one_step_more=True), {**EXACT, "uneven": 2}, {**EXACT, "uneven": 2}),
        (partial(dealt, ranks=(4,)), EXACT, {"refused": "ValueError: not here"}),
    ],
)
def test_planted_faults_of_frameworks_are_counted(train: Any, same: Any, other: Any) -> None:
    """What a leg skips or repeats is counted, sample by sample, and so are uneven steps."""
    kinds = ("same", "other")
    assert [same, other] == [run(train, kind, endless=False) for kind in kinds]


@pytest.mark.parametrize("kind", KINDS_THROUGH)
def test_a_loop_without_an_end_takes_an_epoch_s_steps(kind: str) -> None:
    """It is told how many are left; a step that it skips is lost all the same."""
    assert run(dealt, kind, endless=True) == EXACT
    stops = len(LEGS[kind]) - 1
    assert run(partial(dealt, too_far=24), kind, endless=True) == {**EXACT, "lost": 24 * stops}


def test_a_run_of_epoch_1_begins_with_epoch_0() -> None:
    """Its first leg reads epoch 0 whole, uncounted; those after it go on inside epoch 1."""
    first = LegThrough(0, 4, 11, None, Path("one"), 1000, epoch=1)
    second = replace(first, checkpoint=Path("one"))
    assert [range(2), range(1, 2)] == [leg.epochs for leg in (first, second)]
    assert [42, 0] == [leg.before for leg in (first, second)]
    assert [None, 11] == [first.limit(epoch) for epoch in first.epochs]


def test_what_stops_cost_is_told_apart() -> None:
    """What is left out or repeated without a stop is apart; ranks that change are named."""
    filled = {**EXACT, "twice": 8}
    lost = {**EXACT, "lost": 3, "twice": 10}
    refused = {"refused": "ValueError: not here"}
    for usual, changed, words in [
        (filled, {}, "exact"),
        (filled, {"other": lost, "later": lost}, "exact; if ranks change, **3 lost, 2 twice**"),
        (lost, {}, "exact"),
        (lost, {"whole": EXACT}, "**3 lost, 10 twice**"),
        (EXACT, {"other": refused, "later": refused}, "exact; if ranks change, refused"),
        (EXACT, {"again": lost, "later": lost}, "exact; in epoch 1, **3 lost, 10 twice**"),
    ]:
        assert by_stops(dict.fromkeys(KINDS_THROUGH, usual) | changed) == words
    words = "8 read twice", "3 left out and 10 read twice", "each read once", "refused"
    assert words == tuple(map(by_itself, (filled, lost, EXACT, refused)))


ALONE = f"""
from __future__ import annotations

ENDLESS = False


{getsource(dealt).replace("LegThrough", "Leg")}

def theirs(leg):
    return dealt(leg, too_far=leg.global_batch)
"""


def test_a_row_can_be_run_alone(tmp_path: Path) -> None:
    """`row.py` and a loader's file are enough: what they count is what a run here counts."""
    here = Path(__file__).parent
    (tmp_path / "row.py").write_text((here / "row.py").read_text())
    (tmp_path / "planted.py").write_text(ALONE)
    command = [sys.executable, "-I", "row.py", "planted.py"]
    said = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
    lost = {**EXACT, "lost": 48}
    assert said.stdout.splitlines() == [
        f"theirs, {KINDS_THROUGH['whole']}: {EXACT}",
        *(f"theirs, {KINDS_THROUGH[kind]}: {lost}" for kind in KINDS_THROUGH if kind != "whole"),
    ]


def test_each_trainer_of_the_table_has_code_of_its_own() -> None:
    """No two entries count what the same functions read."""
    assert len({each.variant + each.module for each in FRAMEWORKS}) == len(FRAMEWORKS)


# --- groups that come and go


def lines(group: int) -> list[list[Any]]:
    """Return what a group writes that reads its share of each step, in the samples' order."""
    written: list[list[Any]] = [["ready"]]
    for step in range(live.STEPS):
        first = (step * live.GROUPS + group) * live.BATCH
        rows = list(range(first, first + live.BATCH))
        written += [["read", 1, step, live.GROUPS, group, rows], ["counts", 1, step]]
    return [*written, ["done"]]


def counted(folder: Path, *groups: list[list[Any]]) -> tuple[int, int]:
    """Return what is lost and read twice, by the logs of groups."""
    for group, written in enumerate(groups):
        said = "".join(f"{json.dumps(line)}\n" for line in written)
        Path(folder, f"g{group}.1.log").write_text(said)
    counts = live.count(live.Logs(folder))
    return counts["lost"], counts["twice"]


def test_planted_faults_of_groups_are_counted(tmp_path: Path) -> None:
    """Each is BATCH samples: a share that is missing, one that is read again, and a void step.

    A step that failed, and was tried again in the same quorum, is read by its last try.
    """
    batch, steps = live.BATCH, live.STEPS
    whole = [lines(group) for group in range(live.GROUPS)]
    assert (0, 0) == counted(tmp_path, *whole)
    first = next(line for line in whole[2] if line[0] == "read")
    assert (batch, 0) == counted(tmp_path, *whole[:2], [x for x in whole[2] if x is not first])
    again = [["read", 1, steps, 1, 0, first[-1]], ["counts", 1, steps]]
    assert (0, batch) == counted(tmp_path, [*whole[0], *again], *whole[1:])
    failed = [["read", 1, steps, 1, 0, first[-1]], ["read", 2, steps, 1, 0, first[-1]]]
    assert (0, 0) == counted(tmp_path, [*whole[0], *failed], *whole[1:])
    void = [["read", 2, 3, 1, 0, list(range(60))], ["counts", 2, 3]]  # in place of the fourth step
    assert (3 * batch, 60) == counted(tmp_path, [*whole[0], *void], *whole[1:])
    tried = ["read", 1, 0, live.GROUPS, 0, [*range(live.SAMPLES, live.SAMPLES + batch)]]
    assert (0, 0) == counted(tmp_path, [tried, *whole[0]], *whole[1:])


def test_ours_that_lose_samples_are_told_of() -> None:
    """Their histories are wrong, and keep nothing; what a rival's lose is only counted."""
    lost = {"lost": 3, "twice": 2, "worlds": {}}
    for each in live.LOADERS:
        each.tell(story := Story(1), "goes", lost)
        assert ({"counts": {"goes": lost}}, each.ours) == (story.record, bool(story.wrong))


# --- what is kept


def test_pages_and_results_are_what_the_records_say(tmp_path: Path) -> None:
    """The tables of the pages, and the blocks of the results, are those of the kept records."""
    run = results.read("through")["runs"][0]
    assert through_page.blocks(run["records"]) == run["blocks"]
    (tmp_path / "docs").mkdir()
    for name in through_page.PAGES:
        before = (ROOT / name).read_text()
        (tmp_path / name).write_text(
            re.sub("(<!-- through -->\n).*?\n(<!--)", r"\1old\n\2", before, flags=re.DOTALL)
        )
    through_page.write(run["records"], run, tmp_path)
    for name in through_page.PAGES:
        assert (ROOT / name).read_text() == (tmp_path / name).read_text()
    kept = results.read("live")
    assert live.blocks(kept["runs"][0]["records"]) == kept["runs"][0]["blocks"]
    results.keep("live", kept["title"], kept["words"], kept["runs"][0], tmp_path)
    assert (results.RESULTS / "live.json").read_text() == (tmp_path / "live.json").read_text()
    shown = results.markdown((tmp_path / "live.json").read_text())
    assert shown.startswith(f"# {kept['title']}\n\n{kept['words']}\n\n| loader | version |")
