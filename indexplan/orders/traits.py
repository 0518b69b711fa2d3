"""What an order promises about all its epochs."""

from __future__ import annotations

from dataclasses import dataclass

from indexplan.errors import wrong
from indexplan.keywords import named

READS = ("once", "at most once", "any")


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
        but `Without` and `Plan.skip`'s, which say where the number changes.
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
                raise wrong(f"a trait, {name},", "a boolean", getattr(self, name), cure)
        if not isinstance(self.reads, str) or self.reads not in READS:
            rule = f"one of {', '.join(READS)}"
            raise wrong("a trait, reads,", rule, self.reads, "leave it out for once")
        if self.cuts_samples and not self.deals_bins:
            cure = "set deals_bins=True too"
            raise wrong("a trait, cuts_samples,", "False for single samples", True, cure)


PLAIN = Traits()
