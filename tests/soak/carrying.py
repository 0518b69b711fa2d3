"""How a plan and the place where a run stands get from one leg to the next."""

from __future__ import annotations

import copy
import io
import json
import pickle
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import indexplan as ip


class Saved(NamedTuple):
    """Where a run stands: a cursor, or the state of a loader of a kind that loads it again.

    `inside` tells of a state that the loop took while it held the last batch of a pass, `number` in
    which pass, counted in sub-epochs through the run.
    """

    kind: str
    value: Any
    inside: bool = False
    number: int = 0

    @property
    def cursor(self) -> ip.Cursor:
        """The cursor that is, or is inside."""
        if self.kind == "cursor":
            assert isinstance(self.value, ip.Cursor)
            return self.value
        state = self.value
        if self.kind == "torchdata":
            state = state.get("_snapshot", {}).get("_main_snapshot", state)["_sampler_iter_state"]
        return ip.Cursor.from_dict(state["cursor"])


def through(saved: Saved, random: Random, folder: Path) -> tuple[Saved, str]:
    """Return what a checkpoint gives back, and by which carrier it came."""
    cursor = saved.kind == "cursor"
    carriers = ["itself", "JSON", "dict", "pickle", "a file"]
    if not cursor:
        carriers = ["JSON", "pickle", "a file", "torch.save"]
    carrier = random.choices(carriers, [10] * (len(carriers) - 1) + [2])[0]
    value = saved.value
    if carrier == "pickle":
        return saved._replace(value=pickle.loads(pickle.dumps(value))), carrier  # noqa: S301 (ours)
    if carrier == "torch.save":
        import torch

        buffer = io.BytesIO()
        torch.save(value, buffer)
        buffer.seek(0)
        return saved._replace(value=torch.load(buffer, weights_only=True)), carrier
    if carrier == "dict":
        return saved._replace(value=ip.Cursor.from_dict(copy.deepcopy(value.to_dict()))), carrier
    if carrier == "itself":
        return saved, carrier
    text = value.to_json() if cursor else json.dumps(value)
    if carrier == "a file":
        (folder / "checkpoint.json").write_text(text)
        text = (folder / "checkpoint.json").read_text()
    return saved._replace(value=ip.Cursor.from_json(text) if cursor else json.loads(text)), carrier


class Plans:
    """The plans of a history: of one order, computed or stored, under any partition."""

    def __init__(self, run: ip.Plan, random: Random, directory: Path | None) -> None:
        self.run, self.random, self.directory = run, random, directory
        self.last = run

    def resumed(self, fields: dict[str, Any], cursor: ip.Cursor) -> tuple[ip.Plan, str]:
        """Return a plan of a partition that goes on after a cursor, and how it was made."""
        if self.directory is not None and self.random.random() < 0.6:
            plan, how = self._stored()
            plan = plan.replace(**fields)
        else:
            how = self.random.choice(["new", "replaced", "JSON", "dict", "pickle"])
            plan = self.last.replace(**fields)
            if how == "new":
                plan = ip.Plan(self.run.order, sub_epochs=self.run.sub_epochs, **fields)
        plan = plan.resume(cursor)
        if how in ("JSON", "dict", "pickle"):
            plan = carried(plan, how)
        self.last = plan
        return plan, how

    def _stored(self) -> tuple[ip.Plan, str]:
        """Return the plan of the plan directory."""
        assert self.directory is not None
        how = self.random.choice(["stored", "stored, pickled"])
        plan = ip.load(self.directory)
        return (carried(plan, "pickle") if "pickled" in how else plan), how


def carried(plan: ip.Plan, how: str) -> ip.Plan:
    """Return a plan as it comes back from its text, its dict or its pickle."""
    if how == "JSON":
        return ip.Plan.from_json(plan.to_json())
    if how == "dict":
        return ip.Plan.from_dict(json.loads(json.dumps(plan.to_dict())))
    found = pickle.loads(pickle.dumps(plan))  # noqa: S301 (ours)
    assert isinstance(found, ip.Plan)
    return found
