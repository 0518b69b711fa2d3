"""Run all benchmarks and write their pages and pictures: `python -m benchmarks.report`.

The pages are docs/benchmarks.md, docs/orders-measured.md, docs/bins-measured.md,
docs/shards-measured.md and docs/plan-file-measured.md; the block in README.md and the table in
docs/plan-file.md follow. Files go into the temporary folder, which TMPDIR names.

`--quick` runs the same code on small sizes in some minutes, to see that all outputs are right; its
timings mean nothing, so it keeps no page unless `--output` names a folder. `--only PART` runs some
parts again, and takes the others from the file that `--json` names. `--render` runs nothing.
"""

from __future__ import annotations

import argparse
import json
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
from benchmarks.measure.surroundings import surroundings
from benchmarks.render import benchmarks, figures, losing, pictures, summary
from benchmarks.render import bins as bins_page
from benchmarks.render import orders as orders_page
from benchmarks.render import plan_files as plan_files_page
from benchmarks.render import shards as shards_page
from benchmarks.render.results import Results
from benchmarks.render.writer import refresh

DOCS = ROOT / "docs"
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
Data = dict[str, Any]


def run_pytest(*, quick: bool) -> Data:
    """Run the pytest benchmarks; raise if an output is wrong."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "benchmarks.json"
        command = [sys.executable, "-m", "pytest", "benchmarks", "-q", f"--benchmark-json={path}"]
        command += ["--benchmark-columns=min,median,rounds", "--benchmark-sort=name"]
        subprocess.run([*command, *(["--quick"] if quick else [])], cwd=ROOT, check=True)
        result: Data = json.loads(path.read_text())
    # the raw timings of each round are most of the file, and are shown nowhere
    for entry in result["benchmarks"]:
        entry["stats"] = {key: entry["stats"][key] for key in ("min", "median", "rounds")}
    return result


def run(parts: list[str], data: Data, keep: Callable[[Data], object], *, quick: bool) -> Data:
    """Run some parts and return all that is known, as JSON types; `keep` it after each part."""
    data = {**data, **surroundings(), "quick": quick, "rivals": standing(RIVALS)}
    here = [row["name"] for row in data["rivals"] if not row["missing"]]
    asked = [key for key in KEYS if key in parts]
    if "pytest" in parts:  # first, as wrong outputs end the run
        data["pytest"] = run_pytest(quick=quick)
        keep(data)
    if quick:
        data["contest"] = contest.measure_quickly(asked, here)
        keep(data)
    for key in [] if quick else asked:
        known = data.get("contest", {})
        data["contest"] = {**known, key: contest.measure(key, here, known)}
        keep(data)
    for name, module in MODULES.items():
        if name in parts:
            data[name] = module.measure(quick=quick)
            keep(data)
    return json.loads(json.dumps(data))  # so that rendering sees what `--render` would


def write(data: Data, folder: Path) -> None:
    """Write the pages and pictures of what was measured; in docs, also what other pages show."""
    results = Results(data)
    (folder / "images").mkdir(parents=True, exist_ok=True)
    pictures.plot(data, results, folder / "images")
    pages, blocks = {}, {}
    if data.keys() & ({"contest", *MODULES, "pytest"} - {"plan_files", "orders", "bins", "shards"}):
        pages["benchmarks.md"] = benchmarks.page(data, results)
        blocks["README.md", "benchmarks"] = summary.summary(results)
    if "orders" in data:
        pages["orders-measured.md"] = orders_page.page(data)
    if "bins" in data:
        pages["bins-measured.md"] = bins_page.page(data)
    if "shards" in data:
        pages["shards-measured.md"] = shards_page.page(data)
    if "plan_files" in data:
        pages["plan-file-measured.md"] = plan_files_page.page(data)
        table = plan_files_page.alternatives(data["plan_files"])
        blocks["docs/plan-file.md", "alternatives"] = table
    for name, lines in pages.items():
        (folder / name).write_text("\n".join(lines).rstrip("\n") + "\n")
    if folder == DOCS:
        for (page, name), lines in blocks.items():
            refresh(ROOT / page, name, lines)


def conclude(data: Data) -> int:
    """Say what was reached; 1 if a rival is ahead in a row and nobody has said why."""
    results = Results(data)
    for all_figures, found in (
        (figures.FIGURES, results),
        (plan_files_page.FIGURES, data),
        (orders_page.FIGURES, data),
        (bins_page.FIGURES, data),
        (shards_page.FIGURES, data),
    ):
        for figure in all_figures:
            value = figure.value(found) or 0
            print(f"{figure.verdict(found):13}{figure.name}: {value:.3g} {figure.unit}")
    losses = losing.all_losses(results)
    for part, page in {"orders": orders_page, "bins": bins_page, "shards": shards_page}.items():
        losses += page.losses(data) if part in data else []
    unexplained = [loss for loss in losses if not loss.why()]
    for loss in unexplained:
        print(
            f"NOT EXPLAINED: {loss.title}, {loss.row}: {loss.rival} {loss.theirs}, ours {loss.ours}"
        )
    return 1 if unexplained else 0


def main() -> int:
    """Run the command line; 1 if an output was wrong, or a rival is ahead and nobody says why."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.report", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes: outputs, not figures")
    parser.add_argument("--only", action="append", choices=PARTS, help="a part; may be repeated")
    parser.add_argument("--json", type=Path, help="where to keep the measurements")
    parser.add_argument("--render", type=Path, help="render measurements kept before; run nothing")
    parser.add_argument("--output", type=Path, help="where pages and pictures go; default: docs")
    options = parser.parse_args()
    data: Data = {}
    if options.render or (options.only and options.json and options.json.exists()):
        data = json.loads((options.render or options.json).read_text())

    def keep(data: Data) -> None:
        if options.json:
            options.json.write_text(json.dumps(data, indent=1))

    if not options.render:
        try:
            data = run(options.only or list(PARTS), data, keep, quick=options.quick)
        except (JobError, subprocess.CalledProcessError) as error:
            print(error, file=sys.stderr)
            return 1
    with tempfile.TemporaryDirectory() as folder:  # a quick run's: they must not fail
        write(data, options.output or (Path(folder) if data["quick"] else DOCS))
    if data["quick"]:
        print("all outputs are right; the timings of a quick run mean nothing")
        return 0
    return conclude(data)


if __name__ == "__main__":
    sys.exit(main())
