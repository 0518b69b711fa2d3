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
    orders = ("shuffle", "block-shuffle", "sequential")
    add("--order", choices=orders, default="shuffle", help="how an epoch is ordered (shuffle)")
    add("--seed", type=number, default=0, metavar="N", help="what the order is drawn from (0)")
    add("--block-size", type=number, metavar="N", help="samples in a block of a block-shuffle")
    add("--window", type=number, metavar="N", help="blocks that are mixed together (1)")
    add("--world-size", type=number, metavar="N", help="ranks; left out, the plan leaves it open")
    sizes = "units per rank and step: 256, nested 5x3, or phases '0:512 250000:768'"
    add("--batch-size", metavar="SIZE", help=sizes)
    add("--global-batch-size", metavar="SIZE", help="the same, over all ranks")
    words = "intervals that each epoch is cut into (1)"
    add("--sub-epochs", type=number, default=1, metavar="N", help=words)
    words = "what becomes of units that do not fill a global batch (spread)"
    remainders = ("spread", "drop", "pad", "carry")
    add("--remainder", choices=remainders, default="spread", help=words)


def plan_of(options: Any, num_samples: int) -> ip.Plan:
    """Return the plan that the options spell out."""
    sizes: dict[str, Any] = {
        name: ip.parse_schedule(text)
        for name in ("batch_size", "global_batch_size")
        if (text := getattr(options, name)) is not None
    }
    if not sizes:
        rule = "one of --batch-size and --global-batch-size must be given; got neither"
        cure = "--batch-size counts a rank's units, --global-batch-size all ranks'"
        raise IndexPlanError(f"{rule}; {cure}")
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
            rule = "--order block-shuffle needs --block-size"
            raise IndexPlanError(f"{rule}; give it the number of samples of a shard")
        window = 1 if options.window is None else options.window
        return ip.BlockShuffle(num_samples, options.block_size, window, options.seed)
    for name in ("block_size", "window"):
        if getattr(options, name) is not None:
            option = f"--{name.replace('_', '-')}"
            cure = f"name that order, or leave {option} out"
            rule = f"{option} needs --order block-shuffle"
            raise IndexPlanError(f"{rule}; got {options.order}; {cure}")
    if options.order == "sequential":
        return ip.Sequential(num_samples)
    return ip.Shuffle(num_samples, options.seed)
