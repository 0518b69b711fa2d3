"""`indexplan traffic`: which shards nodes download, and how many at a time."""

from __future__ import annotations

from typing import Any

import indexplan as ip
from indexplan.cli.common import (
    OK,
    add_columns,
    add_plan_or_spec,
    add_shards,
    add_verb,
    add_world_size,
    emit,
    first_epoch,
    number,
    open_either,
    shards_named,
)
from indexplan.errors import integer
from indexplan.seeds import EPOCH_STOP


def add(verbs: Any) -> None:
    """Add the verb."""
    traffic = add_verb(
        verbs,
        "traffic",
        run,
        "count the shards that each node downloads",
        examples=(
            "indexplan traffic run.plan --shards 'data/*.parquet'",
            "indexplan traffic run.plan --shards sizes.npy --ranks-per-node 4",
        ),
    )
    traffic.description = (
        "Count the shards that each node downloads, and how many of them it has open at a time."
    )
    add_plan_or_spec(traffic)
    add_columns(traffic)
    add_shards(traffic, "the shards, in place of those of the plan's ShardShuffle", sizes=True)
    words = "how many ranks share what their node downloads (8)"
    traffic.add_argument("--ranks-per-node", type=number, default=8, metavar="N", help=words)
    words = "how many epochs to count, starting with the plan's first (1)"
    traffic.add_argument("--epochs", type=number, default=1, metavar="N", help=words)
    add_world_size(traffic)


def run(options: Any) -> int:
    """Count them."""
    plan, manifest = open_either(options.plan, options.columns)
    if options.world_size is not None:
        plan = plan.replace(world_size=options.world_size)
    first = first_epoch(plan, manifest)
    epochs = integer("--epochs", options.epochs, 1, EPOCH_STOP - first + 1, "leave it out for 1")
    found = ip.traffic(
        plan,
        shards_named(options),
        ranks_per_node=options.ranks_per_node,
        epochs=range(first, first + epochs),
    )
    emit(options, found)
    return OK
