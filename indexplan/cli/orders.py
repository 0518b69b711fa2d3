"""`indexplan orders`: the kinds of orders, and the arguments of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from indexplan.answers import Shown
from indexplan.cli.common import OK, add_verb, emit
from indexplan.cli.kinds import Kind, helpers, kinds
from indexplan.errors import did_you_mean, wrong


def add(verbs: Any) -> None:
    """Add the verb."""
    orders = add_verb(
        verbs,
        "orders",
        run,
        "list the ways to order samples, or describe one",
        examples=("indexplan orders", "indexplan orders BlockShuffle"),
    )
    orders.description = (
        "List what --order can say, or describe one of these: what it is for, how to write it, "
        "its arguments, and an example. Orders may hold orders: --order 'Epochs(Shuffle(), 50000)'."
    )
    words = "the name of an order, such as BlockShuffle; leave it out to list all of them"
    orders.add_argument("kind", nargs="?", metavar="KIND", help=words)


def run(options: Any) -> int:
    """List them, or describe one."""
    orders, more = kinds(), helpers()
    if options.kind is not None:
        emit(options, _described(options.kind, [*orders, *more]))
        return OK
    words = "\n".join(
        [
            *_listed(orders),
            "",
            "To make orders, or parts of them:",
            "",
            *_listed(more),
            "",
            "`indexplan orders KIND` describes one of them, with an example.",
        ]
    )
    emit(options, Shown({"orders": orders, "helpers": more}, words))
    return OK


def _listed(found: Sequence[Kind]) -> list[str]:
    """Return a line for each kind."""
    room = max(len(kind.name) for kind in found)
    return [f"{kind.name:{room}}  {kind.words}".rstrip() for kind in found]


def _described(name: str, found: Sequence[Kind]) -> Kind:
    """Return the kind of a name; of several classes with one name, the first."""
    known = {kind.name: kind for kind in reversed(found)}
    if name not in known:
        cure = did_you_mean(name, known) + "`indexplan orders` lists them"
        raise wrong("KIND", "the name of an order", name, cure)
    return known[name]
