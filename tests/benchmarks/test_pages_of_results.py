"""The one writer of tables writes what the rows say.

Numbers, the best rival of a case and who is ahead of us are held by tests/test_docs.py, which has
the table of docs/benchmarks.md, of all kept rows.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.render import losing, tables
from benchmarks.render import rows as kept
from benchmarks.render.pages import PAGES
from benchmarks.render.rows import UNKNOWN, Row
from benchmarks.render.tables import (
    Column,
    Page,
    Table,
    less,
    markdown,
    refresh,
    time,
)

SPEED = Table("speed", (Column("seconds", "to build", time, less),))
TEXT = """# Title

About.

---

{{ ahead }}

## Speed

Of {{ speed.num }} builds.

{{ speed }}

## Starts

{{ starts }}

---

## This run

{{ run }}

```sh
{{ install }}make it
```
"""


@pytest.fixture(autouse=True)
def texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a page of this name have a text besides the pages that there are."""
    for name in PAGES:
        (tmp_path / f"{name}.md").write_text(PAGES[name].text())
    (tmp_path / "a.md").write_text(TEXT)
    monkeypatch.setattr(tables, "TEXTS", tmp_path)


def rows_of(run: str, ours: float, theirs: float) -> list[Row]:
    """Return the rows of a run."""
    found: list[Row] = [
        {"run": run, "table": "speed", "case": "n = 1e6", "who": who, "seconds": seconds}
        for who, seconds in (("indexplan", ours), ("rival", theirs))
    ]
    found[0]["num"] = 1234
    where = {"run": run, "table": "run", "instructions": run, "date": "2026-11-24"}
    return [where, *found]


def test_runs_become_a_page(tmp_path: Path) -> None:
    """Each run has a part; a new run takes the place of its own."""
    for run, ours in ((UNKNOWN, 9), ("AVX-512", 1), ("AVX2", 4), ("AVX2", 3)):
        kept.keep("a", rows_of(run, ours, 2), tmp_path)
    starts = Table("starts", SPEED.columns)
    page = markdown(Page("a", (SPEED, starts)), kept.read("a", tmp_path))
    assert "## Speed\n\nOf 1,234 builds.\n\n| case | who |" in page
    assert "## Starts" not in page  # no row
    assert "mosaicml-streaming==0.13.0\nmake it\n```\n" in page
    assert page.startswith("# Title\n\nAbout.\n")
    assert page.index("## AVX2\n") < page.index("| indexplan | 3 s |") < page.index("## AVX-512\n")
    assert "9 s" not in page


def test_losses_become_a_table() -> None:
    """A row for each table and rival: of many cells the first and the last, a reason once."""
    planning = {each.key: each for each in PAGES["planning"].tables}
    rival = "Megatron-style cached .npy"
    share, worlds = planning["share"], planning["worlds"]
    found = [
        losing.Loss(share, share.columns[0], "One rank's share", rival, f"n = {n}", f"{n} s", "9 s")
        for n in range(losing.MOST_CELLS + 1)
    ]
    title = "Cost against the world size"
    other = losing.Loss(worlds, worlds.columns[0], title, rival, "n = 1", "2 s", "3 s")
    written = losing.section([*found, other, other._replace(rival="Nobody")])
    *_, first, second, third = written[-1].splitlines()
    assert "8 cells, from n = 0: 0 s, ours 9 s; to n = 7: 7 s, ours 9 s | It only" in first
    assert (
        f"| Cost against the world size | {rival} | n = 1: 2 s, ours 3 s | As for \"One rank's "
        f'share", {rival}. |'
    ) == second
    assert "Nobody | n = 1: 2 s, ours 3 s | **Not explained.** |" in third
    assert "Nowhere." in losing.section([])


def test_a_rival_that_stopped_says_why() -> None:
    """Bold where it was tried, and with the size that stopped it where it was not."""
    rows = rows_of("", 3, 2)
    del rows[-1]["seconds"]
    across = Table("speed", SPEED.columns, (("n", "{case}"),), across="who")
    for more_of_it, words in (
        ({"stop": "memory"}, "**memory**"),
        ({"stop": "memory", "since": "1e9"}, "memory, at 1e9 already"),
    ):
        rows[-1] |= more_of_it
        assert [f"| n = 1e6 | **3 s** | {words} |"] == across.markdown(rows).splitlines()[2:]
        assert [] == losing.losses(Page("a", (across,)), rows)


@pytest.mark.parametrize("name", PAGES)
def test_kept_rows_become_pages(name: str) -> None:
    """Every row that is kept stands in a table of its page, and every loss is explained."""
    rows = kept.read(name)
    page = PAGES[name]
    markdown(page, rows)
    others = {"run", "who", "chance", "conditions", "plan"}
    assert {row["table"] for row in rows} <= {each.key for each in page.tables} | others
    if page.rivals:
        losses = [loss for run in kept.runs(rows) for loss in losing.losses(page, run)]
        assert [] == [(loss.title, loss.rival) for loss in losses if not loss.why()]


def test_a_block_is_replaced(tmp_path: Path) -> None:
    """What stands between a page's markers is, and a page without them is an error."""
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- x -->\nold\n<!-- /x -->\nb\n")
    refresh(page, "x", ["new", "lines", ""])
    assert "a\n<!-- x -->\nnew\nlines\n<!-- /x -->\nb\n" == page.read_text()
    with pytest.raises(AssertionError, match="must have"):
        refresh(page, "y", [])
