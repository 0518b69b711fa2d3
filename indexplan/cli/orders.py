"""`indexplan orders`: the kinds of orders, and what each says of itself."""

from __future__ import annotations

from inspect import Parameter, Signature, cleandoc, signature
from typing import Any

from indexplan.answers import Shown
from indexplan.cli.common import add_verb
from indexplan.errors import did_you_mean, invalid
from indexplan.orders.base import Order
from indexplan.orders.registry import registered


def add(verbs: Any) -> None:
    """Add the verb."""
    orders = add_verb(
        verbs,
        "orders",
        run,
        "list the ways to order samples, or describe one",
        examples=("indexplan orders", "indexplan orders BlockShuffle"),
        more="List what --order can say, or describe one of these as Python's documentation does. "
        "On the command line, columns are paths of .npy files, and you can leave out the number of "
        "samples if another option says it. Orders may hold orders: "
        "--order 'Epochs(Shuffle(), 50000)'.",
    )
    words = "the name of an order, such as BlockShuffle; leave it out to list all of them"
    orders.add_argument("kind", nargs="?", metavar="KIND", help=words)


def run(options: Any) -> Shown:
    """List them, or describe one."""
    known = {kind.__name__: kind for kind in reversed(registered())}
    if options.kind is None:
        listed = [_described(known[name]) for name in sorted(known)]
        rows = [(each["name"], each["words"].partition("\n")[0]) for each in listed]
        room = max(len(name) for name, _ in rows)
        lines = [f"{name:{room}}  {words}".rstrip() for name, words in rows]
        lines += ["", "`indexplan orders KIND` describes one of them."]
        return Shown({"orders": listed}, "\n".join(lines))
    if options.kind not in known:
        cure = did_you_mean(options.kind, known) + "`indexplan orders` lists them"
        raise invalid("KIND", "the name of an order", options.kind, cure)
    found = _described(known[options.kind])
    return Shown(found, f"{found['call']}\n\n{found['words']}".rstrip())


def _described(kind: type[Order]) -> dict[str, str]:
    """Return how an order is called, and its docstring."""
    arguments = [
        each.replace(annotation=Parameter.empty) for each in signature(kind).parameters.values()
    ]
    words = cleandoc(kind.__doc__ or "")
    if words.startswith(f"{kind.__name__}("):  # what a dataclass without a docstring has
        words = ""
    call = f"{kind.__name__}{Signature(arguments)}"
    return {"name": kind.__name__, "algorithm": kind.algorithm, "call": call, "words": words}
