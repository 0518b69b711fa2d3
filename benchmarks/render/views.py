"""The tables of the comparison: which number of a record is shown, and in what unit."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from benchmarks.contenders.planners import NAMES
from benchmarks.measure.questions import KEYS, LIMITS, Question
from benchmarks.render.page import Block
from benchmarks.render.writer import number, power, rate, size, tabular, time

Record = dict[str, Any]
DRAWN = ("first_batch", "share", "worlds", "resume")
"""Views that have a picture."""
IMAGES = "../../docs/images"
"""Where pictures are, from the results."""
PAGE = 4096
"""Bytes; memory is counted in pages, so no growth is at most one."""


@dataclass(frozen=True)
class View:
    """One table and picture; several may be of one question."""

    key: str
    question: str
    title: str
    words: str
    axis: str
    value: Callable[[Record], float]
    show: Callable[[float], str]
    more_is_better: bool = False
    by_world: bool = False

    def asked(self) -> Question:
        """Return the question that was asked."""
        return KEYS[self.question]

    def place(self, record: Record) -> int:
        """Return the row of a record: its size, or its world size."""
        return int(record["world" if self.by_world else "n"])

    def better(self, one: float, other: float) -> bool:
        """Return whether one value is strictly better than another."""
        return one > other if self.more_is_better else one < other


def _of_question(key: str, axis: str, by_world: bool = False) -> View:
    question = KEYS[key]
    return View(
        key,
        key,
        question.title,
        question.words,
        axis,
        lambda record: float(record["seconds"]),
        time,
        by_world=by_world,
    )


VIEWS = (
    _of_question("first_batch", "seconds to the first batch"),
    View(
        "memory",
        "first_batch",
        "Memory for the first batch",
        "How much the process grows at most in the time above. 0 is less than a page; pages of a "
        "file that were read count.",
        "bytes that the process grew",
        lambda record: float(record["peak_bytes"]),
        size,
    ),
    View(
        "share",
        "share",
        KEYS["share"].title,
        KEYS["share"].words,
        "indices per second",
        lambda record: record["num_indices"] / record["seconds"],
        rate,
        more_is_better=True,
    ),
    _of_question("worlds", "seconds for a rank's share of 1e7", by_world=True),
    _of_question("resume", "seconds to the first batch after the middle"),
    _of_question("build", "seconds to shuffle and write"),
    View(
        "build_rate",
        "build",
        "Building a file, bytes per second",
        "The same; both write 4 bytes per index.",
        "bytes written per second",
        lambda record: record["num_bytes"] / record["seconds"],
        lambda value: f"{number(value / 1e6)} MB/s",
        more_is_better=True,
    ),
    _of_question("sub_epochs", "seconds to the next sub-epoch's first batch"),
)


def shown(view: View, records: Iterable[Record]) -> dict[int, dict[str, Record]]:
    """Return the records of a view by row and rival."""
    rows: dict[int, dict[str, Record]] = {}
    for record in records:
        rows.setdefault(view.place(record), {})[record["rival"]] = record
    return dict(sorted(rows.items()))


def best(view: View, row: dict[str, Record], *, ours: bool | None = None) -> str | None:
    """Return who has a row's best value: of all, of ours or of the others; None if nobody has."""
    names = [
        name
        for name, record in row.items()
        if "stop" not in record and (ours is None or NAMES[name].ours is ours)
    ]
    values = {name: view.value(row[name]) for name in names}
    if not names:
        return None
    return (max if view.more_is_better else min)(names, key=values.__getitem__)


def cell(view: View, record: Record | None) -> str:
    """Write a value, or what stopped the rival: for sizes not tried, with the size that did."""
    if record is None:
        return ""
    if "stop" in record:
        if "since" not in record:
            return f"**{record['stop']}**"
        since = f"world {record['since']}" if view.by_world else power(record["since"])
        return f"{record['stop']}, at {since} already"
    return view.show(view.value(record))


def table(view: View, records: list[Record]) -> list[Block]:
    """Return a view's table: a row for each size, a column for each rival, the best in bold."""
    rows = shown(view, records)
    names = [name for name in view.asked().rivals if any(name in row for row in rows.values())]
    lines = []
    for place, row in rows.items():
        first = best(view, row)
        cells = [
            f"**{cell(view, row[name])}**" if name == first else cell(view, row.get(name))
            for name in names
        ]
        lines.append((f"{place:,}" if view.by_world else power(place), *cells))
    return tabular(f"{'world size' if view.by_world else 'n'} | {' | '.join(names)}", lines)


def sections(contest: dict[str, list[Record]]) -> list[Block]:
    """Return all tables of the comparison."""
    blocks: list[Block] = [
        "## Against others",
        LIMITS,
        "Where a rival stopped, the cell names what ran out: memory, time or disk (also 16 GB).",
    ]
    for view in VIEWS:
        if view.question in contest:
            blocks += [f"### {view.title}", view.words]
            if view.key in DRAWN:
                blocks += [f"![{view.title.lower()}]({IMAGES}/{view.key}.svg)"]
            blocks += table(view, contest[view.question])
    return blocks
