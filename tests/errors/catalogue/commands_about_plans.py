"""Errors of the commands that ask about plans, as in `commands`."""

from __future__ import annotations

import indexplan as ip
from tests.errors.catalogue.made import (
    BUILD,
    OPEN,
    WHOLE,
    Command,
    array,
    edited,
    gone,
    nothing,
    restored,
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
    ("show a.plan", nothing, saved, "show a.plan"),
    (
        "show a.plan",
        lambda: edited(library_version="9"),
        restored("plan.json", "a.plan"),
        "show a.plan",
    ),
    ("show plan.json", lambda: written("plan.json", "{}"), spec_file, "show plan.json"),
    (
        "show plan.json --column rows.npy",
        spec_file,
        lambda: array("rows.npy", [1]),
        "show plan.json --column rows.npy",
    ),
    ("show plan.json --rank 1", spec_file, "show plan.json --rank 1 --step 0", "show plan.json"),
    ("show plan.json --step 99", spec_file, "show plan.json", "show plan.json --step 2"),
    ("show plan.json --sub-epoch 1", spec_file, "show plan.json"),
    ("show data", lambda: written("data/a.txt"), saved, "show a.plan"),
    ("show spec.txt", lambda: written("spec.txt", WHOLE.to_json()), saved, "show a.plan"),
    (
        "show plan.json --epoch 0 --step 0 --rank 2",
        spec_file,
        "show plan.json --epoch 0 --step 0 --rank 2 --world-size 3",
    ),
    (
        "show plan.json --epoch 0 --step 0",
        lambda: spec_file(OPEN),
        "show plan.json --epoch 0 --step 0 --world-size 2",
    ),
    ("show plan.json --epoch -1", spec_file, "show plan.json --epoch 0"),
    ("show a.plan --column a.npy", saved, "show a.plan"),
    (
        "show plan.json --dataset data",
        lambda: (spec_file(), written("data/a.txt")),
        "show plan.json",
    ),
    ("show a.plan --dataset data", changed_data, gone("data/b.txt"), "show a.plan --dataset data"),
    # plot
    ("plot plan.json -o a.png --kind pie", spec_file, "plot --help"),
    ("plot plan.json -o a.gif", spec_file, "plot plan.json -o a.svg"),
    ("plot plan.json -o missing/a.png", spec_file, "plot plan.json -o a.png"),
    (
        "plot plan.json -o a.png",
        lambda: (spec_file(), written("a.png")),
        "plot plan.json -o b.png",
        gone("a.png"),
        "plot plan.json -o a.png",
    ),
    ("plot plan.json -o a.png", lambda: spec_file(OPEN), "plot plan.json -o a.png --world-size 2"),
    # locate
    ("locate plan.json --index 10 --epoch 0", spec_file, "locate plan.json --index 9 --epoch 0"),
    # explain
    ("explain plan.json --index 10", spec_file, "explain plan.json --index 9"),
    ("explain plan.json --index 1 --epochs 0", spec_file, "explain plan.json --index 1"),
    (
        "shards a.plan",
        saved,
        lambda: array("sizes.npy", [600, 400]),
        "shards --plan a.plan sizes.npy",
    ),
    # diff
    (
        "diff plan.json b.json",
        spec_file,
        lambda: written("b.json", WHOLE.to_json()),
        "diff plan.json b.json",
        BUILD,
        "diff plan.json a.plan --world-size 2",
    ),
    (
        "shards sizes.npy --plan plan.json --epochs 0",
        spec_file,
        lambda: array("sizes.npy", [6, 4]),
        "shards sizes.npy --plan plan.json",
    ),
    ("shards", nothing, lambda: array("a.npy", [1]), "shards a.npy"),
    (
        "shards data --epochs 9",
        nothing,
        lambda: (written("data/a.npy"), array("data/a.npy", [1, 2, 3])),
        "shards data",
    ),
    (
        "shards sizes.npy --plan plan.json --whole-files",
        spec_file,
        lambda: array("sizes.npy", [6, 4]),
        "shards sizes.npy --plan plan.json",
    ),
    (
        "diff plan.json plan.json --world-size 1,2,3",
        spec_file,
        "diff --help",
        "diff plan.json plan.json --world-size 1,2",
    ),
    (
        "diff plan.json b.json --exit-code",
        spec_file,
        lambda: written("b.json", WHOLE.to_json()),
        "diff plan.json b.json --exit-code",
        BUILD,
        "diff plan.json a.plan --world-size 2",
    ),
]
