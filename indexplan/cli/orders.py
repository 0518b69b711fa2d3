"""`indexplan orders`: the kinds of orders, and the fields of each."""

from __future__ import annotations

from typing import Any

from indexplan.answers import Shown
from indexplan.cli.common import OK, add_verb, emit
from indexplan.orders.kinds import kinds, makers

HEADING = "Only in orders that are written as in Python:"


def add(verbs: Any) -> None:
    """Add the verb."""
    orders = add_verb(verbs, "orders", run, "list the kinds of orders, and the fields of each")
    orders.description = (
        "List the kinds of orders that --order takes, with the types and defaults of their fields: "
        "--order 'block-shuffle block_size=4096 window=8'. The number of samples comes from "
        "--num-samples, --dataset or --shards. Orders inside orders are written as in Python, with "
        "their numbers of samples: --order 'Epochs(Shuffle(1000000), epoch_size=50000)'."
    )


def run(options: Any) -> int:
    """List them."""
    known, more = kinds(), makers()
    words = "\n\n".join([*map(str, known), HEADING, *map(str, more)])
    emit(options, Shown({"orders": known, "makers": more}, words))
    return OK
