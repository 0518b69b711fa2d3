"""Tables of orders: one for all equal orders of a process, built once and never saved."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Hashable
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import indexplan.kernels.compiling  # noqa: F401 (its locks must be registered before this one)

Table = TypeVar("Table")

# A table exists as long as some order holds it.
TABLES: WeakValueDictionary[Hashable, Any] = WeakValueDictionary()

# A fork waits until no thread builds a table, so that its children share it. Building compiles: the
# locks of compiling were registered before this one, at its import, and are taken after it.
_BUILDING = threading.RLock()
if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(
        before=_BUILDING.acquire,
        after_in_parent=_BUILDING.release,
        after_in_child=_BUILDING.release,
    )


def table_of(key: Hashable, build: Callable[[], Table]) -> Table:
    """Return the table that an order holds under a key, or build it."""
    with _BUILDING:
        found: Table | None = TABLES.get(key)
        if found is None:
            found = TABLES[key] = build()
        return found
