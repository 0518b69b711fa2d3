"""Measure everything and keep the results: `python -m benchmarks.report`.

Each page has a file of benchmarks/results, whose rows a run writes in the place of those of the
last one of the same instruction set; where a machine has AVX-512, all is run with AVX2 code too.
The site makes its pages of these rows; README's table and the pictures follow. Rows of a run stay
in build/measured, so that `--only PART` can run a part again, and `--render` write the files again
without a run. Files go into the temporary folder, which TMPDIR names.

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
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.contenders import standing
from benchmarks.contenders.planners import RIVALS
from benchmarks.measure import bins, cold, contest, loading, orders, plan_files, quality, shards
from benchmarks.measure.fresh import ROOT, JobError
from benchmarks.measure.questions import KEYS
from benchmarks.measure.surroundings import INSTRUCTIONS, instructions, surroundings
from benchmarks.render import losing, pictures, planning
from benchmarks.render import rows as kept
from benchmarks.render.pages import PAGES
from benchmarks.render.rows import Row
from benchmarks.render.tables import markdown

Data = dict[str, Any]
KEPT = ROOT / "build" / "measured"
MODULES = {
    "quality": quality,
    "loading": loading,
    "cold": cold,
    "plan_files": plan_files,
    "orders": orders,
    "bins": bins,
    "shards": shards,
}
PARTS = (*KEYS, *MODULES, "pytest")
"""The questions to the rivals, and the rest."""
OF_PAGE = {"planning": tuple(KEYS), "timings": ("pytest", "cold"), "plan-files": ("plan_files",)}
"""The parts of pages that have not one part of their own name."""
ONCE = ("quality", "loading", "shards")
"""Parts that no instruction set changes."""
ONE_RUN = ("machine", "commit", "versions")
"""What the parts of a page have in common."""


def run_pytest(*, quick: bool) -> list[Row]:
    """Run the pytest benchmarks, and return their rows; raise if an output is wrong."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "benchmarks.json"
        command = [sys.executable, "-m", "pytest", "benchmarks", "-q", f"--benchmark-json={path}"]
        command += ["--benchmark-columns=min,median,rounds", "--benchmark-sort=name"]
        subprocess.run([*command, *(["--quick"] if quick else [])], cwd=ROOT, check=True)
        return [row_of(entry) for entry in json.loads(path.read_text())["benchmarks"]]


def row_of(entry: Data) -> Row:
    """Return one of pytest's benchmarks as a row."""
    stats, facts = entry["stats"], dict(entry["extra_info"])
    row = {"table": entry["group"], "case": facts.pop("case"), "who": facts.pop("who", ""), **facts}
    row |= {"seconds": stats["min"], "median_seconds": stats["median"], "rounds": stats["rounds"]}
    row |= {"ns": stats["min"] / row["indices"] * 1e9}
    row |= {"median_ns": stats["median"] / row["indices"] * 1e9}
    if "batches" in row:
        row["indices_per_second"] = row["indices"] / stats["median"]
        row["batch_seconds"] = stats["median"] / row["batches"]
    return row


def run(parts: list[str], data: Data, keep: Callable[[Data], object], *, quick: bool) -> Data:
    """Run some parts and return all that is known; `keep` it after each part."""
    asked, of_run = [key for key in KEYS if key in parts], surroundings()
    known = {"contest": {}, "rows": {}, "where": {}, **data}

    def done(part: str, rows: list[Row]) -> None:
        known["rows"][part], known["where"][part] = rows, of_run
        keep(known)

    if "pytest" in parts:  # first, as wrong outputs end the run
        done("pytest", run_pytest(quick=quick))
    rivals = standing(RIVALS)
    here = [row["who"] for row in rivals if not row["missing"]]
    quickly = contest.measure_quickly(asked, here) if quick else {}
    for key in asked:
        found = quickly[key] if quick else contest.measure(key, here, known["contest"])
        known["contest"][key] = found
        done(key, [*(rivals if key == next(iter(KEYS)) else []), *contest.rows(key, found)])
    for name, module in MODULES.items():
        if name in parts:
            done(name, module.measure(quick=quick))
    return json.loads(json.dumps(known))  # so that writing sees what `--render` would


def write(data: Data, parts: list[str], folder: Path) -> list[losing.Loss]:
    """Keep the results of the pages whose parts are all there; return what nobody explained."""
    unexplained = []
    for name, page in PAGES.items():
        of_page = OF_PAGE.get(name, (name,))
        if not set(data["rows"]).issuperset(of_page) or not set(parts) & set(of_page):
            continue
        runs = [data["where"][part] for part in of_page]
        if any(run[key] != runs[0][key] for run in runs for key in ONE_RUN):
            print(f"NOT WRITTEN, {name}: run {', '.join(of_page)} again, as one run")
            continue
        around = {**runs[0], **({"instructions": ""} if set(of_page) <= set(ONCE) else {})}
        head = kept.run_of(around)
        found = [{"run": head["run"], **row} for part in of_page for row in data["rows"][part]]
        reached = page.targets(found)
        kept.keep(name, [head, *reached, *found], folder)
        markdown(page, kept.read(name, folder))  # so that what no page can show is no result
        for row in reached:
            print(f"{name}: {row['case']}: {row['value']}")
        losses = losing.losses(page, found) if page.rivals else []
        unexplained += [loss for loss in losses if not loss.why()]
    return unexplained


def finish() -> None:
    """Bring README and the pictures up to date with the results that are kept."""
    planning.to_readme(ROOT / "README.md")
    pictures.draw(ROOT / "docs" / "images")


def measure(parts: list[str], *, quick: bool, render: bool) -> int:
    """Measure with one instruction set; 1 if an output was wrong, or a loss has no reason."""
    file = KEPT / f"{surroundings()['instructions']}.json"
    data: Data = json.loads(file.read_text()) if file.exists() and not quick else {}

    def keep(data: Data) -> None:
        if not quick:
            KEPT.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(data, indent=1))

    if not render:
        try:
            data = run(parts, data, keep, quick=quick)
        except (JobError, subprocess.CalledProcessError) as error:
            print(error, file=sys.stderr)
            return 1
    with tempfile.TemporaryDirectory() as folder:  # a quick run's: writing must not fail
        unexplained = write(data, parts, Path(folder) if quick else kept.RESULTS) if data else []
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
    parser.add_argument("--only", action="append", choices=PARTS, help="a part; may be repeated")
    parser.add_argument("--render", action="store_true", help="write again; run nothing")
    parser.add_argument("--code", help="the instruction set that this process runs, and no other")
    options = parser.parse_args()
    parts = options.only or list(PARTS)
    if options.quick or options.code:
        return measure(parts, quick=options.quick, render=options.render)
    failed = 0
    for number, code in enumerate(instructions()):  # each in a process, as numba reads it once
        left = [part for part in parts if number == 0 or part not in ONCE]
        if not left:
            continue
        command = [sys.executable, "-m", "benchmarks.report", f"--code={code}"]
        command += [*(f"--only={part}" for part in left), *["--render"] * options.render]
        environment = {**os.environ, **INSTRUCTIONS.get(code, {})}
        failed |= subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
    finish()
    return failed


if __name__ == "__main__":
    sys.exit(main())
