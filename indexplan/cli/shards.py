"""`indexplan shards`: the samples in each shard of a dataset, and which shards nodes download."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import indexplan as ip
from indexplan.cli.common import (
    add_columns,
    add_numbers,
    add_verb,
    check_left_out,
    open_plan,
    progress_bar,
    shards_at,
)
from indexplan.errors import IndexPlanError, PlanFileError, integer
from indexplan.files.format import FORMAT, PLAN
from indexplan.seeds import EPOCH_STOP
from indexplan.shards.by_file import FORMATS
from indexplan.shards.by_index import INDEXES

COUNTING = ("kind", "whole_files", "dtype")
OF_A_PLAN = ("columns", "ranks_per_node", "epochs", "world_size")


def add(verbs: Any) -> None:
    """Add the verb."""
    shards = add_verb(
        verbs,
        "shards",
        run,
        "count samples in shards, and the shards that nodes download",
        examples=(
            "indexplan shards 'data/*.parquet' --json > shards.json",
            "indexplan shards shards.json --plan run.plan --ranks-per-node 4",
        ),
        more="Count the samples in each shard of a dataset. Only footers and indexes are read, not "
        "the samples. With --plan, count the shards that each node downloads, and how many of them "
        "it has open at a time.",
    )
    known = [each.words for each in FORMATS.values()] + [each.words for each in INDEXES.values()]
    words = (
        f"a glob such as 's3://bucket/**/*.parquet', a folder, or an index: {', '.join(known)}; "
        "with --plan, also a .json file with what --json printed, a .npy file with the number "
        "of samples in each shard, or nothing, for the shards of the plan's ShardShuffle"
    )
    shards.add_argument("path", metavar="PATH", nargs="?", help=words)
    words = f"the format, if the files' names don't say it: {', '.join(FORMATS)}"
    shards.add_argument("--kind", metavar="KIND", help=words)
    words = "take each file as one shard, not each of its row groups or record batches"
    shards.add_argument("--whole-files", action="store_true", help=words)
    words = "of files of raw numbers without a header, such as uint16 for tokens"
    shards.add_argument("--dtype", metavar="DTYPE", help=words)
    words = "count the downloads of this plan: a plan directory or its URL, or a .json file"
    shards.add_argument("--plan", metavar="PLAN", help=words)
    add_columns(shards)
    add_numbers(
        shards,
        ranks_per_node="how many ranks share what their node downloads (8)",
        epochs="how many epochs to count, starting with the plan's first (1)",
        world_size="how many ranks, in place of the plan's number",
    )


def run(options: Any) -> ip.Shards | ip.types.Traffic:
    """Count them."""
    of_a_plan = options.plan is not None
    rule = "must be left out with --plan" if of_a_plan else "needs --plan"
    check_left_out(options, COUNTING if of_a_plan else OF_A_PLAN, rule)
    if of_a_plan:
        return _traffic(options)
    if options.path is None:
        raise IndexPlanError("PATH", "must be given", "none", "name the shards, or give --plan")
    if _is_plan_directory(options.path):  # whose arrays would else be taken for shards
        cure = f"count the shards that it reads with `indexplan shards --plan {options.path}`"
        raise PlanFileError(options.path, "must be shards", "a plan directory", cure)
    with progress_bar("reading shards", "file") as progress:
        return ip.shard_sizes(
            options.path,
            kind=options.kind,
            whole_files=options.whole_files,
            dtype=options.dtype,
            progress=progress,
        )


def _is_plan_directory(path: str) -> bool:
    """Return whether a path holds a plan directory, and not just a plan's JSON of that name."""
    try:
        found = json.loads(Path(path, PLAN).read_bytes())
        return isinstance(found, dict) and found.get("format") == FORMAT
    except (OSError, ValueError, RecursionError):
        return False


def _traffic(options: Any) -> ip.types.Traffic:
    """Return which shards the nodes of a run download."""
    plan, first, *_ = open_plan(options)
    many = 1 if options.epochs is None else options.epochs
    epochs = integer("--epochs", many, 1, EPOCH_STOP - first + 1, "leave it out for 1")
    return ip.traffic(
        plan,
        shards_at(options.path),
        ranks_per_node=8 if options.ranks_per_node is None else options.ranks_per_node,
        epochs=range(first, first + epochs),
    )
