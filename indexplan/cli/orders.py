"""`indexplan orders`: the kinds of orders, and the arguments of each."""

from __future__ import annotations

from typing import Any

from indexplan.answers import Shown
from indexplan.cli.common import OK, add_verb, emit
from indexplan.cli.kinds import helpers, kinds


def add(verbs: Any) -> None:
    """Add the verb."""
    orders = add_verb(verbs, "orders", run, "list the kinds of orders, and the arguments of each")
    orders.description = (
        "List what --order may call, as Python writes it, with the types and defaults of the "
        "arguments: --order 'BlockShuffle(block_size=4096, window=8)'. The number of samples may "
        "be left out where --num-samples, --dataset or --shards tells it. A column is the path "
        "of a .npy file. Orders may hold orders: --order 'Epochs(Shuffle(seed=7), 50000)'."
    )


def run(options: Any) -> int:
    """List them."""
    orders, more = kinds(), helpers()
    words = "\n\n".join([*map(str, orders), "To make orders, or parts of them:", *map(str, more)])
    emit(options, Shown({"orders": orders, "helpers": more}, words))
    return OK
