"""The names that a class of orders may not reuse: hooks, and the methods that call them."""

from __future__ import annotations

import sys
from typing import Any

from indexplan.errors import wrong
from indexplan.orders.traits import Traits

HOOKS = ("fill", "deal", "find", "tally", "num_units", "group", "aim", "continues")
FINAL = ("take", "offsets", "spans", "locate", "locate_all", "count", "group_of", "group_shares")
SAID = ("traits", "stream_key", "deals_bins", "constant_num_units")


def check_class(made: type[Any], base: type[Any]) -> None:
    """Raise `IndexPlanError` if a new class of orders uses a name of `base` for something else."""
    name = made.__name__
    for each, kind in _annotated(made).items():
        if each in (*HOOKS, *FINAL, *SAID) and "ClassVar" not in str(kind):
            rule = "given another name, as orders have a method or property of that name"
            raise wrong(f"a field of {name}", rule, each, f"call it {each}_ or another word")
    for each in (*FINAL, "deals_bins", "constant_num_units"):
        if each in vars(made):
            rule = "left to Order, which checks the arguments and asks the hooks"
            cure = "write fill or deal, find and traits"
            raise wrong(f"{each} of {name}", rule, "one of its own", cure)
    traits = vars(made).get("traits")
    if isinstance(traits, Traits) and traits.deals_bins and made.deal is base.deal:
        rule = "False, or deal written"
        raise wrong(f"deals_bins in the traits of {name}", rule, True, "write deal, not fill")


def _annotated(made: type[Any]) -> dict[str, Any]:
    """Return the names that a class itself annotates, before `dataclass` has seen it."""
    if sys.version_info >= (3, 14):  # which evaluates annotations only when it is asked
        from annotationlib import Format, get_annotations

        return get_annotations(made, format=Format.STRING)
    found: dict[str, Any] = vars(made).get("__annotations__", {})
    return found
