"""Errors of the commands that ask about plans, as in `commands`."""

from __future__ import annotations

import indexplan as ip
from tests.errors.catalogue.made import (
    OPEN,
    WHOLE,
    Command,
    edited,
    nothing,
    saved,
    spec_file,
    written,
)


def changed_data() -> None:
    """Build a plan for a folder that has another file by now."""
    written("data/a.txt")
    plan = ip.Plan(ip.Sequential(1), batch_size=2)
    ip.save(plan, "a.plan", dataset=ip.Dataset.scan("data"))
    written("data/b.txt")


COMMANDS: list[Command] = [
    # show
    ("show", nothing),
    ("show a.plan", nothing),
    ("show a.plan", lambda: edited(library_version="9")),
    ("show plan.json", lambda: written("plan.json", "{}")),
    ("show plan.json --column rows.npy", spec_file),
    ("show plan.json --rank 1", spec_file),
    ("show plan.json --stop 5", spec_file),
    ("show plan.json --stop 5 --epoch 1", spec_file),
    ("show plan.json --most-epochs four", spec_file),
    ("show plan.json --step 99", spec_file),
    ("show plan.json --sub-epoch 1", spec_file),
    ("show data", lambda: written("data/a.txt")),
    ("show spec.txt", lambda: written("spec.txt", WHOLE.to_json())),
    ("show plan.json --epoch 0 --step 99", spec_file),
    ("show plan.json --epoch 0 --step x", spec_file),
    ("show plan.json --epoch 0 --step 0 --rank 2", spec_file),
    ("show plan.json --epoch 0 --step 0", lambda: spec_file(OPEN)),
    ("show plan.json --epoch -1", spec_file),
    ("show plan.json --epoch 0 --sub-epoch 1", spec_file),
    ("show plan.json --world-size 0", spec_file),
    ("show a.plan --column a.npy", saved),
    ("show plan.json --dataset data", lambda: (spec_file(), written("data/a.txt"))),
    ("show plan.json --pattern *.jpg", spec_file),
    ("show a.plan --dataset data", changed_data),
    # plot
    ("plot plan.json", spec_file),
    ("plot plan.json -o a.png --kind pie", spec_file),
    ("plot plan.json -o a.gif", spec_file),
    ("plot plan.json -o a.png", lambda: (spec_file(), written("a.png"))),
    ("plot plan.json -o a.png --epochs 3", spec_file),
    ("plot plan.json -o a.png --epoch x", spec_file),
    ("plot plan.json -o a.png", lambda: spec_file(OPEN)),
    # locate
    ("locate plan.json", spec_file),
    ("locate plan.json --index 1.5 --epoch 0", spec_file),
    ("locate plan.json --index 10 --epoch 0", spec_file),
    ("locate plan.json --index 1 --epoch 0", lambda: spec_file(OPEN)),
    # explain
    ("explain plan.json", spec_file),
    ("explain plan.json --index 10", spec_file),
    ("explain plan.json --index 1 --epochs 0", spec_file),
    ("explain plan.json --index 1", lambda: spec_file(OPEN)),
    ("shards a.plan", saved),
    # diff
    ("diff plan.json", spec_file),
    ("diff plan.json b.json", spec_file),
    ("shards sizes.npy --plan plan.json --epochs 0", spec_file),
    ("shards", nothing),
    ("shards data --epochs 9", nothing),
    ("shards sizes.npy --plan plan.json --whole-files", spec_file),
    ("diff plan.json plan.json --epochs x", spec_file),
    ("diff plan.json plan.json --world-size 1,2,3", spec_file),
    ("diff plan.json b.json --exit-code", spec_file),
]
