"""The one writer of tables: a page of the site, from its text and its raw rows.

The text of a page is `benchmarks/pages/NAME.md`. It has three parts, with a line of `---` between
them: of all runs, of each run, and what ends the page. `{{ name }}` stands for the table of that
name, `{{ table.key }}` for a number of its first row, and `{{ ahead }}`, `{{ who }}`, `{{ run }}`
and `{{ install }}` for what the rows say of these. A section of a table that a run has no rows of
is left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.contenders import Contender
from benchmarks.render import rows as kept
from benchmarks.render.rows import Row

INSTALL = (
    "pip install -e . --group bench torch==2.13.0",
    "pip install --no-deps mosaicml-streaming==0.13.0",
)
TEXTS = Path(__file__).resolve().parents[1] / "pages"
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

    def markdown(self, rows: list[Row]) -> str:
        """Return the table of a run, and what was raised; nothing without rows."""
        found = kept.of(rows, self.key)
        if not found:
            return ""
        table = self.grid(found, rows) if self.across else self.list(found, rows)
        stops = [
            f"{row['who']}, {row['case']}: `{row['raised']}`" for row in found if "raised" in row
        ]
        return "\n\n".join([table, *stops])

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
            first = self.best(there.values(), column)
            line = {name: column.cell(row, rows) for name, row in there.items()}
            if first:
                line[first[self.across]] = f"**{line[first[self.across]]}**"
            lines.append([place, *(line.get(name, "") for name in names)])
        return table([title, *names], lines, self.align or "lr")

    def best(self, rows: Iterable[Row], column: Column) -> Row | None:
        """Return the row with the best number; None if there is none, or that is no matter."""
        key, found = str(column.key), None
        for row in rows if column.better else ():
            if isinstance(row.get(key, ""), str):
                continue
            if found is None or column.better(row[key], found[key]):
                found = row
        return found

    def facing(self, rows: list[Row], column: Column, case: str) -> tuple[str, str]:
        """Return our cell of a case, and the best cell of the others with its name."""
        found = kept.of(rows, self.key, case=case)
        there = {(row["who"], row.get("how", "")): row for row in found}
        rivals = [there[who, how] for who, how in there if not how and not self.is_ours(who)]
        best = self.best(rivals, column)
        ours = self.ours(best or found[0])
        mine = next(there[name] for name in ours if name in there)
        cells = [f"{column.cell(row, rows)}{column.unit}" for row in (mine, best) if row]
        return cells[0], f"{cells[1]} ({best['who']})" if best else "nobody"


@dataclass(frozen=True)
class Page:
    """A page of results: its tables; its text says the rest."""

    name: str
    tables: tuple[Table, ...]
    compared: Mapping[str, Contender] = field(default_factory=dict)
    """Whose numbers the rows are of."""
    rivals: bool = True
    """Whether anybody could be ahead."""

    def text(self) -> str:
        """Return the text."""
        return (TEXTS / f"{self.name}.md").read_text()

    def titles(self) -> dict[str, str]:
        """Return the heading above each table, by the table's key."""
        found = {}
        for part in sections(self.text()):
            title = part.partition("\n")[0].lstrip("# ")
            found |= dict.fromkeys(re.findall(MARKER, part), title)
        return found


def table(titles: Iterable[str], lines: Iterable[Iterable[Any]], align: str = "lr") -> str:
    """Return a table as Markdown; `align`'s last letter is for all further columns."""
    titles = list(titles)
    marks = [MARKS[align[min(i, len(align) - 1)]] for i in range(len(titles))]
    return "\n".join(f"| {' | '.join(map(str, cells))} |" for cells in (titles, marks, *lines))


def who(page: Page, rows: list[Row]) -> str:
    """Return the table of who is compared, and how; of who could not be, too."""
    lines = [
        (
            row["who"],
            row["version"] or f"**missing**: {row['missing']}",
            page.compared[row["who"]].how(),
        )
        for row in kept.of(rows, "who")
    ]
    return table(("who", "version", "how"), lines, "l")


def install(page: Page) -> str:
    """Return what installs whoever is compared."""
    cures = [each.command() for each in page.compared.values() if each.apart]
    return " && ".join(dict.fromkeys([*INSTALL, *cures])) + "\n"


def around(runs: list[list[Row]]) -> str:
    """Return the table of where, when and with what the runs were."""
    told = [kept.one(run, "run") for run in runs]
    lines = [(name, *(run.get(name, "") for run in told)) for name in RUN]
    return table(("", *["" for _ in runs]), [line for line in lines if any(line[1:])], "l")


MARKER = re.compile(r"\{\{ ([^.}]+) \}\}")
FACT = re.compile(r"\{\{ (\w+)\.(\w+) \}\}")


def sections(text: str) -> list[str]:
    """Return a text cut before each heading."""
    return re.split(r"^(?=##)", text, flags=re.MULTILINE)


def filled(text: str, written: Mapping[str, str], rows: list[Row]) -> str:
    """Return a text with what its marks stand for; a section without its tables is left out."""
    found = []
    for part in sections(text):
        marks = re.findall(MARKER, part)
        if marks and not any(written[mark] for mark in marks):
            continue
        words = re.sub(FACT, lambda mark: fact(kept.one(rows, mark[1])[mark[2]]), part)
        words = re.sub(MARKER, lambda mark: written[mark[1]], words)
        found.append(re.sub(r"\n{3,}", "\n\n", words))
    return "".join(found)


def fact(value: Any) -> str:
    """Write a number within words."""
    return f"{value:,}" if isinstance(value, int) else number(value) if value else str(value)


def markdown(page: Page, rows: list[Row]) -> str:
    """Return a page: for each run where we lose, its tables and its machine."""
    from benchmarks.render import losing

    runs = kept.runs(rows)
    of_all, of_run, end = page.text().split("\n---\n")
    found = [filled(of_all, {}, rows)]
    for run in runs:
        found += [f"## {run[0]['run']}\n"] if len(runs) > 1 else []
        written = {each.key: each.markdown(run) for each in page.tables}
        ahead = losing.section(losing.losses(page, run)) if page.rivals else []
        written |= {"ahead": "\n\n".join(ahead), "who": who(page, run)}
        found.append(filled(of_run.lstrip("\n"), written, run))
    found.append(filled(end.lstrip("\n"), {"run": around(runs), "install": install(page)}, rows))
    return "\n".join(found)


def refresh(page: Path, name: str, lines: list[str]) -> None:
    """Put lines between a page's markers of a name."""
    start, end = f"<!-- {name} -->\n", f"\n<!-- /{name} -->"
    before, _, rest = page.read_text().partition(start)
    _, found, after = rest.partition(end)
    assert found, f"{page} must have {start!r} and {end!r}"
    page.write_text("".join([before, start, "\n".join(lines).rstrip("\n"), end, after]))
