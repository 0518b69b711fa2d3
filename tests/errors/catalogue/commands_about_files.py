"""Errors of the commands that read and write files, as in `commands`; what cannot be typed."""

from __future__ import annotations

from indexplan.cli.common import open_either
from tests.errors.catalogue.made import (
    OPEN,
    Case,
    Command,
    locked,
    nothing,
    saved,
    spec_file,
    written,
)

BENCH = "bench --num-samples 9 --batch-size 2"

COMMANDS: list[Command] = [
    # verify
    ("verify", nothing),
    ("verify a.plan --world-size 0", saved),
    ("verify a.plan", nothing),
    # export
    ("export plan.json", spec_file),
    ("export plan.json out --epoch -1", spec_file),
    ("export plan.json out", lambda: spec_file(OPEN)),
    ("export plan.json out", lambda: (spec_file(), written("out"))),
    # bench
    ("bench --batch-size 2", nothing),
    (f"{BENCH} --remainder drop --world-size 9", nothing),
    ("build a.plan --s=1", nothing),
]

CASES: list[Case] = [
    (
        "a spec that is locked",
        lambda: (spec_file(), locked({"plan.json": 0}, lambda: open_either("plan.json"))),
    ),
]
