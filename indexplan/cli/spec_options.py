"""The options that describe a plan, as `indexplan.Plan` takes it, for verbs that need no file."""

from __future__ import annotations

import argparse
from typing import Any

import indexplan as ip
from indexplan.cli.common import add_numbers, option_of
from indexplan.cli.written import made_by, order_as_written
from indexplan.errors import IndexPlanError, integer, shown
from indexplan.orders.arguments import LENGTH, NUM_SAMPLES_STOP
from indexplan.partition.remainders import REMAINDERS

SIZE = "256, (5, 3) or [Phase(0, 512), Phase(250000, 768)]"
BALANCE = "Balance('lengths.npy')"


def add_spec(command: argparse.ArgumentParser) -> None:
    """Add the options of an order and a partition."""
    words = "how many samples the dataset has, such as 1e9; not needed if --order says it"
    add_numbers(command, num_samples=words)
    add = command.add_argument
    words = (
        "how each epoch orders the samples, written as in Python: 'BlockShuffle(block_size=4096, "
        "seed=7)'; columns are paths of .npy files, and the number of samples can be left out; "
        "`indexplan orders` lists what you can write (Shuffle())"
    )
    add("--order", metavar="ORDER", help=words)
    words = "how many ranks; leave it out for a plan that any number of ranks can use"
    add_numbers(command, world_size=words)
    sizes = (
        "units of each rank in a step; a unit is a sample, or a bin of samples if the order makes "
        "bins; written as in Python: 256, nested (5, 3), or '[Phase(0, 512), Phase(250000, 768)]'"
    )
    add("--batch-size", metavar="SIZE", help=sizes)
    add("--global-batch-size", metavar="SIZE", help="the same for all ranks together")
    add_numbers(command, sub_epochs="how many parts to cut each epoch into (1)")
    command.set_defaults(sub_epochs=1)
    words = (
        "give all ranks of a step about equal work, written as in Python: \"Balance('lengths.npy', "
        'linear=24576, quadratic=1)", where the file has the length of each sample'
    )
    add("--balance", metavar="BALANCE", help=words)
    words = "what to do with the last units, which don't fill a global batch (spread)"
    add("--remainder", choices=sorted(REMAINDERS), default="spread", help=words)


def plan_of(options: Any, num_samples: int | None, sizes: ip.Column | None = None) -> ip.Plan:
    """Return the plan that the options describe; `sizes` are those of its dataset's shards."""
    texts = {  # what may be called in them, and an example
        "batch_size": (ip.Phase, SIZE),
        "global_batch_size": (ip.Phase, SIZE),
        "balance": (ip.Balance, BALANCE),
    }
    given = {
        name: made_by(text, [kind], example, option_of(name))
        for name, (kind, example) in texts.items()
        if (text := getattr(options, name)) is not None
    }
    balance = given.get("balance")
    if balance is not None and not isinstance(balance, ip.Balance):
        raise IndexPlanError("--balance", "must be a balance", shown(balance), f"write {BALANCE}")
    if (many := len(given.keys() - {"balance"})) != 1:
        cure = "give --batch-size, for each rank, or --global-batch-size, for all ranks together"
        raise IndexPlanError(
            "exactly one of --batch-size and --global-batch-size",
            "must be given",
            "both" if many else "neither",
            cure,
        )
    return ip.Plan(
        _order_of(options, num_samples, sizes),
        world_size=options.world_size,
        sub_epochs=options.sub_epochs,
        remainder=options.remainder,
        **given,
    )


def _order_of(options: Any, num_samples: int | None, sizes: ip.Column | None) -> ip.Order:
    """Return the order that the options describe; num_samples is None if the order tells it."""
    known: dict[str, Any] = {} if sizes is None else {"sizes": sizes}
    if num_samples is not None:
        integer("--num-samples", num_samples, 1, NUM_SAMPLES_STOP, LENGTH.command)
        known |= {"num_samples": num_samples, "num_tokens": num_samples}
    text = "Shuffle()" if options.order is None else options.order
    order = order_as_written(text, known, "--order")
    if num_samples not in (None, order.num_samples):
        rule = f"must be {num_samples}, as the other options say"
        cure = "change one of the two"
        raise IndexPlanError("the number of samples in --order", rule, order.num_samples, cure)
    return order
