"""The tables of trainers and frameworks: in the results, and in two pages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.measure.fresh import ROOT
from benchmarks.render.tables import refresh
from tests.runs.frameworks import FRAMEWORKS
from tests.runs.results import Block, tabular, text
from tests.runs.through import GLOBAL_BATCH, KINDS, SAMPLES, STEPS, WAYS

Record = dict[str, Any]
SHORT = "as people usually write it | as its documentation recommends | a plan"
USUAL = "the same"
"""What a cell says where nothing else is recommended than what is usual."""


def outcome(record: Record) -> str:
    """Write what a run came to."""
    if record["refused"]:
        return "refused"
    if not record["lost"] and not record["twice"]:
        return "exact" if not record["uneven"] else "exact, uneven steps"
    return f"**{record['lost']} lost, {record['twice']} twice**"


def by_stops(way: dict[str, Record]) -> str:
    """Write what two stops cost a loader: on the same ranks, and on fewer, if that differs.

    What it loses or repeats without a stop is named apart, as no resume is to blame for it.
    """
    whole = way["whole"]
    if whole["refused"]:
        return outcome(whole)
    told = []
    for kind in ("same", "other"):
        record = dict(way[kind])
        if not record["refused"]:
            for key in ("lost", "twice"):
                record[key] = max(0, record[key] - whole[key])
        told.append(outcome(record))
    same, other = told
    words = same if same == other else f"{same}; if ranks change, {other}"
    if whole["lost"] or whole["twice"]:
        parts = ((whole["lost"], "left out"), (whole["twice"], "read twice"))
        words += f" ({' and '.join(f'{n} {verb}' for n, verb in parts if n)} in every epoch)"
    return words


def rows(data: dict[str, Record]) -> list[tuple[Any, Record]]:
    """Return those that ran, in the table's order."""
    return [(each, data[each.name]) for each in FRAMEWORKS if each.name in data]


def waiting(data: dict[str, Record]) -> list[str]:
    """Return the names of those that did not run, without which no table is whole."""
    return [each.name for each in FRAMEWORKS if each.name not in data]


TITLE = "Stops and resumes through trainers"
_FIRST, _SECOND = (step * GLOBAL_BATCH for step in (STEPS[0], sum(STEPS)))
WORDS = (
    f"An epoch of {SAMPLES['finite']:,} samples ({SAMPLES['endless']:,} where a loop has no end) "
    f"in steps of {GLOBAL_BATCH} on any ranks, never stopped, or stopped after {_FIRST} and "
    f"{_SECOND} samples. Loops and checkpoints are the trainer's or framework's, and each rank is "
    "a process. What a loader drops at an epoch's end, or repeats there to fill a step, is counted "
    "too."
)


def blocks(data: dict[str, Record]) -> list[Block]:
    """Return the blocks of the results."""
    cells = [
        (
            f"[{each.name}](../../docs/{each.docs})",
            record["version"],
            {"theirs": each.theirs, "recommended": each.recommended, "ours": "a plan"}[way],
            *(outcome(record[way][kind]) for kind in KINDS),
        )
        for each, record in rows(data)
        for way in WAYS
        if way in record
    ]
    refused = [
        (each.name, KINDS[kind], record[way][kind]["refused"].replace("|", "\\|"))
        for each, record in rows(data)
        for way in WAYS
        for kind in KINDS
        if way in record and record[way][kind]["refused"]
    ]
    raised = tabular("through | where | raised", refused, "l") if refused else []
    return [
        *tabular(f"through | version | loader | {' | '.join(KINDS.values())}", cells, "l"),
        *raised,
    ]


def trainers(data: dict[str, Record]) -> list[Block]:
    """Return the table of the page of trainers."""
    cells = [
        (f"[{each.name}]({each.docs.removeprefix('trainers.md')})", *_short(record))
        for each, record in rows(data)
    ]
    return tabular(f"under | {SHORT}", cells, "l")


def in_short(data: dict[str, Record]) -> list[Block]:
    """Return the table of README."""
    cells = [(f"[{each.name}](docs/{each.docs})", *_short(record)) for each, record in rows(data)]
    return tabular(f"under | {SHORT}", cells, "l")


def _short(record: Record) -> tuple[str, ...]:
    """Return what stops cost in each way of reading."""
    return tuple(by_stops(record[way]) if way in record else USUAL for way in WAYS)


PAGES = {"docs/trainers.md": trainers, "README.md": in_short}


def write(data: dict[str, Record], root: Path = ROOT) -> None:
    """Bring the pages up to date."""
    for name, table in PAGES.items():
        refresh(root / name, "through", [text(block) for block in table(data)])
