"""Every cell in which a rival is ahead, found automatically, and the reason, written by hand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from benchmarks.render import rows as kept
from benchmarks.render.rows import Row
from benchmarks.render.tables import TEXTS, Column, Page, Table, table


def reasons() -> dict[tuple[str, str], str]:
    """Return why a rival is ahead, by the table or column, and the rival."""
    found = {}
    for line in (TEXTS / "ahead.md").read_text().splitlines():
        if line.startswith("| `"):
            what, rivals, why = (cell.strip() for cell in line.strip("|").split(" | "))
            for key in what.replace("`", "").split(", "):
                found |= {(key, rival): why for rival in rivals.split("; ")}
    return found


EXPLANATIONS = reasons()


class Loss(NamedTuple):
    """A cell of a table in which a rival is ahead of us."""

    table: Table
    column: Column
    section: str
    """The heading above the table."""
    rival: str
    case: str
    theirs: str
    ours: str

    @property
    def title(self) -> str:
        """What it is about: a table with one column of numbers, or a column."""
        title = self.section if self.column.unit else self.column.title or self.section
        return title[0].upper() + title[1:]

    def why(self) -> str:
        """Return the explanation, or nothing."""
        keys = (self.table.key, str(self.column.key))
        return next(
            (EXPLANATIONS[key, self.rival] for key in keys if (key, self.rival) in EXPLANATIONS), ""
        )


def losses(page: Page, rows: list[Row]) -> list[Loss]:
    """Return every cell of a run in which a rival is ahead of ours in the same case."""
    titles = page.titles()
    return [loss for each in page.tables for loss in _of_table(each, titles[each.key], rows)]


def _of_table(table: Table, title: str, rows: list[Row]) -> Iterator[Loss]:
    compared = [each for each in table.compared or table.columns if each.better]
    there = kept.of(rows, table.key) if compared else []
    by_place = {(each["case"], each["who"], each.get("how", "")): each for each in there}
    for row in there:
        names = table.ours(row)
        mine = next(
            (by_place[row["case"], *n] for n in names if (row["case"], *n) in by_place), None
        )
        if mine is None or (row["who"], row.get("how", "")) in names or table.is_ours(row["who"]):
            continue
        for column in compared:
            values = [column.values(each, rows)[0] for each in (row, mine)]
            if not any(isinstance(value, str) for value in values) and column.better(*values):
                shown = (f"{column.show(value)}{column.unit}" for value in values)
                place = table.place.format_map({"how": "", "title": title, **row})
                yield Loss(table, column, title, row["who"], place, *shown)


MOST_CELLS = 7
"""So many cells of a table are written out; of more, the first and the last."""


def section(losses: list[Loss]) -> list[str]:
    """Return them as a table, one row for each table and rival."""
    entries: dict[tuple[str, str], list[Loss]] = {}
    for loss in losses:
        entries.setdefault((loss.title, loss.rival), []).append(loss)
    lines, said = [], dict[str, str]()
    for (title, rival), found in entries.items():
        cells = [f"{one.case}: {one.theirs}, ours {one.ours}" for one in found]
        if len(cells) > MOST_CELLS:
            cells = [f"{len(cells)} cells, from {cells[0]}", f"to {cells[-1]}"]
        why = found[0].why()
        lines.append((title, rival, "; ".join(cells), said.get(why, why) or "**Not explained.**"))
        said.setdefault(why, f'As for "{title}", {rival}.' if why else "")
    words = "Found from the tables; the reasons are ours." if lines else "Nowhere."
    return [
        "## Where a rival is ahead",
        words,
        *([table(("what", "rival", "theirs, ours", "why"), lines, "l")] if lines else []),
    ]
