"""`indexplan diff`: what a change of a plan does to the data order."""

from __future__ import annotations

from typing import Any

import indexplan as ip
from indexplan.cli.common import (
    OK,
    add_columns,
    add_epochs,
    add_plan_or_spec,
    add_verb,
    add_world_size,
    emit,
    epochs_of,
    open_either,
)


def add(verbs: Any) -> None:
    """Add the verb."""
    diff = add_verb(
        verbs,
        "diff",
        run,
        "find the first step at which two plans differ",
        examples=(
            "indexplan diff run.plan other.plan",
            "indexplan diff run.plan other.plan --epochs 1 --world-size 4",
        ),
    )
    diff.description = (
        "Find the first step at which two plans read different samples, or the same samples on "
        "different ranks."
    )
    add_plan_or_spec(diff, "a", "A")
    add_plan_or_spec(diff, "b", "B")
    add_columns(diff)
    add_epochs(diff, "those in which the plans can start to differ")
    add_world_size(diff)


def run(options: Any) -> int:
    """Compare the plans; a difference is an answer, not a failure."""
    (a, _), (b, _) = (open_either(path, options.columns) for path in (options.a, options.b))
    if options.world_size is not None:
        a, b = (plan.replace(world_size=options.world_size) for plan in (a, b))
    emit(options, ip.diff(a, b, epochs_of(options)))
    return OK
