"""The tables of trainers and frameworks: in the results, and in two pages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.measure.fresh import ROOT
from benchmarks.render.tables import refresh
from tests.runs import results
from tests.runs.frameworks import FRAMEWORKS
from tests.runs.results import Block, tabular, text
from tests.runs.row import GLOBAL_BATCH, KINDS, SAMPLES, STEPS, WAYS

Record = dict[str, Any]
SHORT = (
    "without a stop | stopped, as people usually write it | as its documentation recommends "
    "| a plan"
)
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
    """Write what two stops cost a loader: on the same ranks, on others, and in epoch 1.

    What it leaves out or repeats without a stop is in a column of its own.
    """
    whole = way["whole"]
    if whole["refused"]:
        return outcome(whole)
    told = []
    for kind in ("same", "other", "later"):
        record = dict(way.get(kind, way["other"]))
        if not record["refused"]:
            for key in ("lost", "twice"):
                record[key] = max(0, record[key] - whole[key])
        told.append(outcome(record))
    same, other, later = told
    words = same if same == other else f"{same}; if ranks change, {other}"
    return words if later == other else f"{words}; in epoch 1, {later}"


def by_itself(whole: Record) -> str:
    """Write what a loader leaves out or repeats in every epoch, without a stop."""
    if whole["refused"]:
        return "refused"
    parts = ((whole["lost"], "left out"), (whole["twice"], "read twice"))
    return " and ".join(f"{n} {verb}" for n, verb in parts if n) or "each read once"


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
            *(outcome(record[way][kind]) if kind in record[way] else "-" for kind in KINDS),
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
        if kind in record.get(way, {}) and record[way][kind]["refused"]
    ]
    raised = tabular("through | where | raised", refused, "l") if refused else []
    return [
        *tabular(f"through | version | loader | {' | '.join(KINDS.values())}", cells, "l"),
        *raised,
    ]


def trainers(data: dict[str, Record], run: Record) -> list[Block]:
    """Return the table of the page of trainers."""
    cells = [
        (f"[{each.name}]({each.docs.removeprefix('trainers.md')})", *_short(each, record))
        for each, record in rows(data)
    ]
    return [*tabular(f"under | {SHORT}", cells, "l"), caption(data, run)]


def in_short(data: dict[str, Record], run: Record) -> list[Block]:
    """Return the table of README."""
    cells = [
        (f"[{each.name}](docs/{each.docs})", *_short(each, record)) for each, record in rows(data)
    ]
    return [*tabular(f"under | {SHORT}", cells, "l"), caption(data, run)]


def _short(each: Any, record: Record) -> tuple[str, ...]:
    """Return what is read without a stop, and what stops cost in each way of reading."""
    ways = [by_itself(record[way]["whole"]) for way in WAYS if way in record and way != "ours"]
    alone = ways[0] if len({*ways}) == 1 else f"{ways[0]}; as recommended, {ways[1]}"
    usual, recommended, ours = (by_stops(record[way]) if way in record else USUAL for way in WAYS)
    if each.page:
        recommended = f"[{recommended}]({each.page})"
    return alone, usual, recommended, ours


def caption(data: dict[str, Record], run: Record) -> Block:
    """Return the words under a table: what was counted, when, and with which versions."""
    versions = sorted({record["version"] for _, record in rows(data)})
    dates = sorted({record.get("date", run["date"]) for _, record in rows(data)})
    runs = sum(len(record[way]) for _, record in rows(data) for way in WAYS if way in record)
    later = [each.name for each, record in rows(data) if "later" in record["theirs"]]
    told = "".join(f" In epoch 1, too: {', '.join(later)}." for _ in later[:1])
    drawn = results.read("torture")["runs"][0]["blocks"][0]["rows"]
    ours, count, _, _, same, _, _, other, _ = drawn[0]
    days = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    return (
        f"{runs} runs, {days}. Each reads an epoch to its end, the first "
        f"but where a row says second: {SAMPLES['finite']:,} samples "
        f"({SAMPLES['endless']:,} where a loop has no end) in global batches of {GLOBAL_BATCH}, "
        f"stopped after {STEPS[0]} steps and after {STEPS[1]} more.{told} "
        f"With {', '.join(versions)}. Of {count} drawn histories, {ours.partition(' ')[2]} refuses "
        f"{same} where nothing changes and {other} where something does, as steps are too small to "
        "give every rank a sample; it loses and repeats none."
    )


PAGES = {"docs/trainers.md": trainers, "README.md": in_short}


def write(data: dict[str, Record], run: Record, root: Path = ROOT) -> None:
    """Bring the pages up to date."""
    for name, table in PAGES.items():
        refresh(root / name, "through", ["\n\n".join(text(block) for block in table(data, run))])
