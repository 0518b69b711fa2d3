"""Orders that derive a table, what they read, and processes that share their tables."""

from __future__ import annotations

import os
import signal
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import indexplan as ip
from indexplan.stores import tables

ORDERS: dict[str, Callable[[Any], ip.Order]] = {
    "ClassBalanced": lambda column: ip.ClassBalanced(column, seed=1),
    "ClassBatches": lambda column: ip.ClassBatches(column, 3, 2, short="repeat"),
    "Distinct": lambda column: ip.Distinct(column, 6, seed=3),
    "Grouped": lambda column: ip.Grouped(column, 4),
    "LengthGrouped": lambda column: ip.LengthGrouped(column, 8, num_buckets=5),
    "Packed": lambda column: ip.Packed(column, 64),
    "Split": lambda column: _part(ip.Column(column)),
    "TokenBudget": lambda column: ip.TokenBudget(column, 128),
    "Weighted": lambda column: ip.Weighted(column, max_repeats=5, seed=2),
}


def _part(groups: ip.Column) -> ip.Order:
    return ip.Split(len(groups), {"a": 3, "b": 1}, groups=groups)["a"]


def reads(name: str, column: Any) -> list[Any]:
    """Return what the plan of an order reads in some steps, and where it reads some samples."""
    plan = ip.Plan(ORDERS[name](column), world_size=2, batch_size=3)
    found: list[Any] = []
    for epoch in (0, 2):
        steps = plan.steps(epoch).stop
        for step in range(steps) if steps < 200 else (0, steps // 2, steps - 1):
            found += [plan.batch(epoch, step=step, rank=rank).tolist() for rank in (0, 1)]
        found += [str(plan.locate(index, epoch)) for index in (0, 7, plan.order.num_samples - 1)]
    return found


def read_alone(name: str, column: Any) -> list[Any]:
    """Return what an order reads that shares nothing with those before, in this process."""
    tables.TABLES.clear()
    return reads(name, column)


def share_all(folder: str) -> None:
    """Share tables of any size, in this folder."""
    tables.LEAST = 0
    os.environ["INDEXPLAN_CACHE"] = folder


def kept(folder: Path) -> list[Path]:
    """Return the files of tables in a cache."""
    return [path for path in folder.glob("*/tables/*/*") if not path.name.startswith(".")]


def check(folder: str, name: str, column: str, expected: list[Any]) -> None:
    """Fail unless an order reads what is expected, by a table that is shared."""
    warnings.simplefilter("error")
    share_all(folder)
    if reads(name, column) != expected:
        os._exit(3)


def stop_in_writing(folder: str, name: str, column: str) -> None:
    """Read what an order gives, and stop this process when it begins to write a table."""
    share_all(folder)
    written = tables._written

    def stopped(*arguments: Any) -> Any:
        os.kill(os.getpid(), signal.SIGSTOP)
        return written(*arguments)

    vars(tables)["_written"] = stopped
    reads(name, column)
