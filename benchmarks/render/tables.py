"""The one writer of tables: a page of the site, from a page's description and its raw rows.

A page has parts: Markdown, tables, or functions of a run's rows that return Markdown. A table has a
line for each case of each who; with `across`, a line for each case and a cell for each who, or the
other way round.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.render import rows as kept
from benchmarks.render.rows import Row

INSTALL = (
    "pip install -e . --group bench torch==2.13.0 && "
    "pip install --no-deps mosaicml-streaming==0.13.0"
)
IMAGES = "../../docs/images"
"""Where pictures are, from the results."""
MARKS = {"l": "---", "r": "---:"}
RUN = ("instructions", "machine", "load average at the start", "date", "commit", "versions")


def number(value: float) -> str:
    """Write a number with three digits that count."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def power(n: int) -> str:
    """Write 1000000 as 1e6."""
    return f"1e{len(str(n)) - 1}" if str(n).strip("0") == "1" else f"{n:,}"


def time(seconds: float) -> str:
    """Write seconds with a fitting unit."""
    for factor, unit in ((1, "s"), (1e3, "ms")):
        if seconds * factor >= 1:
            return f"{number(seconds * factor)} {unit}"
    return f"{number(seconds * 1e6)} us"


def size(num_bytes: float) -> str:
    """Write bytes with a fitting unit."""
    for factor, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if num_bytes >= factor:
            return f"{number(num_bytes / factor)} {unit}"
    return "0"


def times(factor: float) -> Callable[[float], str]:
    """Return how a number is written in another unit."""
    return lambda value: number(value * factor)


def less(one: float, other: float) -> bool:
    """Return whether one is below another."""
    return one < other


def more(one: float, other: float) -> bool:
    """Return whether one is above another."""
    return one > other


class Column(NamedTuple):
    """A column: what a row has under `key`, or what `key` makes of it and its run's rows."""

    key: str | tuple[str, ...] | Callable[[Row, list[Row]], Any]
    title: str
    show: Callable[..., str] = number
    better: Callable[[float, float], bool] | None = None
    """Whether a rival's number is ahead of ours; None where that is no matter."""
    unit: str = ""
    """What the title has of a number that stands alone."""
    absent: str = ""
    """What a cell says that has no number."""

    def values(self, row: Row, rows: list[Row]) -> list[Any]:
        """Return the numbers of a cell; words where there are none."""
        if callable(self.key):
            return [self.key(row, rows)]
        keys = (self.key,) if isinstance(self.key, str) else self.key
        return [row.get(key, self.absent) for key in keys]

    def cell(self, row: Row, rows: list[Row]) -> str:
        """Write a row's cell, or what stopped the rival: for sizes not tried, with the size."""
        if "stop" in row:
            since = row.get("since")
            return f"{row['stop']}, at {since} already" if since else f"**{row['stop']}**"
        values = self.values(row, rows)
        words = [str(value) for value in values if isinstance(value, str)]
        return words[0] if words else self.show(*values)


@dataclass(frozen=True)
class Table:
    """One table of a page: its rows, and what is shown of them."""

    key: str
    title: str
    words: str
    columns: tuple[Column, ...]
    labels: tuple[tuple[str, str], ...] = (("case", "{case}"), ("who", "{who}"))
    """Titles of the first columns, and what stands in them."""
    across: str = ""
    """The field whose values are columns, if there is one column of numbers."""
    align: str = ""
    place: str = "{case}"
    """How a loss names a case."""
    ours: Callable[[Row], Sequence[tuple[str, str]]] = lambda _: (("indexplan", ""),)
    """Whom a rival is compared with, and how: the first of these in the same case."""
    is_ours: Callable[[str], bool] = lambda name: name.startswith("indexplan")
    compared: tuple[Column, ...] = ()
    """The columns in which a rival may be ahead, if they are not those that are shown."""
    level: str = "##"
    picture: str = ""

    def blocks(self, rows: list[Row]) -> list[str]:
        """Return the section of a run."""
        found = kept.of(rows, self.key)
        if not found:
            return []
        head = [f"{self.level} {self.title}"] if self.title else []
        table = self.grid(found, rows) if self.across else self.list(found, rows)
        stops = [
            f"{row['who']}, {row['case']}: `{row['raised']}`" for row in found if "raised" in row
        ]
        return [*head, *filter(None, [self.words, self.picture]), table, *stops]

    def list(self, found: list[Row], rows: list[Row]) -> str:
        """Return a line for each row."""
        lines = [
            [
                words.format_map({"case": "", "who": "", "how": "", **row}).strip(", ")
                for _, words in self.labels
            ]
            + (
                ["error", *[""] * (len(self.columns) - 1)]
                if "raised" in row
                else [each.cell(row, rows) for each in self.columns]
            )
            for row in found
        ]
        titles = [*(title for title, _ in self.labels), *(each.title for each in self.columns)]
        return table(titles, lines, self.align or "l" * len(self.labels) + "r")

    def grid(self, found: list[Row], rows: list[Row]) -> str:
        """Return a line for each case, or who, with the best cell in bold."""
        ((title, down),) = self.labels
        (column,) = self.columns
        cells = {(down.format_map({"how": "", **row}), row[self.across]): row for row in found}
        names = list(dict.fromkeys(row[self.across] for row in found))
        lines = []
        for place in dict.fromkeys(place for place, _ in cells):
            there = {name: cells[place, name] for name in names if (place, name) in cells}
            first = self.best(there.values())
            line = {name: column.cell(row, rows) for name, row in there.items()}
            if first:
                line[first[self.across]] = f"**{line[first[self.across]]}**"
            lines.append([place, *(line.get(name, "") for name in names)])
        return table([title, *names], lines, self.align or "lr")

    def best(self, rows: Iterable[Row]) -> Row | None:
        """Return the row with the best number; None if there is none, or that is no matter."""
        (column,) = self.columns
        numbers = [row for row in rows if not isinstance(row.get(str(column.key), ""), str)]
        if column.better is None or not numbers:
            return None
        best = max if column.better is more else min
        return best(numbers, key=lambda row: float(row[str(column.key)]))


Part = str | Table | Callable[[list[Row]], Sequence[str]]


class Figure(NamedTuple):
    """A target: `measure` returns the number to be at most `limit`, at least, or below it."""

    name: str
    limit: float
    unit: str
    measure: Callable[[list[Row]], float | None]
    """From the rows of a run; it may raise where the run left that out."""
    least: bool = False
    loss: str = ""
    """Why it was missed, if it ever was."""
    below: bool = False

    @property
    def bound(self) -> str:
        """The sign between what is measured and the limit."""
        return ">=" if self.least else "<" if self.below else "<="

    def value(self, rows: list[Row]) -> float | None:
        """Return what the run measured; None if it left that out."""
        try:
            return self.measure(rows)
        except (KeyError, TypeError, ValueError):  # no such row, or no number
            return None

    def reached(self, value: float) -> bool:
        """Return whether a number reaches the target."""
        return {">=": operator.ge, "<": operator.lt, "<=": operator.le}[self.bound](
            value, self.limit
        )

    def cell(self, value: float) -> str:
        """Write what was measured; more digits where three do not tell it from the target."""
        near = number(value) == number(self.limit)
        words = f"{f'{value:.6g}' if near else number(value)} {self.unit}".rstrip()
        return words + " **missed**" * (not self.reached(value))


@dataclass(frozen=True)
class Page:
    """A page of results: what it says, in the order in which it does."""

    name: str
    title: str
    words: str
    parts: tuple[Part, ...]
    figures: tuple[Figure, ...] = ()
    install: str = ""
    command: str = "python -m benchmarks.report"
    rivals: bool = True
    """Whether anybody could be ahead."""

    def targets(self, rows: list[Row]) -> list[Row]:
        """Return what a run reached of the targets, as rows of it."""
        values = {figure.name: figure.value(rows) for figure in self.figures}
        of_run = {"run": rows[0]["run"], "table": "targets"}
        return [
            {**of_run, "case": name, "value": float(f"{value:.6g}")}
            for name, value in values.items()
            if value is not None
        ]

    def tables(self) -> list[Table]:
        """Return the tables of measurements."""
        return [part for part in self.parts if isinstance(part, Table)]


def table(titles: Iterable[str], lines: Iterable[Iterable[Any]], align: str = "lr") -> str:
    """Return a table as Markdown; `align`'s last letter is for all further columns."""
    titles = list(titles)
    marks = [MARKS[align[min(i, len(align) - 1)]] for i in range(len(titles))]
    return "\n".join(f"| {' | '.join(map(str, cells))} |" for cells in (titles, marks, *lines))


def targets(page: Page, runs: list[list[Row]]) -> list[str]:
    """Return the table of the targets, a column for each run, and why some were missed."""
    found = [{row["case"]: float(row["value"]) for row in kept.of(run, "targets")} for run in runs]
    figures = [each for each in page.figures if any(each.name in run for run in found)]
    if not figures:
        return []
    lines = [
        (
            figure.name,
            f"{figure.bound} {figure.limit:g} {figure.unit}".rstrip(),
            *(figure.cell(run[figure.name]) if figure.name in run else "" for run in found),
        )
        for figure in figures
    ]
    told = [
        (each.name, each.loss)
        for each in figures
        if each.loss and any(each.name in run and not each.reached(run[each.name]) for run in found)
    ]
    titles = ("target", "at", *(run[0]["run"] or "measured" for run in runs))
    whys = [table(("missed", "why"), told, "l")] if told else []
    return ["## Targets", table(titles, lines), *whys]


def who(notes: dict[str, str]) -> Callable[[list[Row]], list[str]]:
    """Return what lists who is compared, and how; who could not be, too."""

    def listed(rows: list[Row]) -> list[str]:
        lines = [
            (
                row["who"],
                row["version"] or f"**missing**: {row['missing']}",
                notes.get(row["who"], ""),
            )
            for row in kept.of(rows, "who")
        ]
        return ["## Who is compared", table(("who", "version", "how"), lines, "l")]

    return listed


def means(title: str, words: str, header: str, told: dict[str, str]) -> list[str]:
    """Return a section that says what words mean."""
    lines = table(header.split(" | "), told.items(), "l")
    return [*([f"## {title}"] if title else []), *([words] if words else []), lines]


def markdown(page: Page, rows: list[Row]) -> str:
    """Return a page: its targets, and for each run where we lose, its tables and its machine."""
    from benchmarks.render import losing

    runs = kept.runs(rows)
    blocks = [f"# {page.title}", page.words, *targets(page, runs)]
    for run in runs:
        blocks += [f"## {run[0]['run']}"] if len(runs) > 1 else []
        blocks += losing.section(losing.losses(page, run)) if page.rivals else []
        for part in page.parts:
            if isinstance(part, str):
                blocks.append(part)
            else:
                blocks += part.blocks(run) if isinstance(part, Table) else part(run)
    told = [kept.one(run, "run") for run in runs]
    lines = [
        (name, *(run.get(name, "") for run in told))
        for name in RUN
        if any(run.get(name) for run in told)
    ]
    blocks += ["## This run", table(("", *["" for _ in runs]), lines, "l")]
    return "\n\n".join([*blocks, f"```sh\n{page.install}{page.command}\n```"]) + "\n"


def refresh(page: Path, name: str, lines: list[str]) -> None:
    """Put lines between a page's markers of a name."""
    start, end = f"<!-- {name} -->\n", f"\n<!-- /{name} -->"
    before, _, rest = page.read_text().partition(start)
    _, found, after = rest.partition(end)
    assert found, f"{page} must have {start!r} and {end!r}"
    page.write_text("".join([before, start, "\n".join(lines).rstrip("\n"), end, after]))
