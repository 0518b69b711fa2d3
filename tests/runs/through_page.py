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
    "without a stop | stopped, as people usually write it | as its documentation or maintainers "
    "recommend | a plan | drawn histories"
)
USUAL, NO_PAGE = "the same", "no page on resuming found"
"""What a cell says where nothing else is recommended than what is usual, or nothing at all."""
OURS = "indexplan PlanLoader"


def outcome(record: Record) -> str:
    """Write what a run came to."""
    if record["refused"]:
        return "refused"
    if not record["lost"] and not record["twice"]:
        return "exact" if not record["uneven"] else "exact, uneven steps"
    return f"**{record['lost']} lost, {record['twice']} twice**"


def by_stops(way: dict[str, Record]) -> str:
    """Write what two stops cost a loader: on the same ranks and on others, in epochs 0 and 1.

    What it leaves out or repeats without a stop is in a column of its own.
    """
    whole = way["whole"]
    if whole["refused"]:
        return outcome(whole)

    def told(kind: str) -> str:
        record = dict(way[kind])
        if not record["refused"]:
            for key in ("lost", "twice"):
                record[key] = max(0, record[key] - whole[key])
        return outcome(record)

    words = []
    for kinds in (("same", "other"), ("again", "later")):
        same, other = map(told, kinds)
        words.append(same if same == other else f"{same}; if ranks change, {other}")
    return words[0] if words[0] == words[-1] else f"{words[0]}; in epoch 1, {words[-1]}"


def by_itself(whole: Record) -> str:
    """Write what a loader leaves out or repeats in every epoch, without a stop."""
    if whole["refused"]:
        return "refused"
    parts = ((whole["lost"], "left out"), (whole["twice"], "read twice"))
    return " and ".join(f"{n} {verb}" for n, verb in parts if n) or "each read once"


def rows(data: dict[str, Record]) -> list[tuple[Any, Record]]:
    """Return those that ran, in the table's order."""
    return [(each, data[each.name]) for each in FRAMEWORKS if each.name in data]


NAME = "through"
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
    return [*tabular(f"under | {SHORT}", [alone(""), *cells], "l"), caption(data, run)]


IN_README = ("Lightning", "Accelerate", "StatefulDataLoader")
"""The most widely used of those that lose or repeat samples."""


def in_short(data: dict[str, Record], _: Record) -> list[Block]:
    """Return the table of README: three that lose samples, and how many don't."""
    ran = rows(data)
    exact = sum(by_stops(record["theirs"]) == "exact" for _, record in ran)
    first = (
        f"Each trainer reads epochs of {SAMPLES['finite']:,} samples, is stopped twice within an "
        "epoch, and resumes from its own checkpoint, on 4 ranks, or on 4, then 3, then 2. As "
        f"people usually write them, {exact} of {len(ran)} rows are exact in all of these. Three "
        "of the others:"
    )
    few = {each.name: (each, record) for each, record in ran if each.name in IN_README}
    cells = [
        (f"[{name}](docs/{each.docs})", *_short(each, record)[1:4])
        for name, (each, record) in few.items()
    ]
    versions = ", ".join(record["version"] for _, record in few.values())
    last = (
        f"With {versions}. [All {len(ran)}](docs/trainers.md#by-trainer), [each "
        "run](benchmarks/results/through.json), and [how to run a row, and what its maintainer may "
        "object](docs/benchmarks.md#stops-and-resumes)."
    )
    head = (
        "stopped, as people usually write it | as its documentation or maintainers recommend | "
        "a plan"
    )
    return [first, *tabular(f"under | {head}", cells, "l"), last]


def drawn(name: str) -> str:
    """Write what drawn histories of stops cost a loader where something changes."""
    table = results.read("torture")["runs"][0]["blocks"][0]["rows"]
    _, count, *_, lost, twice, refused, _ = next(row for row in table if row[0] == name)
    return f"{count}: {lost} lost, {twice} twice, {refused} refused"


def alone(folder: str) -> tuple[str, ...]:
    """Return our own row, of what is read in any loop."""
    return f"[a PlanLoader]({folder}resume.md)", "each read once", "-", "-", "exact", drawn(OURS)


def _short(each: Any, record: Record) -> tuple[str, ...]:
    """Return what is read without a stop, and what stops cost in each way of reading."""
    ways = [by_itself(record[way]["whole"]) for way in WAYS if way in record and way != "ours"]
    alone = ways[0] if len({*ways}) == 1 else f"{ways[0]}; as recommended, {ways[1]}"
    usual, recommended, ours = (by_stops(record[way]) if way in record else USUAL for way in WAYS)
    recommended = f"[{recommended}]({each.page})" if each.page else NO_PAGE
    return alone, usual, recommended, ours, drawn(each.drawn) if each.drawn else "-"


def caption(data: dict[str, Record], run: Record) -> Block:
    """Return the words under a table: what was counted, when, and with which versions."""
    versions = sorted({record["version"] for _, record in rows(data)})
    dates = sorted({record.get("date", run["date"]) for _, record in rows(data)})
    runs = sum(len(record[way]) for _, record in rows(data) for way in WAYS if way in record)
    days = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    return (
        f"{runs} runs, {days}: {len(KINDS)} of each loader, one without a stop, two in each of "
        f"epochs 0 and 1. Each is read to its end: {SAMPLES['finite']:,} samples "
        f"({SAMPLES['endless']:,} where a loop has no end) in global batches of {GLOBAL_BATCH}, "
        f"stopped after {STEPS[0]} steps and after {STEPS[1]} more. With {', '.join(versions)}. "
        "Drawn histories: their number, and of those in which ranks, batches or workers change, "
        "samples lost and read twice per million, and histories refused. A plan refuses where a "
        "step is too small to give every rank a sample. torchdata promises a resume on the same "
        "ranks, and Accelerate on the same ranks and batch size; there, they lose and repeat "
        "nothing in drawn histories. Grain's experimental ElasticIterator, "
        f"{drawn('Grain ElasticIterator')}."
    )


PAGES = {"docs/trainers.md": trainers, "README.md": in_short}


def write(data: dict[str, Record], run: Record, root: Path = ROOT) -> None:
    """Bring the pages up to date."""
    for name, table in PAGES.items():
        refresh(root / name, "through", ["\n\n".join(text(block) for block in table(data, run))])
