"""Run every benchmark and keep the rows: `python -m benchmarks.report`.

It runs `pytest benchmarks`, the nightly ones too, and where a machine has AVX-512 all again with
AVX2 code. Each page has a file of benchmarks/results, in which the rows of a run take the place of
those of the last one of its instruction set; tables, pictures and the site's pages follow. `--only
PAGE` measures a page again. What pytest wrote stays in build/measured.

`--quick` runs the same code on small sizes in some minutes, to see that all outputs are right; its
timings mean nothing, so it keeps none.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.contenders import standing
from benchmarks.measure import contest
from benchmarks.measure.fresh import ROOT
from benchmarks.measure.surroundings import INSTRUCTIONS, instructions, surroundings
from benchmarks.render import losing, pictures, summary
from benchmarks.render import rows as kept
from benchmarks.render.pages import PAGES, to_readme
from benchmarks.render.rows import Row
from benchmarks.render.tables import markdown, refresh

Data = dict[str, Any]
KEPT = ROOT / "build" / "measured"
ONCE = ("quality", "loading", "shards", "tables", "starts")
"""Pages that no instruction set changes, or hardly."""


def tests_of(pages: list[str]) -> list[str]:
    """Return what pytest is to run for some pages; everything for all."""
    if set(pages) == set(PAGES):
        return ["benchmarks"]
    files = [f"benchmarks/test_{page.replace('-', '_')}.py" for page in pages]
    return files + ["benchmarks/test_startup.py"] * ("timings" in pages)


def run(pages: list[str], file: Path, *, quick: bool) -> int:
    """Let pytest run the benchmarks of pages, and write what it found; its exit status."""
    command = [sys.executable, "-m", "pytest", "-q", *tests_of(pages), f"--benchmark-json={file}"]
    command += ["--benchmark-columns=min,median,rounds", "--benchmark-sort=name"]
    command += ["--quick"] if quick else ["-m", "nightly or not nightly"]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def rows_of(entry: Data) -> list[Row]:
    """Return what one of pytest's benchmarks found as rows of its page."""
    facts, stats = dict(entry["extra_info"]), entry["stats"]
    page = facts.pop("page")
    if "rows" in facts:
        return list(facts["rows"])
    row = {"table": entry["group"], "case": facts.pop("case"), "who": facts.pop("who", ""), **facts}
    if page == "planning":
        return contest.rows(row)
    if "indices" in row:
        row |= {"seconds": stats["min"], "median_seconds": stats["median"]}
        row |= {"ns": stats["min"] / row["indices"] * 1e9, "rounds": stats["rounds"]}
        row |= {"median_ns": stats["median"] / row["indices"] * 1e9}
    if "process_seconds" in row:
        row |= {"seconds": stats["min"], "median_seconds": stats["median"]}
    if "batches" in row:
        row["indices_per_second"] = row["indices"] / stats["median"]
        row["batch_seconds"] = stats["median"] / row["batches"]
    return [row]


def keep(entries: list[Data], around: Data, folder: Path) -> list[losing.Loss]:
    """Keep the rows of the pages that were measured; return the losses that nobody explained."""
    found: dict[str, list[Row]] = {}
    for entry in entries:
        found.setdefault(entry["extra_info"]["page"], []).extend(rows_of(entry))
    unexplained = []
    for name, rows in found.items():
        page = PAGES[name]
        head = kept.run_of({**around, **({"instructions": ""} if name in ONCE else {})})
        of_run = [*standing(tuple(page.compared.values())), *rows]
        of_run = [{"run": head["run"], **row} for row in of_run]
        kept.keep(name, [head, *of_run], folder)
        markdown(page, kept.read(name, folder))  # so that what no page can show is no result
        losses = losing.losses(page, of_run) if page.rivals else []
        unexplained += [loss for loss in losses if not loss.why()]
    return unexplained


def measure(pages: list[str], *, quick: bool) -> int:
    """Measure with one instruction set; 1 if an output was wrong, or a loss has no reason."""
    around = surroundings()
    with tempfile.TemporaryDirectory() as folder:
        file = (Path(folder) if quick else KEPT) / f"{around['instructions']}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        failed = run(pages, file, quick=quick)
        if failed:
            return failed
        entries = json.loads(file.read_text())["benchmarks"]
        unexplained = keep(entries, around, Path(folder) if quick else kept.RESULTS)
    if quick:
        print("all outputs are right; the timings of a quick run mean nothing")
        return 0
    for loss in unexplained:
        print(f"NOT EXPLAINED: {loss.title}, {loss.case}: {loss.rival}")
    return 1 if unexplained else 0


def main() -> int:
    """Run the command line; 1 if an output was wrong, or a rival is ahead and nobody says why."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.report", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes: outputs, not figures")
    parser.add_argument("--only", action="append", choices=PAGES, help="a page; may be repeated")
    parser.add_argument("--code", help="the instruction set that this process runs, and no other")
    options = parser.parse_args()
    pages = options.only or list(PAGES)
    if options.quick or options.code:
        return measure(pages, quick=options.quick)
    failed = 0
    for number, code in enumerate(instructions()):  # each in a process, as numba reads it once
        left = [page for page in pages if number == 0 or page not in ONCE]
        if not left:
            continue
        command = [sys.executable, "-m", "benchmarks.report", f"--code={code}"]
        command += [f"--only={page}" for page in left]
        environment = {**os.environ, **INSTRUCTIONS.get(code, {})}
        failed |= subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
    to_readme(ROOT / "README.md")
    refresh(ROOT / "docs" / "benchmarks.md", "measured", [summary.measured()])
    pictures.draw(ROOT / "docs" / "images")
    return failed


if __name__ == "__main__":
    sys.exit(main())
