"""The table of docs/benchmarks.md: what is measured, ours, the best rival, and where we lose."""

from __future__ import annotations

from collections import Counter

from benchmarks.render import losing
from benchmarks.render import rows as kept
from benchmarks.render.pages import PAGES
from benchmarks.render.tables import TEXTS, table


def measured() -> str:
    """Return the table of the rows that are kept, of their first run; where we lose comes first."""
    lines, found = [], dict[str, tuple[list[kept.Row], list[losing.Loss]]]()
    for line in (TEXTS / "measured.md").read_text().splitlines():
        if not line.startswith("| `"):
            continue
        name, key, column, case, words = (cell.strip(" `") for cell in line.strip("|").split(" | "))
        if name not in found:
            rows = kept.runs(kept.read(name))[0]
            found[name] = rows, losing.losses(PAGES[name], rows)
        rows, losses = found[name]
        (of_key,) = (each for each in PAGES[name].tables if each.key == key)
        (shown,) = (each for each in of_key.compared or of_key.columns if each.key == column)
        ahead = Counter(each.rival for each in losses if each[:2] == (of_key, shown))
        where = "; ".join(f"{who} ({num})" for who, num in ahead.items())
        link = f"[{words}](../benchmarks/results/{name}.jsonl)"
        lines.append((link, *of_key.facing(rows, shown, case), where))
    titles = ("what", "indexplan", "best rival", "ahead somewhere (in how many cases)")
    return table(titles, sorted(lines, key=lambda line: not line[-1]), "lrrl")
