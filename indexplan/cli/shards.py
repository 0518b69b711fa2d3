"""`indexplan shards`: the samples in each shard of a dataset, and which shards nodes download."""

from __future__ import annotations

from typing import Any

import indexplan as ip
from indexplan.cli.common import (
    OK,
    Progress,
    add_columns,
    add_verb,
    add_world_size,
    checked_output,
    emit,
    first_epoch,
    number,
    open_either,
    shards_at,
    write_output,
)
from indexplan.cli.mistaken import is_plan_directory
from indexplan.errors import IndexPlanError, PlanFileError, integer
from indexplan.seeds import EPOCH_STOP
from indexplan.shards.by_file import FORMATS
from indexplan.shards.by_index import INDEXES

COUNTING = ("kind", "whole_files", "count", "output")
OF_A_PLAN = ("columns", "ranks_per_node", "epochs", "world_size")


def add(verbs: Any) -> None:
    """Add the verb."""
    shards = add_verb(
        verbs,
        "shards",
        run,
        "count samples in shards, and the shards that nodes download",
        examples=(
            "indexplan shards 'data/*.parquet' --output shards.json",
            "indexplan shards shards.json --plan run.plan --ranks-per-node 4",
        ),
    )
    shards.description = (
        "Count the samples in each shard of a dataset. Only footers and indexes are read, not the "
        "samples. With --plan, count the shards that each node downloads, and how many of them it "
        "has open at a time."
    )
    known = [each.words for each in FORMATS.values()] + [each.words for each in INDEXES.values()]
    words = (
        f"a glob such as 's3://bucket/**/*.parquet', a folder, or an index: {', '.join(known)}; "
        "with --plan, also the .json file that --output wrote, a .npy file with the number of "
        "samples in each shard, or nothing, for the shards of the plan's ShardShuffle"
    )
    shards.add_argument("path", metavar="PATH", nargs="?", help=words)
    words = f"the format, if the files' names don't say it: {', '.join(FORMATS)}"
    shards.add_argument("--kind", metavar="KIND", help=words)
    words = "take each file as one shard, not each of its row groups or record batches"
    shards.add_argument("--whole-files", action="store_true", help=words)
    words = "also count the samples inside shards of MDS and wids, and compare them with the index"
    shards.add_argument("--count", action="store_true", help=words)
    words = "save the answer to a .json file, which --shards takes in place of the shards"
    shards.add_argument("--output", metavar="FILE", help=words)
    words = "count the downloads of this plan: a plan directory or its URL, or a .json file"
    shards.add_argument("--plan", metavar="PLAN", help=words)
    add_columns(shards)
    words = "how many ranks share what their node downloads (8)"
    shards.add_argument("--ranks-per-node", type=number, metavar="N", help=words)
    words = "how many epochs to count, starting with the plan's first (1)"
    shards.add_argument("--epochs", type=number, metavar="N", help=words)
    add_world_size(shards)


def run(options: Any) -> int:
    """Count them."""
    of_a_plan = options.plan is not None
    for name in COUNTING if of_a_plan else OF_A_PLAN:
        value = getattr(options, name)
        if value is not None and value is not False and value != []:
            option = "--column" if name == "columns" else f"--{name.replace('_', '-')}"
            rule = "must be left out with --plan" if of_a_plan else "needs --plan"
            raise IndexPlanError(option, rule, None, f"leave {option} out")
    if of_a_plan:
        emit(options, _traffic(options))
        return OK
    if options.path is None:
        raise IndexPlanError("PATH", "must be given", "none", "name the shards, or give --plan")
    if is_plan_directory(options.path):  # whose arrays would else be taken for shards
        cure = f"count the shards that it reads with `indexplan shards --plan {options.path}`"
        raise PlanFileError(options.path, "must be shards", "a plan directory", cure)
    output = checked_output(options.output)
    with Progress("reading shards", "file") as progress:
        found = ip.shard_sizes(
            options.path,
            kind=options.kind,
            whole_files=options.whole_files,
            count=options.count,
            progress=progress,
        )
    write_output(output, found.to_json())
    emit(options, found)
    return OK


def _traffic(options: Any) -> ip.types.Traffic:
    """Return which shards the nodes of a run download."""
    plan, stored = open_either(options.plan, options.columns)
    if options.world_size is not None:
        plan = plan.replace(world_size=options.world_size)
    first = first_epoch(plan, stored)
    many = 1 if options.epochs is None else options.epochs
    epochs = integer("--epochs", many, 1, EPOCH_STOP - first + 1, "leave it out for 1")
    return ip.traffic(
        plan,
        shards_at(options.path),
        ranks_per_node=8 if options.ranks_per_node is None else options.ranks_per_node,
        epochs=range(first, first + epochs),
    )
