"""What a run through a framework counts: planted faults show."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.runs import results
from tests.runs.frameworks import FRAMEWORKS
from tests.runs.through import KINDS, LEGS, Leg, Steps, run
from tests.runs.through_page import PAGES, blocks, by_stops, waiting, write

EXACT = {"lost": 0, "twice": 0, "uneven": 0, "refused": ""}


def planted(too_far: int = 0, one_step_more: bool = False, ranks: tuple[int, ...] = ()) -> Any:
    """Return what deals the samples out in their order, with a fault."""

    def train(leg: Leg) -> Steps:
        read: int = json.loads(leg.checkpoint.read_text()) if leg.checkpoint else 0
        if ranks and leg.checkpoint and leg.world_size not in ranks:
            raise ValueError("not here")
        steps = []
        each = leg.global_batch // leg.world_size
        while read < leg.samples and len(steps) != leg.steps:
            first = read + leg.rank * each
            steps.append([*range(first, min(first + each, leg.samples))])
            read += leg.global_batch
        if one_step_more and leg.rank and leg.save:
            steps.append([])
        if leg.save and leg.rank == 0:
            leg.save.write_text(json.dumps(read + too_far))
        return steps

    return train


@pytest.mark.parametrize(
    ("train", "same", "other"),
    [
        (planted(), EXACT, EXACT),
        (planted(too_far=24), {**EXACT, "lost": 48}, {**EXACT, "lost": 48}),
        (planted(too_far=-24), {**EXACT, "twice": 48}, {**EXACT, "twice": 48}),
        (planted(one_step_more=True), {**EXACT, "uneven": 2}, {**EXACT, "uneven": 2}),
        (planted(ranks=(4,)), EXACT, {"refused": "ValueError: not here"}),
    ],
)
def test_planted_faults_are_counted(train: Callable[[Leg], Steps], same: Any, other: Any) -> None:
    """What a leg skips or repeats is counted, sample by sample, and so are uneven steps."""
    kinds = ("same", "other")
    assert [same, other] == [run(train, kind, endless=False) for kind in kinds]


@pytest.mark.parametrize("kind", KINDS)
def test_a_loop_without_an_end_takes_an_epoch_s_steps(kind: str) -> None:
    """It is told how many are left; a step that it skips is lost all the same."""
    assert run(planted(), kind, endless=True) == EXACT
    stops = len(LEGS[kind]) - 1
    assert run(planted(too_far=24), kind, endless=True) == {**EXACT, "lost": 24 * stops}


def test_what_stops_cost_is_told_apart() -> None:
    """Repeats without a stop are in brackets; ranks that change are named if they matter."""
    filled = {**EXACT, "twice": 8}
    assert by_stops({"whole": filled, "same": filled, "other": filled}) == (
        "exact (8 read twice in every epoch)"
    )
    lost = {**EXACT, "lost": 3, "twice": 10}
    assert by_stops({"whole": filled, "same": filled, "other": lost}) == (
        "exact; if ranks change, **3 lost, 2 twice** (8 read twice in every epoch)"
    )
    assert (
        by_stops(dict.fromkeys(KINDS, lost))
        == "exact (3 left out and 10 read twice in every epoch)"
    )
    assert by_stops({"whole": EXACT, "same": lost, "other": lost}) == "**3 lost, 10 twice**"
    refused = {"refused": "ValueError: not here"}
    assert by_stops({"whole": EXACT, "same": EXACT, "other": refused}) == (
        "exact; if ranks change, refused"
    )


def test_tables_say_what_was_counted(tmp_path: Path) -> None:
    """Each page has its table between its marks, and nothing else changes; so have the results."""
    lost = {**EXACT, "lost": 3, "twice": 2}
    refused = {"refused": "ValueError: not here"}
    record = {
        "version": "m 1",
        "missing": "",
        "theirs": {"whole": EXACT, "same": refused, "other": lost},
        "recommended": {**dict.fromkeys(KINDS, EXACT), "other": lost},
        "ours": dict.fromkeys(KINDS, EXACT),
    }
    for name in PAGES:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("a\n<!-- through -->\nold\n<!-- /through -->\nb\n")
    write({FRAMEWORKS[0].name: record}, tmp_path)
    for name in PAGES:
        text = (tmp_path / name).read_text()
        assert text.startswith("a\n<!-- through -->\n")
        assert text.endswith("<!-- /through -->\nb\n")
        assert "| refused; if ranks change, **3 lost, 2 twice** | exact; if ranks" in text
        assert "| exact |" in text
        assert "old" not in text
    table, raised = blocks({FRAMEWORKS[0].name: record})
    words = results.text(table)
    assert f"| {FRAMEWORKS[0].theirs} | exact | refused | **3 lost, 2 twice** |" in words
    assert "| exact | exact | **3 lost, 2 twice** |" in words
    assert "| a plan | exact | exact | exact |" in words
    assert "| ValueError: not here |" in results.text(raised)
    assert waiting({FRAMEWORKS[0].name: record}) == [each.name for each in FRAMEWORKS[1:]]


def test_links_and_modules_of_the_table() -> None:
    """Each entry has a page, with the heading that it names, and a module of its own."""
    docs = Path(__file__).parents[2] / "docs"
    for each in FRAMEWORKS:
        page, _, anchor = each.docs.partition("#")
        titles = re.findall("^#+ (.*)$", (docs / page).read_text(), re.MULTILINE)
        assert not anchor or anchor in {title.lower().replace(" ", "-") for title in titles}
        folder = Path(__file__).parent / "frameworks"
        assert (folder / f"{each.module}.py").exists()
    assert len({each.module for each in FRAMEWORKS}) == len(FRAMEWORKS)
