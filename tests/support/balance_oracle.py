"""Balance as its page in specification.md says it, in plain integers and lists."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import indexplan as ip
from tests.support import model

Units = Callable[[model.Slot], list[Any]]  # the samples of the unit that a slot reads


def cells_of(places: list[int], counts: tuple[int, ...]) -> list[list[int]]:
    """Cut a rank's places into counts[0] parts, each of those into counts[1], and so on."""
    cells = [places]
    for count in counts:
        cells = [part for cell in cells for part in model.deal(cell, count)]
    return cells


def balanced(step: model.Step, counts: tuple[int, ...], cost_of: dict[int, int]) -> list[list[int]]:
    """Return the places of a step that each rank reads: `cost_of` has those without padding."""
    cells, numbers, ranks, first = [], [], [], 0
    for rank, slots in enumerate(step.ranks):
        parts = cells_of(list(range(first, first + len(slots))), counts)
        cells += parts
        numbers += range(len(parts))
        ranks += [rank] * len(parts)
        first += len(slots)
    room = [sum(place in cost_of for place in cell) for cell in cells]
    held: list[list[int]] = [[] for _ in cells]
    load = [0] * len(cells)
    for place in sorted(cost_of, key=lambda place: (-cost_of[place], place)):
        open_cells = [c for c in range(len(cells)) if len(held[c]) < room[c]]
        best = min(open_cells, key=lambda c: (load[c], c))
        held[best].append(place)
        load[best] += cost_of[place]
    result: list[list[int]] = [[] for _ in step.ranks]
    given: dict[int, list[int]] = {}
    for size in set(room):
        alike = [c for c in range(len(cells)) if room[c] == size]
        sides = sorted(alike, key=lambda c: (numbers[c], -ranks[c] if numbers[c] % 2 else ranks[c]))
        for side, content in zip(sides, sorted(alike, key=lambda c: (-load[c], c)), strict=True):
            given[side] = sorted(held[content])
    for c, cell in enumerate(cells):
        padding = [place for place in cell if place not in cost_of]
        result[ranks[c]] += given[c] + padding
    return result


def cost_of(balance: ip.Balance, lengths: list[int]) -> int:
    """Return what a unit of samples of some lengths costs."""
    return sum(balance.linear * each + balance.quadratic * each**2 for each in lengths)


def dealt(plan: ip.Plan, step: model.Step, units: Units) -> list[list[model.Slot]]:
    """Return the slots of a step that each rank reads in turn, under balance or without."""
    if plan.balance is None:
        return step.ranks
    lengths = plan.balance.lengths.array.tolist()
    costs = {
        place: cost_of(plan.balance, [lengths[sample] for sample in units(slot)])
        for place, slot in enumerate(step.slots)
        if not slot.padded
    }
    held = balanced(step, plan._layout.phases[step.phase].inner_counts, costs)
    return [[step.slots[place] for place in rank] for rank in held]
