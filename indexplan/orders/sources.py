"""The sources of a mixture: names and orders, of which no two may read in step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from indexplan.errors import IndexPlanError, wrong
from indexplan.orders.base import Draws, Order

MOST_SOURCES = 2**16
SOURCES = 'pass {"web": indexplan.Shuffle(10), "code": indexplan.Shuffle(20)}'


def sources_of(sources: Any) -> tuple[tuple[str, Order], ...]:
    """Return sources as names and orders."""
    rule = f"from 1 to {MOST_SOURCES} orders, each with a different str as its name"
    try:
        pairs = sources.items() if isinstance(sources, Mapping) else sources
        named = tuple((name, order) for name, order in pairs)
        right = 0 < len({name for name, _ in named}) == len(named) <= MOST_SOURCES
    except Exception:  # whatever a user's class raises
        raise wrong("sources", rule, sources, SOURCES) from None
    if not right or not all(isinstance(name, str) for name, _ in named):
        raise wrong("sources", rule, sources, SOURCES)
    for name, order in named:
        if not isinstance(order, Order):
            raise wrong(f"the source {name!r}", "an Order", order, SOURCES)
        if not order.constant_num_units:
            rule = "needs sources with the same number of units in every epoch"
            raise IndexPlanError("Mixture", rule, order.algorithm, f"leave {name!r} out")
    check_alike(named)
    return named


def check_alike(sources: tuple[tuple[str, Order], ...]) -> None:
    """Refuse to mix sources that cut samples with others, whose lengths are unknown."""
    cut = {order.traits.cuts_samples: name for name, order in sources}
    if len(cut) > 1:
        got = f"{cut[True]!r}, which does, and {cut[False]!r}, which does not"
        cure = "read all of them in DocumentWindows"
        raise IndexPlanError(
            "Mixture", "needs sources all of which cut samples, or none", got, cure
        )


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
        draws = order._draws  # noqa: SLF001 (of an order too)
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
            other = texts.setdefault(order._text, name)  # noqa: SLF001 (of an order too)
            if other != name:
                cure = "shuffle one, or leave it out: both would read in the same sequence"
                raise wrong(f"the sources {other!r} and {name!r}", "different", order, cure)
