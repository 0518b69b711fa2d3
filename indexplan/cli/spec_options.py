"""The options that describe a plan, as `indexplan.Plan` takes it, for verbs that need no file."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Mapping
from typing import Any

import indexplan as ip
from indexplan.cli.common import number
from indexplan.cli.words import OrderError, in_options
from indexplan.errors import IndexPlanError, wrong
from indexplan.orders.kinds import integer_in, needs_num_samples, order_from_text
from indexplan.orders.written import is_written, order_as_written
from indexplan.partition.remainders import REMAINDERS

WEIGHTS = ("linear", "quadratic")  # of a balance
SHORT = ("seed", "block_size", "window")  # fields that have an option of their own


def add_spec(command: argparse.ArgumentParser) -> None:
    """Add the options of an order and a partition; the verb adds the number of samples."""
    add = command.add_argument
    words = (
        "how an epoch is ordered: a kind and its fields, such as 'block-shuffle block_size=4096', "
        "or as in Python, such as 'Epochs(Shuffle(1000000), 50000)'; `indexplan orders` lists the "
        "kinds (shuffle)"
    )
    add("--order", default="shuffle", metavar="'KIND NAME=VALUE ...'", help=words)
    for name in SHORT:
        add(f"--{name.replace('_', '-')}", metavar="N", help=f"short for {name}=N in --order")
    words = (
        "short for NAME=PATH in --order: a .npy file with the numbers of the order's field NAME; "
        "may be repeated"
    )
    add("--column", action="append", default=[], metavar="NAME=PATH", help=words)
    words = "how many ranks; left out, the plan can be used with any number"
    add("--world-size", type=number, metavar="N", help=words)
    sizes = "units per rank and step: 256, nested 5x3, or phases '0:512 250000:768'"
    add("--batch-size", metavar="SIZE", help=sizes)
    add("--global-batch-size", metavar="SIZE", help="the same, over all ranks")
    words = "how many parts each epoch is cut into (1)"
    add("--sub-epochs", type=number, default=1, metavar="N", help=words)
    words = (
        "give the ranks of a step equal work: a .npy file with the length of each sample, and "
        "weights if its cost is not the length, such as 'lengths.npy linear=24576 quadratic=1'"
    )
    add("--balance", metavar="'PATH NAME=N ...'", help=words)
    words = "what to do with units that do not fill a global batch (spread)"
    add("--remainder", choices=sorted(REMAINDERS), default="spread", help=words)


def unsized(options: Any) -> bool:
    """Return whether the number of samples has to be given, as the order does not tell it."""
    return not is_written(options.order) and needs_num_samples(options.order)


def plan_of(
    options: Any, num_samples: int | None, known: Mapping[str, Any] | None = None
) -> ip.Plan:
    """Return the plan that the options describe; `known` are fields that its order may need."""
    sizes: dict[str, Any] = {
        name: text
        for name in ("batch_size", "global_batch_size")
        if (text := getattr(options, name)) is not None
    }
    if not sizes:
        cure = "give --batch-size, for each rank, or --global-batch-size, for all ranks together"
        raise IndexPlanError(
            "one of --batch-size and --global-batch-size", "must be given", "neither", cure
        )
    return ip.Plan(
        order_of(options, num_samples, known or {}),
        world_size=options.world_size,
        sub_epochs=options.sub_epochs,
        remainder=options.remainder,
        balance=None if options.balance is None else balance_of(options.balance),
        **sizes,
    )


def balance_of(text: str) -> ip.Balance:
    """Return the balance that a text describes: the path of its lengths, and what they cost."""
    cure = 'write it as "lengths.npy linear=24576 quadratic=1"'
    try:
        path, *rest = shlex.split(text)
    except ValueError as error:  # no word, or an open quote
        rule = "text of a path and numbers, with each quote closed"
        raise wrong("--balance", rule, text, cure) from error
    given: dict[str, int] = {}
    for word in rest:
        name, _, value = word.partition("=")
        if name not in WEIGHTS or name in given or (weight := integer_in(value)) is None:
            rule = f"NAME=N, with {' and '.join(WEIGHTS)} once each"
            raise wrong("a word of --balance after the path", rule, word, cure)
        given[name] = weight
    return ip.Balance(path, **given)


def order_of(options: Any, num_samples: int | None, known: Mapping[str, Any]) -> ip.Order:
    """Return the order that the options describe; num_samples is None if the order tells it."""
    try:
        return _order_of(options, num_samples, known)
    except IndexPlanError as error:  # about a field of the order, or about an option for it
        given = [name for name in ("num_samples", *SHORT) if getattr(options, name) is not None]
        names = [f"--{name.replace('_', '-')}" for name in given]
        raise OrderError(in_options(str(error), names)) from error


def _order_of(options: Any, num_samples: int | None, known: Mapping[str, Any]) -> ip.Order:
    given = {name: getattr(options, name) for name in SHORT}
    more = [f"{name}={value}" for name, value in given.items() if value is not None]
    more += options.column
    if not is_written(options.order):
        return order_from_text(options.order, num_samples, more, known)
    if more:
        cure = "write them inside it, such as Shuffle(100, seed=1)"
        raise wrong("fields beside an order written as in Python", "left out", more[0], cure)
    order = order_as_written(options.order)
    if num_samples not in (None, order.num_samples):
        rule = f"{num_samples}, as the other options say"
        cure = "change one of the two"
        raise wrong("the number of samples in --order", rule, order.num_samples, cure)
    return order
