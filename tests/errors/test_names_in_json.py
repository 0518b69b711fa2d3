"""A text in JSON, wherever it stands, names nothing that is opened, listed, imported or run."""

from __future__ import annotations

import contextlib
import json
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import indexplan as ip
from tests.support.every_order import every_order
from tests.support.forging import rewritten
from tests.support.listed import Listed, Wrapped

NAME = "planted-in-json"  # part of the path, by which an audit event is recognised
SIX = ip.Shuffle(6)
LENGTHS = [3, 1, 2, 3, 1, 2]
ORDERS: list[ip.Order] = [
    *every_order().values(),
    ip.Weighted([(0, LENGTHS), (3, [1, 2, 3, 4, 5, 6])]),
    ip.Subset(ip.Shuffle(3), range(3), 6),
    ip.Subset(ip.Shuffle(4), ip.Epochs(SIX, 4), 6),
    Listed([3, 1], 6, shares=[0.5, 1]),
    Wrapped(ip.Repeat(ip.Subset(ip.Weighted([1, 2, 3]), [0, 2, 4], 6), 2)),
]

_watched = threading.local()


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    seen = getattr(_watched, "seen", None)
    if seen is not None and any(isinstance(each, str) and NAME in each for each in arguments):
        seen.append(event)


sys.addaudithook(_audit)  # it cannot be taken away, and looks only where it was asked to


@contextlib.contextmanager
def watched() -> Iterator[list[str]]:
    """Note what is opened, listed, imported or run under the planted name."""
    _watched.seen = seen = []
    try:
        yield seen
    finally:
        _watched.seen = None


def planted(data: Any, values: list[Any]) -> Iterator[Any]:
    """Yield a document once for each value of it, and each text that takes the value's place."""
    if isinstance(data, dict):
        for name, value in data.items():
            for other in [*values, *planted(value, values)]:
                yield {**data, name: other}
    elif isinstance(data, list):
        for at, value in enumerate(data):
            for other in [*values, *planted(value, values)]:
                yield [*data[:at], other, *data[at + 1 :]]


def texts(folder: Path) -> list[Any]:
    """Return paths of a file that is a column, as text, in lists and in objects."""
    path = str(folder / f"{NAME}.npy")
    np.save(path, np.arange(1, 7))
    return [path, [path], [[0, path]], {"path": path}]


def opened(read: Callable[[Any], Any], documents: Iterator[Any]) -> set[str]:
    """Return each document of which something was opened, as it is read and asked."""
    found = set()
    for each in documents:
        with watched() as seen, contextlib.suppress(Exception):  # such as of a user's own order
            read(each)
        if seen:
            found.add(f"{seen[0]}: {json.dumps(each)}")
    return found


def test_the_watch_sees_what_is_opened(tmp_path: Path) -> None:
    """A path that the caller passes is opened, and seen to be."""
    path = texts(tmp_path)[0]
    with watched() as seen:
        ip.Weighted(path)
    assert "open" in seen


@pytest.mark.parametrize("order", ORDERS, ids=lambda order: order.algorithm)
def test_orders(order: ip.Order, tmp_path: Path) -> None:
    """No field of any order, or of an order inside it, names what is opened."""
    columns = list(order.columns.values())
    plan = json.loads(ip.Plan(ip.Sequential(6), batch_size=1).to_json())

    def read(data: Any) -> None:
        made = ip.Plan.from_json(json.dumps({**plan, "order": data}), columns=columns)
        made.order.take(0, 0, 1)

    read(order.to_dict())
    assert set() == opened(read, planted(order.to_dict(), texts(tmp_path)))


def test_plans_cursors_balances_shards_and_directories(tmp_path: Path) -> None:
    """Nor does any other field of what is read from JSON, or of a plan directory."""
    order, balance = ip.Weighted(LENGTHS), ip.Balance(LENGTHS)
    columns = [*order.columns.values(), balance.lengths]
    phases = [ip.Phase(0, (2, 1), {"rate": 1}), ip.Phase(4, 3, {"rate": 2})]
    plan = ip.Plan(order, world_size=1, batch_size=phases, balance=balance)
    cursor = plan.cursor(0, step=1)
    plan = plan.resume(cursor)
    root = tmp_path / "a.plan"
    ip.save(ip.Plan(order, batch_size=2), root, units_per_chunk=4)
    np.save(tmp_path / "shard.npy", np.zeros(6))
    shards, dataset = ip.shard_sizes(tmp_path), ip.Dataset.scan(tmp_path / "shard.npy")

    def planned(data: Any) -> Any:
        return ip.Plan.from_json(json.dumps(data), columns=columns).batch(0, step=1, rank=0)

    def stored(data: Any) -> Any:
        rewritten(root, lambda _: data)  # its digests are right
        return ip.load(root).order.take(0, 0, 1)

    readers: list[tuple[Any, Callable[[Any], Any]]] = [
        (json.loads(plan.to_json()), planned),
        (cursor.to_dict(), lambda data: plan.replace().resume(ip.Cursor.from_dict(data))),
        (shards.to_dict(), lambda data: ip.Shards.from_dict(data).identity),
        (json.loads((root / "plan.json").read_text()), stored),
        (dataset.to_dict(), lambda data: dataset.check_same(ip.Dataset.from_dict(data))),
    ]
    for data, read in readers:
        found = opened(read, planted(json.loads(json.dumps(data)), texts(tmp_path)))
        assert set() == found
