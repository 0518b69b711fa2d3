"""A step of a run, as its ledger has it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from indexplan.answers import Answer
from indexplan.errors import counted
from indexplan.plan.cursor import Cursor
from indexplan.plan.plan import Plan, dict_of


@dataclass(frozen=True, kw_only=True, eq=False)
class At(Answer):
    """A step of a run: which plan read it, and where that plan stood.

    `Ledger.at` returns it.

    Parameters
    ----------
    global_step : int
        The run's step.
    plan : Plan
        As the run continued with it: `plan.batch(at.epoch, at.sub_epoch, step=at.step, rank=...)`.
    epoch, sub_epoch, step : int
        The plan's own numbers of the step.
    cursor : Cursor
        Where the run stood before it: for `Without` or `plan.resume`.
    line : int
        The line of the ledger that has it.
    note : mapping
        What was noted there.

    Examples
    --------
    >>> import indexplan as ip
    >>> plan = ip.Plan(ip.Shuffle(1000), world_size=4, batch_size=10)
    >>> ledger = ip.Ledger("step.ledger")
    >>> ledger.record(plan, plan.cursor(epoch=1, step=5))
    >>> at = ledger.at(27)
    >>> at.epoch, at.step, len(at.plan.batch(at.epoch, at.sub_epoch, step=at.step, rank=3))
    (1, 2, 10)
    """

    global_step: int
    plan: Plan
    epoch: int
    sub_epoch: int
    step: int
    cursor: Cursor
    line: int
    note: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Return the step as JSON types."""
        written = {"plan": dict_of(self.plan), "cursor": self.cursor.to_dict()}
        return {**vars(self), "note": dict(self.note), **written}

    def __str__(self) -> str:
        part = f", sub-epoch {self.sub_epoch}" if self.plan.sub_epochs > 1 else ""
        ranks = counted(self.plan.world_size or 1, "rank")
        start = f"step {self.global_step:,}: epoch {self.epoch}{part}, step {self.step:,}"
        return f"{start}, on {ranks}; position {self.cursor.position:,}; line {self.line:,}"
