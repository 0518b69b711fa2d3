"""docs/torture.md: every number in it comes from the counts."""

from __future__ import annotations

import statistics
import textwrap
from collections import Counter
from typing import Any

from benchmarks.render.writer import environment, markdown, section, time
from benchmarks.torture.counting import Tally, summed
from benchmarks.torture.histories import (
    EPOCHS,
    KINDS,
    LARGEST_BATCH,
    LARGEST_WORLD,
    LARGEST_WORLD_WITH_WORKERS,
    MOST_WORKERS,
    NOTHING,
    SIZES,
)
from benchmarks.torture.loaders import LOADERS
from benchmarks.torture.running import PATIENCE

Record = dict[str, Any]
SUMS = ("histories", "refused", "exact", "uneven", "samples", "lost", "twice", "dropped", "padded")


def total(record: Record, kinds: list[str]) -> Record:
    """Return the sums over some kinds, with and without worker processes."""
    tallies = [
        record[key][kind]
        for key in ("plain", "with_workers")
        for kind in kinds
        if kind in record.get(key, {})
    ]
    none = Tally().to_dict()
    return summed([none, *tallies])


def summary(record: Record) -> str:
    """Return a loader's counts in a line."""
    sums = total(record, list(KINDS))
    return ", ".join(f"{sums[name]:,} {name}" for name in SUMS)


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
    known = data["loaders"]
    names = [entry.name for entry in LOADERS]
    return [(name, known[name]) for name in names if name in known and not known[name]["missing"]]


def overview(data: Record) -> list[str]:
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
    return markdown(header, cells)


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


def in_words(data: Record) -> list[str]:
    """Say who was right, by what changes."""
    lines = []
    for kind, words in KINDS.items():
        sums = {name: total(record, [kind]) for name, record in rows(data)}
        found = {
            each: [name for name in sums if sums[name]["histories"] and group(sums[name]) == each]
            for each in GROUPS
        }
        texts = [f"**{each}**: {', '.join(names)}" for each, names in found.items() if names]
        lines.append(f"- Where {words}: {'; '.join(texts)}.")
    return [*lines, ""]


def of_kind(data: Record, kind: str) -> list[str]:
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
    return [f"### {KINDS[kind][0].upper()}{KINDS[kind][1:]}", "", *markdown(header, cells)]


def plain(text: str) -> str:
    """Return text that a table's cell can hold."""
    return text.replace("|", "\\|").replace("\n", " ").replace("`", "'").replace("_", "\\_")


def set_up(data: Record) -> list[str]:
    """Return who took part and how, and who could not."""
    cells = []
    for entry in LOADERS:
        record = data["loaders"].get(entry.name)
        if record is None:
            continue
        version = record["version"] or f"**missing**: {plain(record['missing'])}"
        cells.append((f"[{entry.name}]({entry.docs})", version, entry.setup, entry.promises))
    return markdown("loader | version | set up | a resume is promised for", cells, "l")


def refusals(data: Record) -> list[str]:
    """Return what was raised, most often first."""
    cells = []
    for name, record in rows(data):
        shown: Counter[str] = Counter()
        for reason, count in total(record, list(KINDS))["reasons"].items():
            text = reason if reason.partition(": ")[2] else f"{reason.rstrip(': ')}, without a word"
            shown[textwrap.shorten(plain(text), 170, placeholder=" ...")] += count
        cells += [(name, f"{count:,}", reason) for reason, count in shown.most_common(4)]
    return markdown("loader | histories | raised", cells, "lrl")


def examples(data: Record) -> list[str]:
    """Return one history of each loader that lost or repeated samples."""
    lines = []
    for name, record in rows(data):
        lines += [f"- {name}: {each}." for each in total(record, list(KINDS))["examples"][:1]]
    return [*lines, ""] if lines else ["None.", ""]


RULES = f"""
## The rules

- A history is a run of {EPOCHS} epochs over {SIZES[0]} to {SIZES[-1]:,} samples, on 1 to
  {LARGEST_WORLD} ranks with batches of 1 to {LARGEST_BATCH}, stopped one to three times. It is
  drawn from its number, so a loader that is dealt fewer gets the first of the same ones.
  `python -m benchmarks.torture --history NUMBER` shows one.
- It stops when the loop has received some batch, the last of a pass included, or when the loop
  over a pass has ended; the state is taken there. The resumed loop begins with the epoch that it
  was in, or after a whole pass with the next.
- In each pass, every sample is to be read once. **Lost** is one that no rank read; **twice** is
  each further read of one.
- **By policy**: what a loader drops or repeats in an uninterrupted run too, to fill ranks or
  batches, is counted apart; where the ranks change within a pass, up to as much as the largest of
  the layouts may drop or repeat.
- **Refused** is a history in which anything was raised, or a leg took more than {PATIENCE} s. It
  ends there, and what it had not read by then is not counted as lost.
- **Uneven** is a history in which a rank had a batch in a step in which another had none. Here it
  is waited for, and its samples count as read; in training, collectives hang.
- What loaders leave open is decided in their favour: a state from after a pass may go on with the
  next one or with nothing; a loader that counts its epochs itself is taken at its word; ranks that
  are new get the state of rank 0.
- Ranks are objects of one process that take steps in turn or, for loaders that ask the environment
  for their rank, one process each. The samples are numbers, so the time to resume is the loader's
  own, from its construction to the first batch of rank 0, without workers;
  [benchmarks.md](benchmarks.md) has it for large datasets.
- Worker processes are real in some histories, on 1 to {LARGEST_WORLD_WITH_WORKERS} ranks with up to
  {MOST_WORKERS} workers each (how many is said below); the others load in the process itself.
"""


def dealt(data: Record) -> list[str]:
    """Return how many histories each loader got."""
    cells = []
    for name, record in rows(data):
        keys = ("plain", "with_workers")
        sums = [sum(t["histories"] for t in record.get(key, {}).values()) for key in keys]
        cells.append((name, *(f"{each:,}" for each in sums)))
    return markdown("loader | without worker processes | with", cells)


def render(data: Record) -> str:
    """Return the page."""
    lines = [
        "# Torture",
        "",
        "Generated by `python -m benchmarks.torture`; do not edit.",
        "",
        "A training run is stopped anywhere and goes on, perhaps with another number of ranks,",
        "another batch size, or other worker processes. Which samples are lost, and which are read",
        "twice? The same random histories are dealt to every loader that claims to resume. Numbers",
        "are samples per million that were to be read; whoever refuses loses nothing, but does not",
        "go on either.",
        "",
        *overview(data),
        *in_words(data),
        *RULES.strip().splitlines(),
        "",
        "## By what changes",
        "",
    ]
    for kind in KINDS:
        lines += of_kind(data, kind)
    lines += section("How many were dealt", "", dealt(data))
    lines += section("Who takes part", "", set_up(data))
    lines += section("What was raised", "", refusals(data))
    lines += section("Histories to look at", "", examples(data))
    if "machine" in data:
        words = (
            ", shared with other work: trust the counts, which\n"
            "  do not depend on it, more than the times."
        )
        lines += section("Where it ran", "", environment(data, words))
    return "\n".join(lines).rstrip("\n") + "\n"
