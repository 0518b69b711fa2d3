"""What a class of orders promises about all epochs, and which names it may not reuse."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

from indexplan.errors import as_integer, invalid
from indexplan.keywords import named

READS = ("once", "at most once", "any")
HOOKS = ("fill", "deal", "find", "tally", "num_units", "group", "aim", "continues")
FINAL = ("take", "offsets", "spans", "locate", "locate_all", "count", "group_of", "group_shares")
OURS = "indexplan."  # the classes whose num_units need no check
INTERNAL = "ip_"  # what the rooms of this library ask of any order; see Order
SAID = ("traits", "stream_key", "deals_bins", "constant_num_units")


@named
@dataclass(frozen=True, kw_only=True)
class Traits:
    """What an order promises about all its epochs, such as that each reads every sample once.

    A class of orders sets it as `traits` where it differs from the defaults; a plan directory
    stores it.

    Parameters
    ----------
    deals_bins : bool, default False
        Whether units are bins, which may hold another number of samples than one.
    constant_num_units : bool, default True
        Whether all epochs have the same number of units, as remainder="carry" needs of all orders
        but `Without`, which says where the number changes.
    reads : {"once", "at most once", "any"}, default "once"
        How often an epoch reads each sample. `verify` checks it.
    cuts_samples : bool, default False
        Whether units may hold parts of samples; then `Order.spans` says which. Only for orders that
        deal bins.

    Raises
    ------
    IndexPlanError
        If a trait has another value, or cuts_samples is True where deals_bins is not.

    Examples
    --------
    >>> import indexplan as ip
    >>> ip.Shuffle(10).traits
    Traits(deals_bins=False, constant_num_units=True, reads='once', cuts_samples=False)
    """

    deals_bins: bool = False
    constant_num_units: bool = True
    reads: str = "once"
    cuts_samples: bool = False

    def __post_init__(self) -> None:
        for name in ("deals_bins", "constant_num_units", "cuts_samples"):
            if not isinstance(getattr(self, name), bool):
                cure = f"leave it out for {getattr(Traits, name)}"
                raise invalid(f"a trait, {name},", "a boolean", getattr(self, name), cure)
        if not isinstance(self.reads, str) or self.reads not in READS:
            rule = f"one of {', '.join(READS)}"
            raise invalid("a trait, reads,", rule, self.reads, "leave it out for once")
        if self.cuts_samples and not self.deals_bins:
            cure = "set deals_bins=True too"
            raise invalid("a trait, cuts_samples,", "False for single samples", True, cure)


PLAIN = Traits()


def check_class(made: type[Any], base: type[Any]) -> None:
    """Raise `IndexPlanError` if a new class of orders uses a name of `base` for something else."""
    name = made.__name__
    internal = [each for each in dir(base) if each.startswith(INTERNAL)]
    for each, kind in _annotated(made).items():
        if each in (*HOOKS, *FINAL, *SAID, *internal) and "ClassVar" not in str(kind):
            rule = "given another name, as orders have a method or property of that name"
            raise invalid(f"a field of {name}", rule, each, f"call it {each}_ or another word")
    for each in (*FINAL, "deals_bins", "constant_num_units"):
        if each in vars(made):
            rule = "left to Order, which checks the arguments and asks the hooks"
            cure = "write fill or deal, find and traits"
            raise invalid(f"{each} of {name}", rule, "one of its own", cure)
    traits = vars(made).get("traits")
    if isinstance(traits, Traits) and traits.deals_bins and made.deal is base.deal:
        rule = "False, or deal written"
        raise invalid(f"deals_bins in the traits of {name}", rule, True, "write deal, not fill")
    if "num_units" in vars(made) and not made.__module__.startswith(OURS):
        made.num_units = _whole(made.num_units)


def _whole(num_units: Callable[[Any, int], Any]) -> Callable[[Any, int], int]:
    """Let a user's `num_units` return NumPy's integers too: sums of these wrap, JSON has none."""

    @wraps(num_units)
    def checked(order: Any, epoch: int) -> int:
        found = num_units(order, epoch)
        if (number := as_integer(found)) is None:
            raise invalid(f"num_units of {type(order).__name__}", "an integer", found, "return one")
        return number

    return checked


def _annotated(made: type[Any]) -> dict[str, Any]:
    """Return the names that a class itself annotates, before `dataclass` has seen it."""
    if sys.version_info >= (3, 14):  # which evaluates annotations only when it is asked
        from annotationlib import Format, get_annotations

        return get_annotations(made, format=Format.STRING)
    found: dict[str, Any] = vars(made).get("__annotations__", {})
    return found
