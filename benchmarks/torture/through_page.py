"""The tables of trainers and frameworks, on three pages: all numbers in them are of one run."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Any

from benchmarks.contenders.frameworks import FRAMEWORKS
from benchmarks.measure.fresh import ROOT
from benchmarks.render.writer import markdown
from benchmarks.torture.through import GLOBAL_BATCH, KINDS, LEGS, SAMPLES, STEPS

Record = dict[str, Any]
BLOCKS = ("through", "live")
"""What pages have between marks, each of a run of its own."""
WORLDS = ", ".join(map(str, LEGS["other"][:-1])) + f" and {LEGS['other'][-1]}"
CHANGED = f"its own loader on {WORLDS} ranks | a plan"


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


def torture(data: dict[str, Record]) -> list[str]:
    """Return the table of the torture page."""
    cells = [
        (
            f"[{each.name}]({each.docs})",
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
    raised = markdown("through | where | raised", refused, "l") if refused else []
    first, second = (step * GLOBAL_BATCH for step in (STEPS[0], sum(STEPS)))
    return [
        *textwrap.wrap(
            f"An epoch of {SAMPLES['finite']:,} samples ({SAMPLES['endless']:,} where a loop has "
            f"no end) in steps of {GLOBAL_BATCH} on any ranks, stopped after {first} and {second} "
            "samples. Loops and checkpoints are the trainer's or framework's, and each rank is a "
            "process. What its own loader drops at an epoch's end, or repeats there to fill a "
            "step, is counted too.",
            width=100,
        ),
        "",
        *markdown(header, cells, "l"),
        *raised,
    ]


def trainers(data: dict[str, Record]) -> list[str]:
    """Return the table of the page of trainers: what to write, and what resumes."""
    cells = [
        (
            f"[{each.name}]({each.docs.removeprefix('trainers.md')})",
            each.write,
            each.resumes,
            *_changed(record),
        )
        for each, record in rows(data)
    ]
    return markdown(f"under | write | resume, on which ranks | {CHANGED}", cells, "l")


def in_short(data: dict[str, Record]) -> list[str]:
    """Return the table of README."""
    cells = [
        (f"[{each.name}](docs/{each.docs.partition('#')[0]})", *_changed(record))
        for each, record in rows(data)
    ]
    return markdown(f"under | {CHANGED}", cells, "l")


def _changed(record: Record) -> tuple[str, str]:
    """Return what a run whose ranks change came to."""
    return outcome(record["theirs"]["other"]), outcome(record["ours"]["other"])


PAGES = {
    "docs/torture.md": torture,
    "docs/trainers.md": trainers,
    "README.md": in_short,
}


def marks(name: str) -> list[str]:
    """Return the lines between which a page has the tables of a run."""
    return [f"<!-- {name} -->", f"<!-- /{name} -->"]


def _block(name: str) -> re.Pattern[str]:
    first, last = marks(name)
    return re.compile(rf"({first}\n).*?({last}\n)", re.DOTALL)


def put(text: str, lines: list[str], name: str = "through") -> str:
    """Put lines between a page's marks."""
    if not _block(name).search(text):
        raise ValueError(f"a page lost its marks, {' and '.join(marks(name))}")
    block = "\n".join(lines).rstrip("\n")
    return _block(name).sub(lambda found: f"{found[1]}{block}\n{found[2]}", text)


def kept(text: str, page: Path) -> str:
    """Return a page's new text with the lines that stand between its marks now."""
    for name in BLOCKS:
        block = _block(name).search(page.read_text()) if page.exists() else None
        if block:
            text = _block(name).sub(lambda _: block[0], text)  # noqa: B023
    return text


def write(data: dict[str, Record], root: Path = ROOT) -> None:
    """Bring all pages up to date."""
    for name, table in PAGES.items():
        page = root / name
        page.write_text(put(page.read_text(), table(data)))
