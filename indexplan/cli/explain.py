"""`indexplan explain`: where each epoch reads a sample, or why it does not."""

from __future__ import annotations

from typing import Any

import indexplan as ip
from indexplan.answers import Shown
from indexplan.cli.common import (
    OK,
    add_columns,
    add_epochs,
    add_plan_or_spec,
    add_verb,
    add_world_size,
    emit,
    epochs_of,
    number,
    open_either,
)


def add(verbs: Any) -> None:
    """Add the verb."""
    explain = add_verb(
        verbs,
        "explain",
        run,
        "say where each epoch reads a sample, or why it doesn't",
        examples=(
            "indexplan explain run.plan --index 4711",
            "indexplan explain run.plan --index 4711 --epochs 5",
        ),
    )
    add_plan_or_spec(explain)
    add_columns(explain)
    explain.add_argument("--index", type=number, required=True, metavar="N", help="the sample")
    add_epochs(explain, "those in the plan directory; for a .json file, the first three")
    add_world_size(explain)


def run(options: Any) -> int:
    """Explain the sample."""
    plan, _ = open_either(options.plan, options.columns)
    if options.world_size is not None:
        plan = plan.replace(world_size=options.world_size)
    readings = ip.explain(plan, options.index, epochs_of(options))
    emit(
        options,
        Shown({"index": options.index, "readings": readings}, str(readings)),
    )
    return OK
