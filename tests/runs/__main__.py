"""Run histories on all loaders and keep what they lose: `python -m tests.runs`.

The results are benchmarks/results/torture.json, the counts build/measured/torture.json. `--quick`
runs a few on each, checks the laws of the counts, and keeps nothing. `--only NAME` runs some
loaders again; `--render` runs nothing. `--history NUMBER` shows one history.

`--through` runs trainers and frameworks instead, through their own code, keeps what they came to in
benchmarks/results/through.json, and brings the tables of two pages up to date. Not all can be
installed together: run some with `--only`, in an environment of their own (Composer needs that).

`--live` runs groups under torchft that come and go, and keeps benchmarks/results/live.json.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.measure.fresh import ROOT, run_fresh
from benchmarks.measure.surroundings import surroundings
from benchmarks.render.rows import run_of
from tests.runs import frameworks, page, results, through_page
from tests.runs.groups import live
from tests.runs.histories import history
from tests.runs.loaders import LOADERS, Entry
from tests.runs.row import KINDS as KINDS_THROUGH
from tests.runs.row import WAYS

COUNTS = ROOT / "build" / "measured" / "torture.json"
QUICK = 6
"""Histories of `--quick`, without worker processes."""
HOURS = 6
"""What a loader has the time for, as every leg has its own limit."""


def run(entry: Entry, plain: int, with_workers: int) -> dict[str, Any]:
    """Torture a loader in a process of its own."""
    quiet = {"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    found: dict[str, Any] = run_fresh(
        "tests.runs.counting.of_loader",
        *(entry.name, plain, with_workers),
        seconds=HOURS * 3600,
        **quiet,
    )
    return found


def wrong(name: str, record: dict[str, Any]) -> list[str]:
    """Return what has to hold, and does not: ours lose nothing, and everybody's counts add up."""
    entry = next(entry for entry in LOADERS if entry.name == name)
    found = []
    for key in ("plain", "with_workers"):
        for kind, tally in record.get(key, {}).items():
            if tally["histories"] and not tally["samples"]:
                found.append(f"{name}, {kind}: no history went through its first pass")
            if entry.ours and (tally["lost"] or tally["twice"]):
                found.append(f"{name}, {kind}: {tally['examples']}")
    return found


def run_through(only: list[str] | None, kinds: tuple[str, ...]) -> int:
    """Run trainers and frameworks, and keep the records; 1 if ours was not exact, or one lacks."""
    kept = (results.RESULTS / "through.json").exists()
    data: dict[str, Any] = results.read("through")["runs"][0]["records"] if kept else {}
    for each in frameworks.FRAMEWORKS:
        if only and each.name not in only:
            continue
        record = frameworks.through(each.name, kinds, kinds)
        if not record["missing"]:
            last = data.get(each.name, {})
            ways = {way: {**last.get(way, {}), **record[way]} for way in WAYS if way in record}
            date = time.strftime("%Y-%m-%d", time.gmtime())
            data[each.name] = {**record, **ways, "date": date}
        print(each.name, record, flush=True)
    data = {each.name: data[each.name] for each in frameworks.FRAMEWORKS if each.name in data}
    problems = [each for name, record in data.items() for each in frameworks.wrong(name, record)]
    waiting = through_page.waiting(data)
    print(*problems, *(f"the tables wait for {name}" for name in waiting), sep="\n")
    if not problems:
        keep("through", through_page, data, surroundings(), {"records": data})
    if not problems and not waiting:
        through_page.write(data, results.read("through")["runs"][0])
    return 1 if problems or (waiting and not only) else 0


def run_live(*, quick: bool) -> int:
    """Run groups that come and go, and keep the counts; 1 if ours was not exact."""
    records = live.live(live.QUICK if quick else tuple(live.KINDS))
    for name, record in records.items():
        print(f"{name}: {record['missing'] or record['counts']}")
    problems = live.wrong(records)
    print(*problems, sep="\n")
    if not problems and not quick:
        keep("live", live, records, surroundings(), {"records": records})
    return 1 if problems else 0


def keep(
    name: str, page: Any, data: Any, around: dict[str, Any], more: Any, folder: Path | None = None
) -> None:
    """Keep results, which no instruction set changes, with the surroundings of the run."""
    of_run = {key: words for key, words in run_of(around).items() if key not in {"run", "table"}}
    run = {**of_run, "instructions": "", "command": "python -m tests.runs", **more}
    if name != "torture":
        run["command"] += f" --{name}"
    run["blocks"] = page.blocks(data)
    results.keep(name, page.TITLE, page.WORDS, run, folder or results.RESULTS)


def main() -> int:
    """Run the command line; 1 if ours lost or repeated a sample, or a loader could not be run."""
    parser = argparse.ArgumentParser(prog="python -m tests.runs", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a few histories, of which none stays")
    parser.add_argument("--only", action="append", help="a loader, or a framework; may be repeated")
    parser.add_argument("--histories", type=int, help="at most so many of each loader")
    parser.add_argument("--render", action="store_true", help="write again; run nothing")
    parser.add_argument("--through", action="store_true", help="trainers and frameworks")
    parser.add_argument("--kind", action="append", help="of --through: some of its runs again")
    parser.add_argument("--live", action="store_true", help="groups under torchft that come and go")
    parser.add_argument("--history", type=int, help="show a history; run nothing")
    options = parser.parse_args()
    if options.history is not None:
        print(history(options.history), history(options.history, with_workers=True), sep="\n")
        return 0
    if options.live:
        return run_live(quick=options.quick)
    if options.through:
        return run_through(options.only, tuple(options.kind or KINDS_THROUGH))
    data: dict[str, Any] = {"loaders": {}}
    if (options.render or options.only) and COUNTS.exists() and not options.quick:
        data = json.loads(COUNTS.read_text())
    asked = [] if options.render else options.only or [entry.name for entry in LOADERS]
    if asked:
        data.update(surroundings())
    for name in asked:
        entry = next(entry for entry in LOADERS if name in {entry.name, entry.module})
        most = QUICK if options.quick else options.histories or 10**9
        with_workers = 0 if options.quick else min(entry.with_workers, most // 10)
        record = run(entry, min(entry.histories, most), with_workers)
        data["loaders"][entry.name] = record
        print(f"{entry.name}: {record.get('missing') or page.summary(record)}", flush=True)
        if not options.quick:
            COUNTS.parent.mkdir(parents=True, exist_ok=True)
            COUNTS.write_text(json.dumps(data, indent=1))
    with tempfile.TemporaryDirectory() as folder:  # a quick run's: writing must not fail
        keep("torture", page, data, data, {}, Path(folder) if options.quick else None)
    problems = [each for name, record in data["loaders"].items() for each in wrong(name, record)]
    print(*problems, sep="\n")
    missing = [name for name, record in data["loaders"].items() if record["missing"]]
    return 1 if problems or (options.quick and missing) else 0


if __name__ == "__main__":
    sys.exit(main())
