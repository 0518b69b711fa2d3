"""`indexplan draws`: how often each class, or each source, is drawn."""

from __future__ import annotations

from typing import Any

import indexplan as ip
from indexplan.cli.common import (
    OK,
    add_columns,
    add_plan_or_spec,
    add_verb,
    add_world_size,
    emit,
    number,
    open_either,
)


def add(verbs: Any) -> None:
    """Add the verb."""
    draws = add_verb(
        verbs,
        "draws",
        run,
        "count how often each class or source is read",
        examples=("indexplan draws mixed.plan", "indexplan draws mixed.plan --epoch 1"),
    )
    draws.description = (
        "Count how often an epoch reads each class, or each source of a mixture, and compare that "
        "with the shares that you asked for."
    )
    add_plan_or_spec(draws)
    add_columns(draws)
    draws.add_argument("--epoch", type=number, metavar="N", help="which epoch (the first stored)")
    add_world_size(draws)


def run(options: Any) -> int:
    """Count them."""
    plan, manifest = open_either(options.plan, options.columns)
    if options.world_size is not None:
        plan = plan.replace(world_size=options.world_size)
    epoch = options.epoch
    if epoch is None and manifest is not None:
        epoch = max(manifest.build.epochs[0], plan.start.epoch)
    emit(options, ip.draws(plan, epoch))
    return OK
