"""The tables of trainers and frameworks: in the results, and in two pages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.contenders.frameworks import FRAMEWORKS
from benchmarks.measure.fresh import ROOT
from benchmarks.render.page import Block, text
from benchmarks.render.writer import refresh, tabular
from benchmarks.torture.through import GLOBAL_BATCH, KINDS, LEGS, SAMPLES, STEPS

Record = dict[str, Any]
WORLDS = ", ".join(map(str, LEGS["other"][:-1])) + f" and {LEGS['other'][-1]}"
SHORT = f"its own loader on {LEGS['same'][0]} ranks | on {WORLDS} ranks | a plan on {WORLDS}"


def outcome(record: Record) -> str:
    """Write what a run came to."""
    if record["refused"]:
        return "refused"
    if not record["lost"] and not record["twice"]:
        return "exact" if not record["uneven"] else "exact, uneven steps"
    return f"**{record['lost']} lost, {record['twice']} twice**"


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
    f"in steps of {GLOBAL_BATCH} on any ranks, stopped after {_FIRST} and {_SECOND} samples. Loops "
    "and checkpoints are the trainer's or framework's, and each rank is a process. What its own "
    "loader drops at an epoch's end, or repeats there to fill a step, is counted too."
)


def blocks(data: dict[str, Record]) -> list[Block]:
    """Return the blocks of the results."""
    cells = [
        (
            f"[{each.name}](../../docs/{each.docs})",
            record["version"],
            each.theirs,
            *(outcome(record["theirs"][kind]) for kind in KINDS),
            *(outcome(record["ours"][kind]) for kind in KINDS),
        )
        for each, record in rows(data)
    ]
    words = " | ".join(f"{whose}, {KINDS[kind]}" for whose in ("theirs", "ours") for kind in KINDS)
    header = f"through | version | its own loader | {words}"
    refused = [
        (each.name, KINDS[kind], record[whose][kind]["refused"].replace("|", "\\|"))
        for each, record in rows(data)
        for whose in ("theirs", "ours")
        for kind in KINDS
        if record[whose][kind]["refused"]
    ]
    raised = tabular("through | where | raised", refused, "l") if refused else []
    return [*tabular(header, cells, "l"), *raised]


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


def _short(record: Record) -> tuple[str, str, str]:
    """Return what a run came to by its own loader, and by a plan."""
    theirs = record["theirs"]
    return outcome(theirs["same"]), outcome(theirs["other"]), outcome(record["ours"]["other"])


PAGES = {"docs/trainers.md": trainers, "README.md": in_short}


def write(data: dict[str, Record], root: Path = ROOT) -> None:
    """Bring the pages up to date."""
    for name, table in PAGES.items():
        refresh(root / name, "through", [text(block) for block in table(data)])
