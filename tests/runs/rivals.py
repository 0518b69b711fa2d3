"""Everybody else as a driver of histories, and what is kept of that: the tables of the pages.

`loaders` get drawn stops and resumes, `trainers` an epoch through their own code with two stops,
and `torchft` groups that come and go. Each of a table runs in a process of its own. What they lose
is theirs to lose; what ours lose is wrong. With --keep the counts go into benchmarks/results, and
the tables of two pages are written again; `--histories 0 --keep` only writes. Not all trainers can
be installed together: run some with `--only`, where they are (Composer needs that).
"""

from __future__ import annotations

import importlib
import json
import logging
import os
import shlex
import sys
import time
import warnings
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any

from benchmarks.contenders import Contender
from benchmarks.measure.fresh import ROOT
from benchmarks.measure.surroundings import surroundings
from benchmarks.render.rows import run_of
from tests.histories import stories
from tests.histories.stories import Given, Record
from tests.runs import results

TABLES = {  # where each table is, and what writes its page
    "loaders": ("tests.runs.loaders", "tests.runs.page"),
    "trainers": ("tests.runs.frameworks", "tests.runs.through_page"),
    "torchft": ("tests.runs.groups.live", "tests.runs.groups.live"),
}
PATIENCE = 6 * 3600  # seconds for all histories of one, which may hang


@dataclass(frozen=True)
class Rival(Contender):
    """One of a table, ours among them.

    Its `most(given)` is how many histories it is given, and `live(story, given)` goes through the
    history of a story's number, and leaves a record of it.
    """

    def wrong(self, record: Record) -> list[str]:
        """Return what is wrong with the sum of all records."""
        return []


def run(kind: str, given: Given) -> int:
    """Give histories to a table's rivals, one after another; 1 if ours were wrong or one lacks."""
    home: Any = importlib.import_module(TABLES[kind][0])
    asked = [x for x in home.RIVALS if not given.only or {x.name, x.module} & {*given.only}]
    if not asked:
        raise SystemExit(f"--only must be of {[each.name for each in home.RIVALS]}")
    failed = 0
    for each in asked:
        child = get_context("fork").Process(target=_run, args=(kind, each, given))
        child.start()
        child.join(PATIENCE)
        if child.is_alive():
            print(f"{each.name} was ended after {PATIENCE} s")  # noqa: T201 (the report)
            child.kill()
            child.join()
        failed |= bool(child.exitcode)
    return failed


def _run(kind: str, rival: Any, given: Given) -> None:
    """Run one, in a process that has imported nothing of a rival before."""
    os.environ |= {"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore", "OTEL_SDK_DISABLED": "true"}
    warnings.simplefilter("ignore")  # more workers than cores, and deprecated calls of loaders
    logging.disable(logging.WARNING)
    standing = rival.standing()
    if standing["missing"]:
        stories.say(f"{rival.name}: {standing['missing']}")
        sys.exit(1)
    most = rival.most(given)
    asked = most if given.histories is None else given.histories
    given.histories = max(0, min(given.first + asked, most) - given.first)
    with given.stack:
        name = f"{kind} --only {shlex.quote(rival.name)}"
        num_wrong, found = stories.run(name, rival.live, given)
    for each in rival.wrong(found):
        stories.say(f"WRONG: {each}")
    if num_wrong or rival.wrong(found):
        sys.exit(1)
    if given.keep:
        keep(kind, rival, standing["version"], found)


def keep(kind: str, rival: Rival, version: str, found: Record) -> None:
    """Keep what one of a table came to, beside the others, and write the pages again."""
    home, page = map(importlib.import_module, TABLES[kind])
    raw = ROOT / "build" / "measured" / "loaders.json"
    run = results.read(page.NAME)["runs"][0]
    kept = run.get("records", {})
    if kind == "loaders":  # whose counts are too long for git
        kept = json.loads(raw.read_text()) if raw.exists() else {}
    if found:  # else only the tables are written again
        # no instruction set changes what is lost
        run = {**run_of(surroundings()), "instructions": ""}
        del run["run"], run["table"]
        last = kept.get(rival.name, {})
        ways = {way: {**last.get(way, {}), **found[way]} for way in found}
        date = time.strftime("%Y-%m-%d", time.gmtime())
        kept[rival.name] = {**last, "version": version, "missing": "", **ways, "date": date}
    kept = {each.name: kept[each.name] for each in home.RIVALS if each.name in kept}
    run |= {"command": f"python -m tests.histories {kind} --keep"}
    if kind == "loaders":
        raw.parent.mkdir(parents=True, exist_ok=True)
        raw.write_text(json.dumps(kept, indent=1))
    else:
        run["records"] = kept
    run["blocks"] = page.blocks(kept)
    waiting = [each.name for each in home.RIVALS if each.name not in kept]
    if kind != "loaders" or not waiting:
        results.keep(page.NAME, page.TITLE, page.WORDS, run)
    stories.say(f"the tables wait for {', '.join(waiting)}" if waiting else "all have run")
    if kind == "trainers" and not waiting:
        page.write(kept, run)
