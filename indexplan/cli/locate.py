"""`indexplan locate`: which step and rank of a plan read a sample, or which of a run did."""

from __future__ import annotations

from typing import Any

import indexplan as ip
from indexplan.answers import Shown
from indexplan.cli.common import (
    add_numbers,
    add_plan,
    add_verb,
    ledger_named,
    number,
    open_plan,
)


def add(verbs: Any) -> None:
    """Add the verb."""
    locate = add_verb(
        verbs,
        "locate",
        run,
        "find the step and the rank that read a sample",
        examples=(
            "indexplan locate run.plan --index 4711",
            "indexplan locate run.plan --index 4711 --epoch 3 --world-size 16 --json",
        ),
    )
    locate.add_argument("--index", type=number, required=True, metavar="N", help="the sample")
    add_numbers(locate, epoch="which epoch (the first that is stored and not read yet)")
    add_plan(locate, dataset="check that the dataset hasn't changed")


def run(options: Any) -> Shown:
    """Locate the sample."""
    if ledger := ledger_named(options, "epoch"):
        return _reads_of(ledger, options.index)
    opened = open_plan(options)
    epoch = opened.first if options.epoch is None else options.epoch
    where = opened.plan.locate(options.index, epoch)
    words = (
        f"epoch {where.epoch}, sub-epoch {where.sub_epoch}, step {where.step}, "
        f"rank {where.rank}, slot {where.slot}"
    )
    if where.step < 0:
        words = f"no step reads sample {options.index} in epoch {epoch}"
    return Shown(where._asdict(), words)


def _reads_of(ledger: ip.Ledger, sample: int) -> Shown:
    """Return which steps and ranks of a run read a sample."""
    found = ledger.reads(sample)
    lines = [f"step {read.step:,}, rank {read.rank}, epoch {read.epoch}" for read in found]
    words = "\n".join(lines) or f"no step read sample {sample}"
    return Shown({"sample": sample, "reads": found}, words)
