"""What a run through a framework counts: planted faults show."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from inspect import getsource
from pathlib import Path
from typing import Any

import pytest
import torch.distributed  # noqa: F401 (as else each rank would, which is forked from here)

from tests.runs import results
from tests.runs.frameworks import FRAMEWORKS
from tests.runs.row import KINDS, LEGS, Leg, Steps, run
from tests.runs.through_page import (
    IN_README,
    PAGES,
    blocks,
    by_itself,
    by_stops,
    partly,
    waiting,
    write,
)

pytestmark = pytest.mark.torture

EXACT = {"lost": 0, "twice": 0, "uneven": 0, "refused": ""}


def dealt(leg: Leg, too_far: int = 0, one_step_more: bool = False, ranks: Any = ()) -> Steps:
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


def planted(**fault: Any) -> Callable[[Leg], Steps]:
    """Return what deals the samples out with a fault."""
    return partial(dealt, **fault)


ALONE = f"""
from __future__ import annotations

ENDLESS = False


{getsource(dealt)}

def theirs(leg):
    return dealt(leg, too_far=leg.global_batch)
"""


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


def test_a_run_of_epoch_1_begins_with_epoch_0() -> None:
    """Its first leg reads epoch 0 whole, uncounted; those after it go on inside epoch 1."""
    first = Leg(0, 4, 11, None, Path("one"), 1000, epoch=1)
    second = replace(first, checkpoint=Path("one"))
    assert [range(2), range(1, 2)] == [leg.epochs for leg in (first, second)]
    assert [42, 0] == [leg.before for leg in (first, second)]
    assert [None, 11] == [first.limit(epoch) for epoch in first.epochs]


def test_what_stops_cost_is_told_apart() -> None:
    """What is left out or repeated without a stop is apart; ranks that change are named."""
    filled = {**EXACT, "twice": 8}
    assert by_stops(dict.fromkeys(KINDS, filled)) == "exact"
    assert by_itself(filled) == "8 read twice"
    lost = {**EXACT, "lost": 3, "twice": 10}
    assert by_stops(dict.fromkeys(KINDS, filled) | {"other": lost, "later": lost}) == (
        "exact; if ranks change, **3 lost, 2 twice**"
    )
    assert by_stops(dict.fromkeys(KINDS, lost)) == "exact"
    assert by_itself(lost) == "3 left out and 10 read twice"
    assert by_itself(EXACT) == "each read once"
    assert by_stops(dict.fromkeys(KINDS, lost) | {"whole": EXACT}) == "**3 lost, 10 twice**"
    refused = {"refused": "ValueError: not here"}
    assert by_stops(dict.fromkeys(KINDS, EXACT) | {"other": refused, "later": refused}) == (
        "exact; if ranks change, refused"
    )
    assert by_itself(refused) == "refused"
    assert by_stops(dict.fromkeys(KINDS, EXACT) | {"again": lost, "later": lost}) == (
        "exact; in epoch 1, **3 lost, 10 twice**"
    )


def test_tables_say_what_was_counted(tmp_path: Path) -> None:
    """Each page has its table between its marks, and nothing else changes; so have the results."""
    lost = {**EXACT, "lost": 3, "twice": 2}
    refused = {"refused": "ValueError: not here"}
    (first, *_), filled = (
        (each for each in FRAMEWORKS if each.name in IN_README),
        {**EXACT, "twice": 1},
    )
    record = {
        "version": "m 1",
        "date": "2026-01-02",
        "missing": "",
        "theirs": dict.fromkeys(KINDS, refused) | {"whole": EXACT, "other": lost, "later": lost},
        "recommended": dict.fromkeys(KINDS, filled) | {"other": lost, "later": lost},
        "ours": dict.fromkeys(KINDS, EXACT),
    }
    for name in PAGES:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("a\n<!-- through -->\nold\n<!-- /through -->\nb\n")
    write({first.name: record}, {"date": "2026-01-03"}, tmp_path)
    for name in PAGES:
        text = (tmp_path / name).read_text()
        assert text.startswith("a\n<!-- through -->\n")
        assert text.endswith("<!-- /through -->\nb\n")
        assert " | refused; if ranks change, **3 lost, 2 twice** | " in text
        assert f"| [exact; if ranks change, **3 lost, 1 twice**]({first.page}) | exact |" in text
        assert "With m 1." in text
        assert "old" not in text
    assert "0 of 1 rows are exact in all of these" in text
    text = (tmp_path / "docs/trainers.md").read_text()
    assert "| each read once; as recommended, 1 read twice | refused; if ranks change, " in text
    assert "15 runs, 2026-01-02: 5 of each loader" in text
    table, raised = blocks({first.name: record})
    words = results.text(table)
    assert f"| {first.theirs} | exact | refused | **3 lost, 2 twice** | refused |" in words
    assert "| a plan | exact | exact | exact | exact | exact |" in words
    assert "| ValueError: not here |" in results.text(raised)
    assert "" == partly({first.name: record})
    shorter = {first.name: record | {"theirs": {"whole": EXACT, "same": EXACT, "other": lost}}}
    assert partly(shorter) == f" Only in epoch 0: {first.name}."
    assert waiting({first.name: record}) == [e.name for e in FRAMEWORKS if e is not first]


def test_a_row_can_be_run_alone(tmp_path: Path) -> None:
    """`row.py` and a loader's file are enough: what they count is what a run here counts."""
    here = Path(__file__).parent
    (tmp_path / "row.py").write_text((here / "row.py").read_text())
    (tmp_path / "planted.py").write_text(ALONE)
    command = [sys.executable, "-I", "row.py", "planted.py"]
    said = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
    lost = {**EXACT, "lost": 48}
    assert said.stdout.splitlines() == [
        f"theirs, {KINDS['whole']}: {EXACT}",
        *(f"theirs, {KINDS[kind]}: {lost}" for kind in KINDS if kind != "whole"),
    ]


def test_links_and_modules_of_the_table() -> None:
    """Each entry has a page, with the heading that it names, and a module of its own."""
    docs = Path(__file__).parents[2] / "docs"
    for each in FRAMEWORKS:
        page, _, anchor = each.docs.partition("#")
        titles = re.findall("^#+ (.*)$", (docs / page).read_text(), re.MULTILINE)
        assert not anchor or anchor in {title.lower().replace(" ", "-") for title in titles}
        folder = Path(__file__).parent / "frameworks"
        assert (folder / f"{each.module}.py").exists()
    assert len({each.variant + each.module for each in FRAMEWORKS}) == len(FRAMEWORKS)
