"""A plan as its dict form and its columns, and what it answers, each as one short number."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

import numpy as np

import indexplan as ip


def columns_of(plan: ip.Plan) -> list[list[Any]]:
    """Return the numbers of a plan's columns, each with their type."""
    found = dict(plan.order.columns)
    if plan.balance is not None:
        found |= {each.identity["sha256"]: each for each in [plan.balance.lengths]}
    return [[each.array.dtype.str, each.array.tolist()] for each in found.values()]


def rebuilt(case: dict[str, Any]) -> ip.Plan:
    """Return the plan of a case, from what the file of known answers holds of it."""
    columns = [np.array(row, kind) for kind, row in case["columns"]]
    return ip.Plan.from_json(json.dumps(case["plan"]), columns=columns)


def algorithms(form: Any) -> set[str]:
    """Return the algorithms of all orders in a dict form."""
    if not isinstance(form, dict | list):
        return set()
    named = {form["algorithm"]} if isinstance(form, dict) and "algorithm" in form else set()
    inside = form.values() if isinstance(form, dict) else form
    return named.union(*map(algorithms, inside))


def answers(plan: ip.Plan) -> list[str]:
    """Return fingerprint, batches of two epochs, where they read, and batches after a resume."""
    first = plan.start.epoch
    middle = plan.cursor(first, plan.start.sub_epoch, step=_half(plan))
    after = plan.resume(middle)
    parts: list[Iterable[int]] = [
        *(_batches(plan, epoch) for epoch in (first, first + 1)),
        *(_places(plan.order, epoch) for epoch in (first, first + 1)),
        chain(middle.to_json().encode(), _batches(after, after.start.epoch)),
        _batches(after, after.start.epoch + 2),
    ]
    return [plan.fingerprint[:16], *(_crc32(part) for part in parts)]


def _half(plan: ip.Plan) -> int:
    steps = plan.steps(plan.start.epoch, plan.start.sub_epoch)
    return (steps.start + steps.stop + 1) // 2


def _batches(plan: ip.Plan, epoch: int) -> Iterator[int]:
    """Yield the numbers of the first, middle and last steps of some sub-epochs, on some ranks."""
    start = plan.start.sub_epoch if epoch == plan.start.epoch else 0
    for sub_epoch in _some(range(start, plan.sub_epochs)):
        steps = plan.steps(epoch, sub_epoch)
        yield from (sub_epoch, steps.start, steps.stop)
        for step in _some(steps):
            for rank in _some(range(plan.world_size or 0)):
                batch = plan.units(epoch, sub_epoch, step=step, rank=rank)
                yield batch.num_valid
                yield from batch.offsets.tolist()
                yield from batch.samples.tolist()
                yield from ([] if batch.spans is None else batch.spans.ravel().tolist())


def _places(order: ip.Order, epoch: int) -> Iterator[int]:
    """Yield where an epoch reads each sample."""
    for part in order.locate_all(epoch, np.arange(order.num_samples)):
        yield from part.tolist()


def _some(numbers: range) -> list[int]:
    """Return the first, the middle and the last of some numbers."""
    middle = numbers[len(numbers) // 2 :][:1]
    return sorted({*numbers[:1], *middle, *numbers[-1:]})


def _crc32(numbers: Iterable[int]) -> str:
    return f"{zlib.crc32(np.array([*numbers], '<i8').tobytes()):08x}"
