"""Counts as they are kept, in benchmarks/results/*.json: a page's blocks, and as Markdown.

A file holds what one page of the site shows: a title, words, and the last run, with its
surroundings and its blocks, which are Markdown or tables. The site makes the page when it is built
(docs/site/hooks.py).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.render import tables
from benchmarks.render.rows import RESULTS

Table = dict[str, Any]
Block = str | Table


def text(block: Block) -> str:
    """Return a block as Markdown."""
    if isinstance(block, str):
        return block
    return tables.table(block["columns"], block["rows"], block["align"])


def tabular(header: str, rows: Iterable[Iterable[Any]], align: str = "lr") -> list[Block]:
    """Return a table as the blocks of a page; the header's cells are separated by |."""
    cells = [[str(cell) for cell in row] for row in rows]
    columns = [name.strip() for name in header.split("|")]
    return [{"columns": columns, "align": align, "rows": cells}]


def markdown(file: str) -> str:
    """Return the page of a file, given by its text."""
    found = json.loads(file)
    (run,) = found["runs"]
    rows = [(name, run[name]) for name in tables.RUN if run.get(name)]
    parts = [f"# {found['title']}", found["words"], *map(text, run["blocks"])]
    parts += ["## This run", tables.table(("", ""), rows, "l"), f"```sh\n{run['command']}\n```"]
    return "\n\n".join(part for part in parts if part) + "\n"


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
    """Write a run to its file, in the place of the last one."""
    folder.mkdir(parents=True, exist_ok=True)
    page = {"title": title, "words": words, "runs": [run]}
    (folder / f"{name}.json").write_text(_dumped(page) + "\n")
