"""The sources of a mixture: names and orders, no two in step, and those of a saved one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

from indexplan.errors import IndexPlanError, invalid
from indexplan.orders.base import Draws, Order
from indexplan.orders.shares import SharesFrom

MOST_SOURCES = 2**16
MIXTURE = "mixture-v1"
SOURCES = 'pass {"web": indexplan.Shuffle(10), "code": indexplan.Shuffle(20)}'


def sources_of(sources: Any) -> tuple[tuple[str, Order], ...]:
    """Return sources as names and orders."""
    rule = f"from 1 to {MOST_SOURCES} orders, each with a different str as its name"
    try:
        pairs = sources.items() if isinstance(sources, Mapping) else sources
        named = tuple((name, order) for name, order in pairs)
        right = 0 < len({name for name, _ in named}) == len(named) <= MOST_SOURCES
    except Exception:  # whatever a user's class raises
        raise invalid("sources", rule, sources, SOURCES) from None
    if not right or not all(isinstance(name, str) for name, _ in named):
        raise invalid("sources", rule, sources, SOURCES)
    for name, order in named:
        if not isinstance(order, Order):
            raise invalid(f"the source {name!r}", "an Order", order, SOURCES)
        if not order.constant_num_units:
            rule = "needs sources with the same number of units in every epoch"
            raise IndexPlanError("Mixture", rule, order.algorithm, f"leave {name!r} out")
    cut = {order.traits.cuts_samples: name for name, order in named}
    if len(cut) > 1:  # the lengths of the others are unknown
        got = f"{cut[True]!r}, which does, and {cut[False]!r}, which does not"
        cure = "read all of them in DocumentWindows"
        raise IndexPlanError(
            "Mixture", "needs sources all of which cut samples, or none", got, cure
        )
    return named


def check_different(sources: tuple[tuple[str, Order], ...], own: Draws) -> None:
    """Refuse sources that would read in step: by the same draws, or in the same fixed sequence.

    Parameters
    ----------
    sources : tuple of (str, Order)
        The sources, by name.
    own : tuple
        What the mixture draws, which no mixture inside it may draw as well.
    """
    owners: dict[tuple[Any, ...], str] = {}
    fixed = []
    for name, order in sources:
        draws = order.ip_draws
        if not draws:
            fixed.append((name, order))
        for drawn in draws:
            seed = drawn[2]
            if drawn in own:
                rule = "needs a seed that no mixture inside it has"
                got, cure = f"{seed} in {name!r} too", f"pass seed={seed ^ 1}"
                raise IndexPlanError("Mixture", rule, got, cure)
            other = owners.setdefault(drawn, name)
            if other != name:
                rule = "must differ in seed where algorithm and size are equal"
                got = f"{seed} in {other!r} and {name!r}"
                cure = f"pass seed={seed ^ 1} to one of them"
                raise IndexPlanError("sources", rule, got, cure)
    _check_fixed(fixed)


def _check_fixed(sources: Sequence[tuple[str, Order]]) -> None:
    """Refuse two equal sources that draw nothing."""
    alike: dict[tuple[str, int], list[tuple[str, Order]]] = {}
    for name, order in sources:  # compare only these, as it may need to hash columns
        alike.setdefault((order.algorithm, order.num_samples), []).append((name, order))
    for some in alike.values():
        texts: dict[str, str] = {}
        for name, order in some if len(some) > 1 else []:
            other = texts.setdefault(order.ip_text, name)
            if other != name:
                cure = "shuffle one, or leave it out: both would read in the same sequence"
                raise invalid(f"the sources {other!r} and {name!r}", "different", order, cure)


class Former(NamedTuple):
    """A mixture that a run was saved under: its sources, and its phases with shares of all sources.

    New sources join at the end, so old samples keep their numbers; until then, their share is 0.
    """

    names: tuple[str, ...]
    sources: tuple[Any, ...]  # dict forms
    phases: tuple[SharesFrom, ...]

    @classmethod
    def of(cls, saved: Mapping[str, Any], mine: Mapping[str, Any]) -> Former | None:
        """Return the dict form `saved` as seen by a mixture of dict form `mine`.

        None if it is not a mixture with the same epochs and seed.
        """
        others = {"sources": None, "phases": None}
        if {**saved, **others} != {**mine, **others}:
            return None
        try:
            pairs = [(name, source) for name, source in saved["sources"]]
            phases = [(place, tuple(shares)) for place, shares in saved["phases"]]
            joined = (0,) * (len(mine["sources"]) - len(pairs))
            return cls(
                tuple(name for name, _ in pairs),
                tuple(source for _, source in pairs),
                tuple((place + 0, (*shares, *joined)) for place, shares in phases),
            )
        except (KeyError, TypeError, ValueError):
            return None

    def parts_at(self, phases: Sequence[SharesFrom]) -> int | None:
        """Return the unit from which shares differ from those of other phases; None if none."""
        for one, other in zip_longest(self.phases, phases):
            if one != other:
                return min(phase[0] for phase in (one, other) if phase is not None)
        return None


def num_sources(saved: Any) -> int:
    """Return how many sources the mixtures in the dict form of an order have in total."""
    if isinstance(saved, Mapping):
        own = len(saved["sources"]) if saved.get("algorithm") == MIXTURE else 0
        return own + sum(map(num_sources, saved.values()))
    return sum(map(num_sources, saved)) if isinstance(saved, list | tuple) else 0
