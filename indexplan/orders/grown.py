"""What a mixture has in common with the one of fewer sources that a run was saved under."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

from indexplan.orders.shares import Phase

MIXTURE = "mixture-v1"


class Former(NamedTuple):
    """A mixture that a run was saved under: its sources, and its phases with shares of all sources.

    New sources join at the end, so old samples keep their numbers; until then, their share is 0.
    """

    names: tuple[str, ...]
    sources: tuple[Any, ...]  # dict forms
    phases: tuple[Phase, ...]

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

    def parts_at(self, phases: Sequence[Phase]) -> int | None:
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
