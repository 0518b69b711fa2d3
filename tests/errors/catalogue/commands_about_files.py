"""Errors of the commands that read and write files, as in `commands`; what cannot be typed."""

from __future__ import annotations

from indexplan.cli.common import open_either
from tests.errors.catalogue.made import (
    BUILD,
    OPEN,
    Case,
    Command,
    locked,
    nothing,
    spec_file,
    written,
)

BENCH = "bench --num-samples 9 --batch-size 2"

COMMANDS: list[Command] = [
    # verify
    # export
    ("export plan.json out", lambda: spec_file(OPEN), "export plan.json out --world-size 2"),
    ("export plan.json out", lambda: (spec_file(), written("out")), "export plan.json other"),
    # bench
    ("bench --batch-size 2", nothing, BENCH),
    (
        f"{BENCH} --remainder drop --world-size 9",
        nothing,
        "bench --num-samples 9 --batch-size 1 --remainder drop --world-size 9",
    ),
    ("build a.plan --s=1", nothing, f"{BUILD} --sub-epochs=1"),
]

CASES: list[Case] = [
    (
        "a spec that is locked",
        lambda: (spec_file(), locked({"plan.json": 0}, lambda: open_either("plan.json"))),
    ),
]
