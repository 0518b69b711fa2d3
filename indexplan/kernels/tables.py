"""Tables of orders: one for all equal orders of a process, built once and never saved."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import indexplan.kernels.compiling  # noqa: F401 (numba, before a fork can wait for a table)
from indexplan import kernels

Table = TypeVar("Table")

# A table exists as long as some order holds it.
TABLES: WeakValueDictionary[Hashable, Any] = WeakValueDictionary()


def table_of(key: Hashable, build: Callable[[], Table]) -> Table:
    """Return the table that an order holds under a key, or build it.

    A fork waits until no thread builds one, so that its children share it.
    """
    with kernels.BUSY:
        found: Table | None = TABLES.get(key)
        if found is None:
            found = TABLES[key] = build()
        return found
