"""How a plan and the place where a run stands get from one leg to the next."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from random import Random
from typing import Any

import indexplan as ip

CARRIERS = ("itself", "JSON", "dict", "pickle")


def through(cursor: ip.Cursor, random: Random) -> tuple[ip.Cursor, str]:
    """Return what a checkpoint gives back, and by which carrier it came."""
    carrier = random.choice(CARRIERS)
    if carrier == "JSON":
        return ip.Cursor.from_json(cursor.to_json()), carrier
    if carrier == "dict":
        return ip.Cursor.from_dict(json.loads(json.dumps(cursor.to_dict()))), carrier
    if carrier == "pickle":
        return pickle.loads(pickle.dumps(cursor)), carrier  # noqa: S301 (ours)
    return cursor, carrier


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
        if how == "JSON":
            plan = ip.Plan.from_json(plan.to_json())
        elif how == "spaced JSON":
            plan = ip.Plan.from_json(json.dumps(json.loads(plan.to_json()), indent=1))
        elif "pickle" in how:
            plan = pickle.loads(pickle.dumps(plan))  # noqa: S301 (ours)
        self.last = plan
        return plan, how
