"""What a leg of a run does without a trainer: it gets a plan and a cursor, and reads batches."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import indexplan as ip
from tests.soak.drawing import Part
from tests.support.micro import micro_batches

Int64 = NDArray[np.int64]
CARRIERS: dict[str, Callable[[ip.Cursor], ip.Cursor]] = {
    "itself": lambda cursor: cursor,
    "JSON": lambda cursor: ip.Cursor.from_json(cursor.to_json()),
    "dict": lambda cursor: ip.Cursor.from_dict(json.loads(json.dumps(cursor.to_dict()))),
    "pickle": lambda cursor: pickle.loads(pickle.dumps(cursor)),  # noqa: S301 (ours)
}
"""How a checkpoint keeps a cursor."""
WAYS = {"indices": 30, "batches": 15, "batch": 50, "micro_batches": 10}
"""How batches are asked for, and how often: together, as a stream, each by itself."""


class WrongError(Exception):
    """What the library promises, beside samples that are read once, is not so."""


class Plans:
    """The plans of a history: of one order, computed or stored, under any partition."""

    def __init__(self, run: ip.Plan, random: Random, directory: Path | None) -> None:
        self.run, self.random, self.directory = run, random, directory
        self.last = run

    def resumed(self, fields: dict[str, Any], cursor: ip.Cursor) -> tuple[ip.Plan, str]:
        """Return a plan of a partition that goes on after a cursor, and how it was made."""
        how = self.random.choice(["new", "replaced", "JSON", "spaced JSON", "pickle"])
        plan = self.last.replace(**fields)
        if self.directory is not None and self.random.random() < 0.6:
            how = self.random.choice(["stored", "stored, pickled"])
            plan = ip.load(self.directory).replace(**fields)
        elif how == "new":
            plan = ip.Plan(self.run.order, sub_epochs=self.run.sub_epochs, **fields)
        plan = plan.resume(cursor)
        if "JSON" in how:
            text = plan.to_json()
            spaced = json.dumps(json.loads(text), indent=1)
            plan = ip.Plan.from_json(text if how == "JSON" else spaced)
        elif "pickle" in how:
            plan = pickle.loads(pickle.dumps(plan))  # noqa: S301 (ours)
        self.last = plan
        return plan, how


class Read(NamedTuple):
    """What all ranks read in a part: in its last step, rank by rank, and in the steps before."""

    before: Int64
    last: Int64


def flat(arrays: Iterable[Any]) -> Int64:
    """Return arrays or lists of indices as one array."""
    return np.concatenate([np.empty(0, np.int64), *(np.asarray(a, np.int64) for a in arrays)])


def leaves(nested: Any) -> list[Any]:
    """Return the arrays inside nested lists."""
    if not isinstance(nested, list):
        return [nested]
    return [leaf for part in nested for leaf in leaves(part)]


def read(plan: ip.Plan, part: Part, way: str) -> Read:
    """Read the steps of a part on all ranks; the last step apart, as epochs can mix in it."""
    where, ranks = (part.epoch, part.sub_epoch), range(plan.world_size or 0)
    steps = range(part.start, part.stop)
    if way == "indices":  # the last step apart only where epochs do mix
        stop = part.stop - (plan.remainder == "carry" and len(steps) > 0)
        interval = {"start_step": part.start, "stop_step": stop}
        before = flat(plan.indices(*where, rank=rank, **interval) for rank in ranks)
        last = [part.stop - 1] if stop < part.stop else []
        return Read(before, flat(plan.batch(*where, step=s, rank=r) for s in last for r in ranks))

    def batches(rank: int) -> list[Any]:
        if way == "batches":
            interval = {"start_step": part.start, "stop_step": part.stop}
            return list(plan.batches(*where, rank=rank, **interval))
        if way == "batch":
            return [plan.batch(*where, step=step, rank=rank) for step in steps]
        inner = (micro_batches(plan.units(*where, step=step, rank=rank)) for step in steps)
        return [flat(leaves(each)) for each in inner]

    every = [batches(rank) for rank in ranks]
    for rank, got in enumerate(every):
        if len(got) != len(steps):
            raise WrongError(f"rank {rank} received {len(got)} batches of {len(steps)}, in {part}")
    before = flat(batch for got in every for batch in got[:-1])
    return Read(before, flat(got[-1] for got in every if got))
