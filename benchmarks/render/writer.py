"""What all pages are written with: numbers, tables, targets, and the machine."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.render.page import Block, table

INSTALL = (
    "pip install -e . --group bench torch==2.13.0 && "
    "pip install --no-deps mosaicml-streaming==0.13.0"
)


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


def rate(per_second: float) -> str:
    """Write indices per second, in millions."""
    return f"{number(per_second / 1e6)} M/s"


def tabular(header: str, rows: Iterable[Iterable[Any]], align: str = "lr") -> list[Block]:
    """Return a table as the blocks of a page; the header's cells are separated by |."""
    return [table((name.strip() for name in header.split("|")), rows, align)]


def section(title: str, words: str, blocks: Iterable[Block]) -> list[Block]:
    """Return a section of a page."""
    return [f"## {title}", *([words] if words else []), *blocks]


def who(standing: list[dict[str, str]]) -> list[Block]:
    """List who is compared, and who could not be."""
    rows = [
        (row["name"], row["version"] or f"**missing**: {row['missing']}", row["note"])
        for row in standing
    ]
    return section("Who is compared", "", tabular("who | version | how", rows, "l"))


class Figure(NamedTuple):
    """A target: `measure` returns the number to be at most `limit`, at least, or below it."""

    name: str
    limit: float
    unit: str
    measure: Callable[[Any], float | None]
    """From what the run found; it may raise where the run left that out."""
    least: bool = False
    loss: str = ""
    """Why it was missed, if it ever was."""
    below: bool = False

    @property
    def bound(self) -> str:
        """The sign between what is measured and the limit."""
        return ">=" if self.least else "<" if self.below else "<="

    def value(self, found: Any) -> float | None:
        """Return what the run measured; None if it left that out."""
        try:
            return self.measure(found)
        except (KeyError, StopIteration, ValueError):  # no such part, row, or any row
            return None

    def verdict(self, found: Any) -> str:
        """Return whether the run reached the target, in a word."""
        value = self.value(found)
        if value is None:
            return "not measured"
        reached = {">=": operator.ge, "<": operator.lt, "<=": operator.le}[self.bound]
        return "reached" if reached(value, self.limit) else "missed"


def judged(figures: Iterable[Figure], found: Any) -> list[dict[str, Any]]:
    """Return what a run reached of the figures, as its page shows them."""
    rows = []
    for figure in figures:
        value, verdict = figure.value(found), figure.verdict(found)
        if value is None:
            continue
        near = number(value) == number(figure.limit)  # then three digits do not tell
        rows.append(
            {
                "name": figure.name,
                "target": f"{figure.bound} {figure.limit:g} {figure.unit}".rstrip(),
                "measured": f"{f'{value:.6g}' if near else number(value)} {figure.unit}".rstrip(),
                "reached": verdict == "reached",
                "why": figure.loss if verdict == "missed" else "",
            }
        )
    return rows


def where(data: dict[str, Any]) -> dict[str, str]:
    """Say where, when and with what a run was."""
    machine, versions = data["machine"], data["versions"]
    name = f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_gb']} GB"
    return {
        "instructions": data["instructions"],
        "machine": f"{name}, {machine['system']}",
        "load average at the start": f"{data['load']:.2f}",
        "date": data["date"],
        "commit": data["commit"],
        "versions": ", ".join(f"{name} {version}" for name, version in versions.items()),
    }


def refresh(page: Path, name: str, lines: list[str]) -> None:
    """Put lines between a page's markers of a name."""
    start, end = f"<!-- {name} -->\n", f"\n<!-- /{name} -->"
    before, _, rest = page.read_text().partition(start)
    _, found, after = rest.partition(end)
    assert found, f"{page} must have {start!r} and {end!r}"
    page.write_text("".join([before, start, "\n".join(lines).rstrip("\n"), end, after]))
