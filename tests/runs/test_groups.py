"""What a run whose groups come and go counts: planted faults show."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.runs import results
from tests.runs.groups.live import (
    BATCH,
    GROUPS,
    KINDS,
    LOADERS,
    SAMPLES,
    STEPS,
    blocks,
    count,
    wrong,
)
from tests.runs.groups.logs import Logs


def lines(group: int) -> list[list[Any]]:
    """Return what a group writes that reads its share of each step, in the samples' order."""
    written: list[list[Any]] = [["ready"]]
    for step in range(STEPS):
        first = (step * GROUPS + group) * BATCH
        rows = list(range(first, first + BATCH))
        written += [["read", 1, step, GROUPS, group, rows], ["counts", 1, step]]
    return [*written, ["done"]]


def counted(folder: Path, *groups: list[list[Any]]) -> tuple[int, int]:
    """Return what is lost and read twice, by the logs of groups."""
    for group, written in enumerate(groups):
        text = "".join(f"{json.dumps(line)}\n" for line in written)
        Path(folder, f"g{group}.1.log").write_text(text)
    counts = count(Logs(folder))
    return counts["lost"], counts["twice"]


def test_planted_faults_are_counted(tmp_path: Path) -> None:
    """Each is BATCH samples: a share that is missing, one that is read again, and a void step."""
    whole = [lines(group) for group in range(GROUPS)]
    assert (0, 0) == counted(tmp_path, *whole)
    first = next(line for line in whole[2] if line[0] == "read")
    assert (BATCH, 0) == counted(tmp_path, *whole[:2], [x for x in whole[2] if x is not first])
    again = [["read", 1, STEPS, 1, 0, first[-1]], ["counts", 1, STEPS]]
    assert (0, BATCH) == counted(tmp_path, [*whole[0], *again], *whole[1:])
    failed = [["read", 1, STEPS, 1, 0, first[-1]], ["read", 2, STEPS, 1, 0, first[-1]]]
    assert (0, 0) == counted(tmp_path, [*whole[0], *failed], *whole[1:])
    void = [["read", 2, 3, 1, 0, list(range(60))], ["counts", 2, 3]]  # in place of the fourth step
    assert (3 * BATCH, 60) == counted(tmp_path, [*whole[0], *void], *whole[1:])


def test_the_last_try_of_a_step_is_the_one_that_counts(tmp_path: Path) -> None:
    """A step that failed, and was tried again in the same quorum, is read by its last try."""
    whole = [lines(group) for group in range(GROUPS)]
    whole[0].insert(1, ["read", 1, 0, GROUPS, 0, [*range(SAMPLES, SAMPLES + BATCH)]])
    assert (0, 0) == counted(tmp_path, *whole)


def test_what_is_kept_becomes_a_page(tmp_path: Path) -> None:
    """A file is of its last run, and its page says what the file says."""
    run = {"instructions": "", "date": "2026-11-24", "command": "count"}
    run["blocks"] = ["## A heading", *results.tabular("who | lost", [("us", 0)])]
    for date in ("2026-11-23", "2026-11-24"):
        results.keep("a", "Title", "Words.", {**run, "date": date}, tmp_path)
    assert {"title": "Title", "words": "Words.", "runs": [run]} == results.read("a", tmp_path)
    page = results.markdown((tmp_path / "a.json").read_text())
    assert page.startswith("# Title\n\nWords.\n\n## A heading\n\n| who | lost |\n| --- | ---: |\n")
    assert "| us | 0 |\n\n## This run\n\n" in page
    assert page.endswith("| date | 2026-11-24 |\n\n```sh\ncount\n```\n")


def test_the_table_says_what_was_counted() -> None:
    """A loader that is missing, or ours that lost something, keeps the table from being written."""
    lost = {"lost": 3, "twice": 2, "worlds": {3: STEPS}}
    exact = {**lost, "lost": 0, "twice": 0}
    records = {
        each.name: {
            "version": "m 1",
            "missing": "",
            "counts": dict.fromkeys(KINDS, exact if each.ours else lost),
        }
        for each in LOADERS
    }
    text = results.text(blocks(records)[0])
    assert text.count("| exact |") + text.count("| **3 lost, 2 twice** |") > len(LOADERS)
    assert [] == wrong(records)
    ours = next(each.name for each in LOADERS if each.ours)
    records[ours]["counts"]["goes"] = lost
    assert [f"{ours}, {KINDS['goes'][0]}: {lost}"] == wrong(records)
    records[ours]["missing"] = "not here"
    assert f"{ours}: not here" in wrong(records)
