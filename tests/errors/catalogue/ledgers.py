"""What errors of ledgers are provoked with."""

from __future__ import annotations

import fcntl
import json
import resource
from typing import Any

import indexplan as ip
from indexplan.ledger.lines import FIRST, LONGEST
from tests.errors.catalogue.made import written
from tests.support.children import nobody
from tests.support.forging import ledger_of

PLAN = ip.Plan(ip.Sequential(10), world_size=2, batch_size=2)
NAMED = {"kind": "plan", "plan": json.loads(PLAN.to_json()), "data": None}
RUN = {"kind": "run", "plan": 1, "step": 0, "steps": 2, "from": [0, 0, 0, 0], "to": [0, 0, 2, 7]}


def ledger(path: str = "run.ledger", epoch: int = 1) -> ip.Ledger:
    """Write the ledger of a run, which has 3 steps in an epoch."""
    made = ip.Ledger(path)
    made.record(PLAN, PLAN.cursor(epoch, step=0))
    return made


def holding(*lines: dict[str, Any]) -> ip.Ledger:
    """Open a ledger of any lines, each with the checksum and hash that it needs."""
    written("run.ledger", ledger_of(lines))
    return ip.Ledger("run.ledger")


def changed(**fields: Any) -> ip.Ledger:
    """Open a ledger whose second line, of two steps, has other fields."""
    return holding(NAMED, {**RUN, **fields})


def naming(**fields: Any) -> ip.Ledger:
    """Open a ledger whose plan has other fields."""
    return holding({**NAMED, "plan": {**json.loads(PLAN.to_json()), **fields}})


def after(**line: Any) -> ip.Ledger:
    """Open a ledger with one more line after two steps."""
    return holding(NAMED, RUN, line)
