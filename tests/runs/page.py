"""What loaders lose when a run is stopped and resumed: every number comes from the counts."""

from __future__ import annotations

import statistics
import textwrap
from collections import Counter
from typing import Any

from benchmarks.render.tables import time
from tests.histories.stories import add
from tests.runs.histories import (
    EPOCHS,
    KINDS,
    LARGEST_BATCH,
    LARGEST_WORLD,
    LARGEST_WORLD_WITH_WORKERS,
    MOST_WORKERS,
    NOTHING,
    SIZES,
)
from tests.runs.loaders import LOADERS
from tests.runs.results import Block, tabular
from tests.runs.running import NONE, PATIENCE

Record = dict[str, Any]
WAYS = ("plain", "with_workers")


def total(record: Record, kinds: list[str]) -> Record:
    """Return the sums over some kinds, with and without worker processes."""
    sums: Record = {}
    for each in [NONE, *(record.get(key, {}).get(x, {}) for key in WAYS for x in kinds)]:
        add(sums, each)
    return sums


def per_million(count: int, samples: int) -> str:
    """Write a count of samples per million that were to be read."""
    if not samples:
        return "-"
    return "0" if not count else f"**{count / samples * 1e6:,.0f}**"


def counts(sums: Record) -> tuple[str, ...]:
    """Write what was lost, read twice, and refused."""
    if not sums["histories"]:
        return "-", "-", "-"
    lost, twice = (per_million(sums[name], sums["samples"]) for name in ("lost", "twice"))
    return lost, twice, f"{sums['refused'] / sums['histories']:.1%}" if sums["refused"] else "0"


def rows(data: Record) -> list[tuple[str, Record]]:
    """Return the loaders that ran, in the table's order."""
    return [(entry.name, data[entry.name]) for entry in LOADERS if entry.name in data]


def overview(data: Record) -> list[Block]:
    """Return the table that says it all."""
    others = [kind for kind in KINDS if kind != NOTHING]
    cells = []
    for name, record in rows(data):
        same, changed = total(record, [NOTHING]), total(record, others)
        seconds = same["seconds"] + changed["seconds"]
        cells.append(
            (
                name,
                f"{same['histories'] + changed['histories']:,}",
                *counts(same),
                *counts(changed),
                time(statistics.median(seconds)) if seconds else "-",
            )
        )
    header = (
        "loader | histories | nothing changes: lost | read twice | refused "
        "| something changes: lost | read twice | refused | time to resume, median"
    )
    return tabular(header, cells)


RIGHT, BY_POLICY = "nothing lost or read twice", "nothing but by policy"
GROUPS = (RIGHT, BY_POLICY, f"{RIGHT}, some refused", f"{BY_POLICY}, some refused")
GROUPS += ("all refused", "samples lost or read twice")


def group(sums: Record) -> str:
    """Return what a loader's counts come to."""
    if sums["lost"] or sums["twice"]:
        return GROUPS[-1]
    if sums["refused"] == sums["histories"]:
        return GROUPS[-2]
    right = BY_POLICY if sums["dropped"] or sums["padded"] else RIGHT
    return f"{right}{', some refused' * (sums['refused'] > 0)}"


def in_words(data: Record) -> list[Block]:
    """Return the table of who was right, by what changes."""
    cells = []
    for kind, words in KINDS.items():
        sums = {name: total(record, [kind]) for name, record in rows(data)}
        for each in GROUPS:
            names = [name for name in sums if sums[name]["histories"] and group(sums[name]) == each]
            if names:
                cells.append((words, each, ", ".join(names)))
    return tabular("where | result | loaders", cells, "l")


def of_kind(data: Record, kind: str) -> list[Block]:
    """Return the table of one kind of change."""
    cells = []
    for name, record in rows(data):
        sums = total(record, [kind])
        through = sums["histories"] - sums["refused"]
        cells.append(
            (
                name,
                f"{sums['histories']:,}",
                *counts(sums),
                f"{sums['exact']:,} of {through:,}" if through else "-",
                per_million(sums["dropped"], sums["samples"]).strip("*"),
                per_million(sums["padded"], sums["samples"]).strip("*"),
                f"{sums['uneven']:,}",
            )
        )
    header = (
        "loader | histories | lost | read twice | refused | exact, of those that went through "
        "| dropped by policy | padded by policy | with uneven ranks"
    )
    return [f"### {KINDS[kind][0].upper()}{KINDS[kind][1:]}", *tabular(header, cells)]


def plain(text: str) -> str:
    """Return text that a table's cell can hold."""
    return text.replace("|", "\\|").replace("\n", " ").replace("`", "'").replace("_", "\\_")


def set_up(data: Record) -> list[Block]:
    """Return who took part and how."""
    cells = []
    for entry in LOADERS:
        if entry.name in data:
            address = entry.docs if "://" in entry.docs else f"../../docs/{entry.docs}"
            name = f"[{entry.name}]({address})"
            cells.append((name, data[entry.name]["version"], entry.setup, entry.promises))
    return tabular("loader | version | set up | a resume is promised for", cells, "l")


def refusals(data: Record) -> list[Block]:
    """Return what was raised, most often first."""
    cells = []
    for name, record in rows(data):
        shown: Counter[str] = Counter()
        for reason, count in total(record, list(KINDS))["reasons"].items():
            text = reason if reason.partition(": ")[2] else f"{reason.rstrip(': ')}, without a word"
            shown[textwrap.shorten(plain(text), 170, placeholder=" ...")] += count
        cells += [(name, f"{count:,}", reason) for reason, count in shown.most_common(4)]
    return tabular("loader | histories | raised", cells, "lrl")


def examples(data: Record) -> list[Block]:
    """Return one history of each loader that lost or repeated samples."""
    lines = []
    for name, record in rows(data):
        for each in total(record, list(KINDS))["examples"][:1]:
            number, _, told = each.removeprefix("history ").partition(", ")
            lines.append((name, number, told))
    return tabular("loader | history | what happens", lines, "lrl") if lines else ["None."]


RULES = {
    "history": (
        f"a run of {EPOCHS} epochs over {SIZES[0]} to {SIZES[-1]:,} samples, on 1 to "
        f"{LARGEST_WORLD} ranks with batches of 1 to {LARGEST_BATCH}, stopped one to three times. "
        "It is drawn from its number, so a loader that is dealt fewer gets the first of the same "
        "ones; `python -m tests.histories loaders --words --histories 1 --first NUMBER` shows one"
    ),
    "stop": (
        "after any batch that the loop received, the last of a pass included, or after the loop "
        "over a pass; the state is taken there. The resumed loop begins with the epoch that it was "
        "in, or after a whole pass with the next"
    ),
    "lost": "a sample that no rank read in a pass; each should be read once",
    "read twice": "each further read of a sample in a pass",
    "by policy": (
        "what a loader drops or repeats to fill ranks or batches in an uninterrupted run too: "
        "counted apart. Where the ranks change within a pass, as much as the largest of the "
        "layouts may drop or repeat"
    ),
    "refused": (
        f"anything was raised, or a leg took more than {PATIENCE} s. The history ends there; what "
        "it had not read is not counted as lost"
    ),
    "uneven": (
        "a rank had a batch in a step in which another had none. It is waited for, and its samples "
        "count as read; in training, collectives hang"
    ),
    "what loaders leave open": (
        "is decided in their favour: a state from after a pass may go on with the next one or with "
        "nothing; a loader that counts its epochs is taken at its word; new ranks get the state of "
        "rank 0"
    ),
    "ranks": (
        "objects of one process that take steps in turn; one process each, for loaders that ask "
        "the environment for their rank"
    ),
    "time to resume": (
        "the loader's own, as samples are numbers: from its construction to the first batch of "
        "rank 0, without workers. [Planning](planning.jsonl) has it for large datasets"
    ),
    "worker processes": (
        f"real in some histories, on 1 to {LARGEST_WORLD_WITH_WORKERS} ranks with up to "
        f"{MOST_WORKERS} workers each (how many is said below); the others load in the process"
    ),
}


def dealt(data: Record) -> list[Block]:
    """Return how many histories each loader got."""
    cells = []
    for name, record in rows(data):
        sums = [sum(t["histories"] for t in record.get(key, {}).values()) for key in WAYS]
        cells.append((name, *(f"{each:,}" for each in sums)))
    return tabular("loader | without worker processes | with", cells)


NAME = "torture"
TITLE = "Stops and resumes of loaders"
WORDS = (
    "A training run is stopped anywhere and resumed, perhaps on another number of ranks, with "
    "another batch size or other worker processes. Every loader that claims to resume gets the "
    "same random histories. Numbers are samples per million to be read; a loader that refuses "
    "loses nothing, but stops there."
)


def blocks(data: Record) -> list[Block]:
    """Return the page's blocks."""
    parts = [*overview(data), *in_words(data)]
    parts += ["## The rules", *tabular("word | means", RULES.items(), "l"), "## By what changes"]
    for kind in KINDS:
        parts += of_kind(data, kind)
    parts += ["## How many each got", *dealt(data), "## Who takes part", *set_up(data)]
    parts += ["## What was raised", *refusals(data)]
    return [*parts, "## Histories to look at", *examples(data)]
