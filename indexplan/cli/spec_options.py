"""The options that spell out a plan, as `indexplan.Plan` takes it: for verbs that need no file."""

from __future__ import annotations

import argparse
from typing import Any

import indexplan as ip
from indexplan.cli.common import number
from indexplan.errors import IndexPlanError


def add_spec(command: argparse.ArgumentParser) -> None:
    """Add the options of an order and a partition; the number of samples is the verb's own."""
    add = command.add_argument
    add("--order", choices=("shuffle", "block-shuffle", "sequential"), default="shuffle")
    add("--seed", type=number, default=0, metavar="N")
    add("--block-size", type=number, metavar="N", help="samples in a block of a block-shuffle")
    add("--window", type=number, metavar="N", help="blocks that are mixed together (1)")
    add("--world-size", type=number, metavar="N", help="ranks; left out, the plan leaves it open")
    sizes = "units per rank and step: 256, nested 5x3, or phases '0:512 250000:768'"
    add("--batch-size", metavar="SIZE", help=sizes)
    add("--global-batch-size", metavar="SIZE", help="the same, over all ranks")
    add("--sub-epochs", type=number, default=1, metavar="N")
    add("--remainder", choices=("spread", "drop", "pad", "carry"), default="spread")


def plan_of(options: Any, num_samples: int) -> ip.Plan:
    """Return the plan that the options spell out."""
    sizes: dict[str, Any] = {
        name: ip.parse_schedule(text)
        for name in ("batch_size", "global_batch_size")
        if (text := getattr(options, name)) is not None
    }
    if not sizes:
        raise IndexPlanError("one of --batch-size and --global-batch-size must be given")
    return ip.Plan(
        _order(options, num_samples),
        world_size=options.world_size,
        sub_epochs=options.sub_epochs,
        remainder=options.remainder,
        **sizes,
    )


def _order(options: Any, num_samples: int) -> ip.Order:
    if options.order == "block-shuffle":
        if options.block_size is None:
            raise IndexPlanError("--order block-shuffle needs --block-size, the samples of a shard")
        window = 1 if options.window is None else options.window
        return ip.BlockShuffle(num_samples, options.block_size, window, options.seed)
    for name in ("block_size", "window"):
        if getattr(options, name) is not None:
            raise IndexPlanError(f"--{name.replace('_', '-')} needs --order block-shuffle")
    if options.order == "sequential":
        return ip.Sequential(num_samples)
    return ip.Shuffle(num_samples, options.seed)
