"""Recipes around another order: what each states, and what it leaves of the order inside.

A recipe is held against a plain list of the units inside. Where it reads whole epochs of the order
inside, these are cut out of what was read, so that what is stated of that order is asked of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

from hypothesis import strategies as st

import indexplan as ip
from tests.laws.promises import (
    Draw,
    Property,
    Run,
    Units,
    classes_and_samples_once,
    fits_in_row,
    in_epochs,
    mixture,
    of_one_group,
    padded,
    stream_of,
    whole_epochs_of_sources,
    within_shares,
)
from tests.support.nested import subsets
from tests.support.units import units_of


class Recipe(NamedTuple):
    """How an order is made around one, what is stated, and the whole epochs read inside."""

    around: Callable[[Draw, ip.Order], ip.Order]
    holds: Property
    inside: Callable[[Any, Run], Run] | None


def stream_inside(order: Any, num: int) -> Units:
    """Return the first units of the order inside, epoch after epoch."""
    stream: Units = []
    epoch = 0
    while len(stream) < num:
        stream += units_of(order.order, epoch)
        epoch += 1
    return stream[:num]


def continues(order: Any, run: Run) -> bool:
    """Return whether epochs continue where the last one ended, and none repeats before all."""
    stream = [unit for units in run for unit in units]
    if stream != stream_inside(order, len(stream)):
        return False
    if order.order.traits.reads != "once" or order.order.traits.cuts_samples:
        return True
    counts: Counter[int] = Counter()
    for unit in stream:
        counts.update(unit)
        if not order.order.deals_bins and max(counts.values()) > 1 + min_of(order, counts):
            return False
    return True


def min_of(order: Any, counts: Counter[int]) -> int:
    """Return how often the sample was read that was read least."""
    return 0 if len(counts) < order.num_samples else min(counts.values())


def repeats(order: Any, run: Run) -> bool:
    """Return whether each unit has its copies in one span, in turn."""
    for epoch, units in enumerate(run):
        left, read = units_of(order.order, epoch), list(units)
        while left:
            num = min(order.span // order.copies, len(left))
            block, read = read[: num * order.copies], read[num * order.copies :]
            if block != left[:num] * order.copies:
                return False
            left = left[num:]
        if read:
            return False
    return True


def without_copies(order: Any, run: Run) -> Run:
    """Return each unit of a span once."""
    found: Run = []
    for units in run:
        found.append([])
        for at in range(0, len(units), order.span):
            block = units[at : at + order.span]
            found[-1] += block[: len(block) // order.copies]
    return found


def renamed(units: Units, names: Any) -> Units:
    """Return units with other names for their samples."""
    return [
        [[names[s[0]], *s[1:]] if isinstance(s, list) else names[s] for s in unit] for unit in units
    ]


def kept_by(order: Any) -> list[int]:
    """Return the samples of a subset, in turn."""
    return list(order.indices if isinstance(order.indices, range) else order.indices.array.tolist())


def renames(order: Any, run: Run) -> bool:
    """Return whether a subset reads its samples as the order inside says."""
    kept = kept_by(order)
    return run == [renamed(units_of(order.order, e), kept) for e in range(len(run))]


def numbers_inside(order: Any, run: Run) -> Run:
    """Return units by the numbers that samples have inside, if each sample has one."""
    kept = kept_by(order)
    numbers = {sample: number for number, sample in enumerate(kept)}
    return [renamed(units, numbers) for units in run] if len(numbers) == len(kept) else []


def names_of(unit: list[Any]) -> list[int]:
    """Return the samples of a unit, without their spans."""
    return [each[0] if isinstance(each, list) else each for each in unit]


def leaves_out(order: Any, run: Run) -> bool:
    """Return whether all but the excluded samples, or their units, keep their sequence."""
    gone = set(order.samples.array.tolist())
    for epoch, units in enumerate(run):
        left = units_of(order.order, epoch)
        if order.cut == "unit":
            left = [unit for unit in left if not gone & set(names_of(unit))]
        stay = [[each for each in unit if names_of([each])[0] not in gone] for unit in left]
        if units != [unit for unit in stay if unit]:
            return False
    return True


def without(draw: Draw, inner: ip.Order) -> ip.Without:
    """Draw samples to leave out, from the start of the run."""
    some = draw(st.sets(st.integers(0, inner.num_samples - 1), min_size=1, max_size=3))
    return ip.Without(inner, sorted(some), cut=draw(st.sampled_from(["piece", "unit"])))


RECIPES: dict[str, Recipe] = {
    "Epochs": Recipe(
        lambda draw, inner: ip.Epochs(inner, draw(st.integers(1, 60))),
        continues,
        lambda order, run: in_epochs(order.order, [unit for units in run for unit in units]),
    ),
    "Repeat": Recipe(
        lambda draw, inner: ip.Repeat(
            inner, copies := draw(st.integers(1, 3)), copies * draw(st.integers(1, 9))
        ),
        repeats,
        without_copies,
    ),
    "Subset": Recipe(
        lambda draw, inner: draw(subsets(st.just(inner))),
        renames,
        numbers_inside,
    ),
    "Mixture": Recipe(
        mixture,
        lambda order, run: within_shares(order, run) and whole_epochs_of_sources(order, run),
        lambda order, run: stream_of(order, run, "a"),
    ),
    "Without": Recipe(without, leaves_out, None),
}
IN_UNITS: dict[str, Callable[[Any, list[int]], bool]] = {  # of units that may lack some samples
    "packed-v1": fits_in_row,
    "token-budget-v1": lambda order, unit: padded(order, unit) <= order.max_tokens,
    "grouped-v1": of_one_group,
}
IN_WHOLE_UNITS = {
    **IN_UNITS,
    "class-batches-v1": lambda order, unit: (
        order.short == "repeat" or classes_and_samples_once(order, unit)
    ),
}
