"""Results as they are kept, in benchmarks/results/*.json, and as Markdown.

A file holds what one page of the site shows: a title, words, and a run for each instruction set,
with its surroundings, its figures, and its blocks, which are Markdown or tables. The site makes the
page when it is built (docs/site/hooks.py), so nothing but the standard library is imported here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parents[1] / "results"
Table = dict[str, Any]
Block = str | Table
MARKS = {"l": "---", "r": "---:"}
UNKNOWN = "not recorded"
"""Instructions of the first runs; elsewhere they are empty where they change nothing."""
RUN = ("instructions", "machine", "load average at the start", "date", "commit", "versions")


def table(columns: Iterable[str], rows: Iterable[Iterable[Any]], align: str = "lr") -> Table:
    """Return a table; `align` has l or r for each column, its last letter for all further ones."""
    return {
        "columns": list(columns),
        "align": align,
        "rows": [[str(cell) for cell in row] for row in rows],
    }


def text(block: Block) -> str:
    """Return a block as Markdown."""
    if isinstance(block, str):
        return block
    names, align = block["columns"], block["align"]
    marks = [MARKS[align[min(i, len(align) - 1)]] for i in range(len(names))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (names, marks, *block["rows"]))


def after(blocks: list[Block], heading: str) -> Table:
    """Return the first table below a heading."""
    rest = blocks[blocks.index(heading) + 1 :]
    table: Table = next(block for block in rest if not isinstance(block, str))
    return table


def _figures(runs: list[dict[str, Any]]) -> list[Block]:
    """Return the table of the targets, a column for each instruction set, and why some failed."""
    named = {figure["name"]: figure for run in runs for figure in run["figures"]}
    if not named:
        return []

    def cell(run: dict[str, Any], name: str) -> str:
        found = [figure for figure in run["figures"] if figure["name"] == name]
        return (
            found[0]["measured"] + " **missed**" * (found[0]["reached"] is False) if found else ""
        )

    rows = [
        (name, each["target"], *(cell(run, name) for run in runs)) for name, each in named.items()
    ]
    told = {each["name"]: each["why"] for run in runs for each in run["figures"] if each["why"]}
    columns = "target", "at", *(run["instructions"] or "measured" for run in runs)
    return [
        "## Targets",
        table(columns, rows),
        *([table(("missed", "why"), told.items(), "l")] if told else []),
    ]


def markdown(file: str) -> str:
    """Return the page of a file, given by its text."""
    found = json.loads(file)
    runs = found["runs"]
    names = [name for name in RUN if any(run.get(name) for run in runs)]
    rows = [(name, *(run.get(name, "") for run in runs)) for name in names]
    commands = dict.fromkeys(run["command"] for run in runs)
    parts: list[Block] = [f"# {found['title']}", found["words"], *_figures(runs)]
    for run in runs:
        parts += [f"## {run['instructions']}"] if len(runs) > 1 else []
        parts += run["blocks"]
    parts += ["## This run", table(("", *["" for _ in runs]), rows, "l")]
    parts += [f"```sh\n{command}\n```" for command in commands]
    return "\n\n".join(text(part) for part in parts if part) + "\n"


def _dumped(value: Any, indent: str = "") -> str:
    """Return JSON with a line for each row of a table, so that diffs show what changed."""
    simple = not isinstance(value, (dict, list)) or not value
    if simple or (isinstance(value, list) and all(isinstance(each, str) for each in value)):
        return json.dumps(value, ensure_ascii=False)
    inner = indent + " "
    if isinstance(value, list):
        parts = [inner + _dumped(each, inner) for each in value]
    else:
        parts = [f"{inner}{json.dumps(key)}: {_dumped(each, inner)}" for key, each in value.items()]
    first, last = "[]" if isinstance(value, list) else "{}"
    return f"{first}\n" + ",\n".join(parts) + f"\n{indent}{last}"


def read(name: str, folder: Path = RESULTS) -> dict[str, Any]:
    """Return what a results file holds."""
    found: dict[str, Any] = json.loads((folder / f"{name}.json").read_text())
    return found


def keep(name: str, title: str, words: str, run: dict[str, Any], folder: Path = RESULTS) -> None:
    """Write a run to its file, in the place of the last one of the same instruction set."""
    path = folder / f"{name}.json"
    known = read(name, folder)["runs"] if path.exists() else []
    others = [
        each for each in known if each["instructions"] not in {run["instructions"], "", UNKNOWN}
    ]
    runs = sorted([*others, run], key=lambda each: str(each["instructions"]), reverse=True)
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(_dumped({"title": title, "words": words, "runs": runs}) + "\n")


def tabular(header: str, rows: Iterable[Iterable[Any]], align: str = "lr") -> list[Block]:
    """Return a table as the blocks of a page; the header's cells are separated by |."""
    return [table((name.strip() for name in header.split("|")), rows, align)]


def section(title: str, words: str, blocks: Iterable[Block]) -> list[Block]:
    """Return a section of a page."""
    return [f"## {title}", *([words] if words else []), *blocks]


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
