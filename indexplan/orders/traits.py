"""What an order promises of all of its epochs."""

from __future__ import annotations

from dataclasses import dataclass

from indexplan.errors import wrong

READS = ("once", "at most once", "any")


@dataclass(frozen=True, kw_only=True)
class Traits:
    """What an order promises for all of its epochs; a plan directory remembers it.

    Parameters
    ----------
    deals_bins : bool, default False
        Whether units may hold other than one sample.
    constant_num_units : bool, default True
        Whether all epochs have the same number of units, which "carry" needs.
    reads : {"once", "at most once", "any"}, default "once"
        How often an epoch reads each sample. `verify` holds an order to it.
    cuts_samples : bool, default False
        Whether units may hold pieces of samples; then `spans` says which. Only for orders that
        deal bins.

    Raises
    ------
    IndexPlanError
        If one of them is something else.

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
        if self.reads not in READS:
            rule = f"one of {', '.join(READS)}"
            raise wrong("a trait, reads,", rule, self.reads, "leave it out for once")
        if self.cuts_samples and not self.deals_bins:
            cure = "set deals_bins=True too"
            raise wrong("a trait, cuts_samples,", "False of single samples", True, cure)


PLAIN = Traits()
