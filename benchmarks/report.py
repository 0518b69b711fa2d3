"""Measure everything and keep the results: `python -m benchmarks.report`.

Each page's results are a file of benchmarks/results, in which a run takes the place of the last one
of the same instruction set; where a machine has AVX-512, all is run with AVX2 code too. README's
table and the pictures follow. Raw measurements stay in build/measured, so that `--only PART` can
run a part again, and `--render` write the files again without a run. Files go into the temporary
folder, which TMPDIR names.

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
from typing import Any, NamedTuple

from benchmarks.contenders import standing
from benchmarks.contenders.planners import RIVALS
from benchmarks.measure import bins, cold, contest, loading, orders, plan_files, quality, shards
from benchmarks.measure.fresh import ROOT, JobError
from benchmarks.measure.questions import KEYS
from benchmarks.measure.surroundings import INSTRUCTIONS, instructions, surroundings
from benchmarks.render import bins as bins_page
from benchmarks.render import figures, losing, page, pictures, planning, timings
from benchmarks.render import loading as loading_page
from benchmarks.render import orders as orders_page
from benchmarks.render import plan_files as plan_files_page
from benchmarks.render import quality as quality_page
from benchmarks.render import shards as shards_page
from benchmarks.render.results import Results
from benchmarks.render.writer import INSTALL, Figure, judged, where

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
ONCE = ("quality", "loading", "shards")
"""Parts that no instruction set changes."""
ONE_RUN = ("machine", "commit", "versions")
"""What the parts of a page have in common."""


class Page(NamedTuple):
    """What is measured for a page, and how its results are written."""

    title: str
    words: str
    parts: tuple[str, ...]
    blocks: Callable[[Data], list[page.Block]]
    figures: tuple[Figure, ...] = ()
    losses: Callable[[Any], list[losing.Loss]] = lambda _: []
    found: Callable[[Data], Any] = lambda data: data
    """What figures and losses are read from."""
    install: str = INSTALL


PAGES = {
    "planning": Page(
        "Planning an epoch",
        "One thread, in fresh processes. Every output is verified after timing; setting up and "
        "compilation are not timed.",
        tuple(KEYS),
        planning.blocks,
        figures.PLANNING,
        losing.of_contest,
        Results,
    ),
    "timings": Page(
        "Costs of calls",
        "One thread unless said otherwise. Times are medians; ratios are of minima, since noise "
        "only adds time.",
        ("pytest", "cold"),
        timings.blocks,
        figures.TIMINGS,
        losing.of_timings,
        Results,
    ),
    "quality": Page(
        "Quality of the orders", "How random they are.", ("quality",), quality_page.blocks
    ),
    "loading": Page(
        "Training input from a file",
        "Loaders that read a memory-mapped file.",
        ("loading",),
        loading_page.blocks,
        loading_page.FIGURES,
    ),
    "orders": Page(
        "Weights, classes and mixtures",
        "Orders that repeat samples, and those of several datasets, beside other libraries.",
        ("orders",),
        orders_page.blocks,
        orders_page.FIGURES,
        orders_page.losses,
        install=orders_page.INSTALLED,
    ),
    "bins": Page(
        "Bins of samples",
        "Packing, length grouping, balance and windows, beside other libraries.",
        ("bins",),
        bins_page.blocks,
        bins_page.FIGURES,
        bins_page.losses,
        install=bins_page.INSTALLED,
    ),
    "shards": Page(
        "Downloads of shards",
        "What nodes download, which is counted. Targets are of 1e5 uneven shards of 512 samples in "
        f"the mean, on {shards_page.FIGURE_NODES} nodes. [Shards](../../docs/shards.md) says how "
        "to choose.",
        ("shards",),
        shards_page.blocks,
        shards_page.FIGURES,
        shards_page.losses,
    ),
    "plan-files": Page(
        "Builds and reads of plan files",
        "What it takes to build, verify and read a plan of a billion indices.",
        ("plan_files",),
        plan_files_page.blocks,
        plan_files_page.FIGURES,
    ),
}


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
    data = {**data, "rivals": standing(RIVALS), "where": data.get("where", {})}
    here = [row["name"] for row in data["rivals"] if not row["missing"]]
    asked, of_run = [key for key in KEYS if key in parts], surroundings()

    def done(*parts: str) -> None:
        data["where"] = {**data["where"], **dict.fromkeys(parts, of_run)}
        keep(data)

    if "pytest" in parts:  # first, as wrong outputs end the run
        data["pytest"] = run_pytest(quick=quick)
        done("pytest")
    if quick:
        data["contest"] = contest.measure_quickly(asked, here)
        done(*asked)
    for key in [] if quick else asked:
        known = data.get("contest", {})
        data["contest"] = {**known, key: contest.measure(key, here, known)}
        done(key)
    for name, module in MODULES.items():
        if name in parts:
            data[name] = module.measure(quick=quick)
            done(name)
    return json.loads(json.dumps(data))  # so that rendering sees what `--render` would


def write(data: Data, parts: list[str], folder: Path) -> list[losing.Loss]:
    """Keep the results of the pages whose parts are all there; return what nobody explained."""
    unexplained = []
    known = {*data, *data.get("contest", {})}
    for name, each in PAGES.items():
        if not known.issuperset(each.parts) or not set(parts) & set(each.parts):
            continue
        runs = [data["where"][part] for part in each.parts]
        if any(run[key] != runs[0][key] for run in runs for key in ONE_RUN):
            print(f"NOT WRITTEN, {name}: run {', '.join(each.parts)} again, as one run")
            continue
        of_page = {**data, **runs[0]}
        found = each.found(of_page)
        losses, told = each.losses(found), judged(each.figures, found)
        no_matter = {"instructions": ""} if set(each.parts) <= set(ONCE) else {}
        run_of = {
            **where(of_page),
            **no_matter,
            "command": f"{each.install}\npython -m benchmarks.report",
            "figures": told,
            "blocks": [*(losing.section(losses) if losses else []), *each.blocks(of_page)],
        }
        page.keep(name, each.title, each.words, run_of, folder)
        for figure in told:
            print(f"{name}: {figure['name']}: {figure['measured']}, {figure['target']}")
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
        unexplained = write(data, parts, Path(folder) if quick else page.RESULTS) if data else []
    if quick:
        print("all outputs are right; the timings of a quick run mean nothing")
        return 0
    for loss in unexplained:
        print(f"NOT EXPLAINED: {loss}")
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
