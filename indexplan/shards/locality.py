"""Whether nodes keep their lanes under a plan of shards; if not, why not, and what to change.

A node reads the same lanes in all stripes if the law of locality of shard-shuffle-v1 holds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from indexplan.partition.steps import Steps
from indexplan.plan.plan import Plan, layout_of

SUB_EPOCHS = 4096  # of each epoch, whose steps are checked
TRIED = 256  # numbers of lanes to try, and of stripes for each, when looking for some that fit


def locality(plan: Plan, ranks_per_node: int, epochs: Iterable[int]) -> tuple[str, ...]:
    """Return why nodes do not keep their lanes, and what to change; nothing if they do.

    Also nothing for orders of other kinds, which have no lanes.
    """
    order = plan.order.to_dict()
    if order["algorithm"] != "shard-shuffle-v1":
        return ()
    world_size = layout_of(plan).world_size
    ranks = min(ranks_per_node, world_size)
    if world_size % ranks:
        rest = f"{world_size} ranks in nodes of {ranks} leave a node of fewer"
        return (f"{rest}, so that nodes cut lanes in the middle; fill all nodes",)
    return _of_sizes(plan, order, world_size // ranks) or _of_steps(plan, order, epochs)


def _of_sizes(plan: Plan, order: dict[str, Any], nodes: int) -> tuple[str, ...]:
    """Return what is wrong with the sizes of batches, stripe and lanes."""
    layout = layout_of(plan)
    lanes, stripe, sizes = order["lanes"], order["stripe"], sorted(set(layout.partition.sizes))
    uneven = [size for size in sizes if size % layout.world_size]
    if uneven:
        words = f"the global batch ({uneven[0]:,}) isn't a multiple of {layout.world_size} ranks"
        return (f"{words}, so shares move from step to step; choose one that is",)
    for size in sizes:
        if stripe % size:
            words = f"stripe={stripe} isn't a multiple of the global batch ({size:,})"
        elif lanes % (stripe // size):
            words = f"lanes={lanes} isn't a multiple of the {stripe // size} steps of a stripe"
        elif lanes * size // stripe % nodes:
            each = lanes * size // stripe
            words = f"{nodes} nodes cannot evenly share the lanes of a step, {each}"
        else:
            continue
        found = fitting(lanes, stripe, sizes, nodes)
        cure = "use lanes={}, stripe={}".format(*found) if found else "use other batches"
        return (f"{words}, so nodes will switch lanes; {cure}",)
    return ()


def fits(lanes: int, stripe: int, sizes: list[int], nodes: int) -> bool:
    """Return whether nodes keep their lanes in full steps of these sizes, if they are aligned."""
    return stripe % lanes == 0 and all(
        stripe % size == 0 and lanes % (stripe // size) == 0 and lanes * size // stripe % nodes == 0
        for size in sizes
    )


def fitting(lanes: int, stripe: int, sizes: list[int], nodes: int) -> tuple[int, int] | None:
    """Return lanes and a stripe that fit, close to the given ones; None if none are found."""
    most = max(1, lanes // nodes)
    counts = range(max(1, most - TRIED // 2), most + TRIED // 2 + 1)
    for count in sorted(counts, key=lambda count: abs(count * nodes - lanes)):
        each = math.lcm(*sizes, count * nodes)
        stripes = [each * k for k in range(1, TRIED + 1)]
        found = [one for one in stripes if fits(count * nodes, one, sizes, nodes)]
        if found:
            return count * nodes, min(found, key=lambda one: abs(one - stripe))
    return None


def _of_steps(plan: Plan, order: dict[str, Any], epochs: Iterable[int]) -> tuple[str, ...]:
    """Return why steps do not start where the grid of stripes needs them to."""
    layout = layout_of(plan)
    stream, crosses = order["grid"] == "stream", layout.partition.policy.crosses
    for epoch in epochs:
        shift = epoch * plan.order.num_samples if stream else 0
        first = plan.start.sub_epoch if epoch == plan.start.epoch else 0
        for part in range(first, min(plan.sub_epochs, first + SUB_EPOCHS)):
            steps = layout.steps(epoch, part)
            if _aligned(plan, steps, shift):
                continue
            if crosses and not stream:
                why = "carry's steps run through the epochs, and lanes begin anew in each"
                cure = 'use grid="stream"'
            elif stream and not crosses:
                why = f'grid="stream" is for carry; under {plan.remainder} epochs begin elsewhere'
                cure = 'use grid="epoch", or remainder="carry"'
            elif steps.first_step and steps.start != steps.first:
                why = f"the run went on at position {steps.start:,}, in the middle of a step"
                cure = "stop runs after full steps of a global batch that divides both"
            elif plan.sub_epochs > 1 and not crosses:
                why = f"{plan.sub_epochs} sub-epochs begin in the middle of steps"
                cure = 'use remainder="carry" and grid="stream"'
            elif layout.partition.policy.shrinks:
                why = f"{plan.remainder}'s steps are smaller than the global batch, and drift"
                cure = 'use remainder="drop" or "pad", or "carry" and grid="stream"'
                cure += _fewer(plan)
            else:
                why = "a phase begins in the middle of a step"
                cure = "begin it where one ends"
            return (f"epoch {epoch}: {why}, so nodes will switch lanes; {cure}",)
    return ()


def _fewer(plan: Plan) -> str:
    """Return how many samples would fill all steps of an epoch."""
    layout = layout_of(plan)
    num, size = plan.order.num_samples, layout.partition.sizes[0]
    if len(layout.partition.sizes) > 1 or num < size:
        return ""
    rest = num % size
    return f", or {num - rest:,} samples, {rest:,} fewer, whose steps are full"


def _aligned(plan: Plan, steps: Steps, shift: int) -> bool:
    """Return whether all steps of a sub-epoch are full and start at multiples of their size."""
    for span in steps.spans:
        size = layout_of(plan).partition.sizes[span.phase]
        if (span.start + shift) % size or span.length != span.num_steps * size:
            return False
    return True
