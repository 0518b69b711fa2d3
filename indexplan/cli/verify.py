"""`indexplan verify`: a plan's laws, or a ledger's lines, and every byte of their files."""

from __future__ import annotations

from typing import Any

import indexplan as ip
from indexplan.cli.common import (
    OK,
    WRONG_PLAN,
    Progress,
    add_columns,
    add_dataset,
    add_plan_or_spec,
    add_verb,
    add_world_size,
    check_left_out,
    emit,
    open_plan,
    scan_dataset,
)
from indexplan.cli.ledger import open_ledger
from indexplan.cli.mistaken import is_ledger


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
    )
    verify.description = (
        "Check that a plan reads what it promises, and that every byte of its files is right; or "
        "that no byte of a run's ledger was changed. Exits with 1 if something is wrong."
    )
    add_plan_or_spec(verify)
    add_columns(verify)
    add_dataset(verify, "check that the dataset hasn't changed")
    add_world_size(verify)


def run(options: Any) -> int:
    """Verify the plan directory, or the ledger."""
    if is_ledger(options.plan):
        check_left_out(options, ("columns", "world_size"), "needs a plan", options.plan)
        report = open_ledger(options.plan, scan_dataset(options)).verify()
        emit(options, report)
        return OK if report.ok else WRONG_PLAN
    plan, _, _ = open_plan(options)
    with Progress("verifying", "B") as progress:
        report = ip.verify(plan, progress=progress)
    emit(options, report)
    return OK if report.ok else WRONG_PLAN
