"""`indexplan export`: write what each rank reads as plain arrays or as tables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import indexplan as ip
from indexplan.cli.common import add_numbers, add_plan, add_verb, open_plan
from indexplan.files.exporting import FORMATS


def add(verbs: Any) -> None:
    """Add the verb."""
    export = add_verb(
        verbs,
        "export",
        run,
        "write what each rank reads as .npy arrays or tables",
        examples=(
            "indexplan export run.plan arrays",
            "indexplan export run.plan tables --format parquet --epoch 0",
        ),
    )
    add_plan(export, dataset="check that the dataset hasn't changed")
    words = "the folder to write, or its URL: a new one, or an export of the same plan"
    export.add_argument("out", metavar="OUT", help=words)
    words = (
        "npy: an array for each rank, with its indices in the order that it reads them; parquet: "
        "a table for each epoch, with a row for each sample"
    )
    export.add_argument("--format", choices=FORMATS, default="npy", help=f"{words} (npy)")
    words = "export this epoch only (all epochs in the plan directory; epoch 0 of a .json file)"
    add_numbers(export, epoch=words)


def run(options: Any) -> ip.types.Saved:
    """Export the plan."""
    plan, _, stored, _ = open_plan(options)
    epochs: Iterable[int] = range(1) if stored is None else stored.build.epochs
    if options.epoch is not None:
        epochs = [options.epoch]
    return ip.export(plan, options.out, epochs=epochs, format=options.format)
