"""The classes that the library returns, by name: for annotations, and for `isinstance`.

You don't make these yourself: `Plan.account` returns an `Account`, `save` a `Saved`, and so on.

Examples
--------
>>> import indexplan as ip
>>> from indexplan.types import Account
>>> def lost(account: Account) -> int:
...     return account.num_dropped
>>> lost(ip.Plan(ip.Shuffle(1003), world_size=2, batch_size=50, remainder="drop").account(epoch=0))
3
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from indexplan.checks import Check, Report
    from indexplan.files.read import Stored
    from indexplan.files.saving import Saved
    from indexplan.ledger.account import LedgerAccount
    from indexplan.ledger.at import At
    from indexplan.ledger.finding import Read
    from indexplan.orders.split import Part
    from indexplan.partition.account import Account
    from indexplan.partition.locate import Location
    from indexplan.partition.remainders import Remainder
    from indexplan.plan.batch import Batch
    from indexplan.plan.pulling import Stream
    from indexplan.reports.benchmark import Bench
    from indexplan.reports.difference import Difference
    from indexplan.reports.explanation import Reading
    from indexplan.reports.shares_drawn import Draws
    from indexplan.shards.downloads import Traffic
    from indexplan.shards.shard_reads import Reads

__all__ = [
    "Account",
    "At",
    "Batch",
    "Bench",
    "Check",
    "Difference",
    "Draws",
    "LedgerAccount",
    "Location",
    "Part",
    "Read",
    "Reading",
    "Reads",
    "Remainder",
    "Report",
    "Saved",
    "Stored",
    "Stream",
    "Traffic",
]

_AT_FIRST_USE = {
    "Account": "indexplan.partition.account",
    "At": "indexplan.ledger.at",
    "Batch": "indexplan.plan.batch",
    "Bench": "indexplan.reports.benchmark",
    "Check": "indexplan.checks",
    "Difference": "indexplan.reports.difference",
    "Draws": "indexplan.reports.shares_drawn",
    "LedgerAccount": "indexplan.ledger.account",
    "Location": "indexplan.partition.locate",
    "Part": "indexplan.orders.split",
    "Read": "indexplan.ledger.finding",
    "Reading": "indexplan.reports.explanation",
    "Reads": "indexplan.shards.shard_reads",
    "Remainder": "indexplan.partition.remainders",
    "Report": "indexplan.checks",
    "Saved": "indexplan.files.saving",
    "Stored": "indexplan.files.read",
    "Stream": "indexplan.plan.pulling",
    "Traffic": "indexplan.shards.downloads",
}


def __getattr__(name: str) -> Any:
    if name not in _AT_FIRST_USE:
        raise AttributeError(f"module 'indexplan.types' has no attribute {name!r}")
    return getattr(import_module(_AT_FIRST_USE[name]), name)


def __dir__() -> list[str]:
    return __all__
