"""`indexplan verify`: a plan's laws, or a ledger's lines, and every byte of their files."""

from __future__ import annotations

from typing import Any

import indexplan as ip
from indexplan.cli.common import (
    add_plan,
    add_verb,
    check_left_out,
    ledger_named,
    open_plan,
    progress_bar,
)


def add(verbs: Any) -> None:
    """Add the verb."""
    verify = add_verb(
        verbs,
        "verify",
        run,
        "check a plan or a run, and every byte of its files",
        examples=(
            "indexplan verify run.plan",
            "indexplan verify photos.plan --dataset photos",
        ),
        more="Check that a plan reads what it promises, and that every byte of its files is right; "
        "or that no byte of a run's ledger was changed. Exits with 1 if something is wrong.",
    )
    add_plan(verify, dataset="check that the dataset hasn't changed")
    words = "of a ledger: check that it has the line whose hash a checkpoint holds"
    verify.add_argument("--checkpoint", metavar="HASH", help=words)


def run(options: Any) -> ip.types.Report:
    """Verify the plan, or the ledger."""
    if ledger := ledger_named(options):
        return ledger.verify(options.checkpoint)
    check_left_out(options, ["checkpoint"], "needs a ledger", options.plan)
    plan = open_plan(options).plan
    with progress_bar("verifying", "B") as progress:
        return ip.verify(plan, progress=progress)
