"""A flipped bit in a plan of bins: an answer, or a PlanFileError; never memory without bounds."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import indexplan as ip
from tests.support.forging import rehashed

LENGTHS = [3, 1, 2, 3, 1, 2, 4, 4, 1, 2, 3, 4]
ORDERS = {
    "packed": ip.Packed(LENGTHS, max_length=5),
    "windows": ip.DocumentWindows(LENGTHS, length=4, overlap=1),
}


def asks(plan: ip.Plan) -> dict[str, Callable[[], Any]]:
    """Return what is asked of a plan that reads bins from files."""
    order = plan.order
    where = {"step": 0, "rank": 0}
    found: dict[str, Callable[[], Any]] = {
        "take": lambda: order.take(0, 0, order.num_units(0)),
        "some": lambda: order.take(0, [0, 2], [1, 4]),
        "offsets": lambda: order.offsets(0, 0, order.num_units(0)),
        "one": lambda: order.offsets(0, 3, 4),
        "batch": lambda: plan.batch(0, **where),
        "sizes": lambda: plan.units(0, **where).offsets,
    }
    if order.traits.cuts_samples:
        found["spans"] = lambda: plan.units(0, **where).spans
    return found


@pytest.mark.parametrize("kind", [".offsets", ".spans", ""])
@pytest.mark.parametrize("name", ORDERS)
def test_flipped_bits(name: str, kind: str, tmp_path: Path) -> None:
    """Bits of the first numbers of a file and of its last, with hashes made right again."""
    ip.save(ip.Plan(ORDERS[name], world_size=1, batch_size=3), tmp_path / "a", units_per_chunk=4)
    path = tmp_path / f"a/epoch-00000/chunk-00000{kind}.npy"
    if not path.exists():
        assert (name, kind) == ("packed", ".spans")
        return
    content = path.read_bytes()
    read = partial(ip.load, tmp_path / "a")
    whole = {ask: call() for ask, call in asks(read()).items()}
    refused = set()
    firsts = [8 * at for at in (128, 136, 144, len(content) - 8)]
    for bit in [first + low for first in firsts for low in (0, 5, 31, 40, 59, 62, 63)]:
        data = bytearray(content)
        data[bit // 8] ^= 1 << bit % 8
        path.write_bytes(data)
        rehashed(path)
        for ask, call in asks(read()).items():
            try:
                answer = call()
            except ip.PlanFileError:
                refused.add(ask)
                continue
            assert len(np.ravel(answer)) <= 2 * len(np.ravel(whole[ask])) + 8, (ask, bit)
    if kind == ".offsets":
        assert set(whole) == refused


MUTATED = {
    "shuffle": ip.Plan(ip.Shuffle(300, seed=1), world_size=2, batch_size=4),
    **{name: ip.Plan(order, world_size=1, batch_size=3) for name, order in ORDERS.items()},
}


@settings(max_examples=max(250, settings().max_examples), suppress_health_check=[*HealthCheck])
@given(name=st.sampled_from([*MUTATED]), data=st.data())
def test_drawn_flips(name: str, data: st.DataObject, tmp_path_factory: Any) -> None:
    """Any bits of any chunk file, by the default check: the plan that was saved, or a refusal.

    The path stays the same, another reader of it stays open, and an edit may keep the file's time.
    """
    root = tmp_path_factory.getbasetemp() / f"drawn-{name}"
    if not root.exists():
        ip.save(MUTATED[name], root, epochs=[0, 1], units_per_chunk=4 if name in ORDERS else 100)
    earlier = ip.load(root)
    whole = {ask: np.ravel(call()).tolist() for ask, call in asks(earlier).items()}
    path = data.draw(st.sampled_from(sorted(root.glob("epoch-*/chunk-*.npy"))), "file")
    content, times = path.read_bytes(), path.stat()
    flipped = bytearray(content)
    for at in data.draw(st.sets(st.integers(0, 8 * len(content) - 1), min_size=1, max_size=3)):
        flipped[at // 8] ^= 1 << at % 8
    put_back = data.draw(st.booleans(), "the time is put back")
    try:
        path.write_bytes(flipped)
        if put_back:
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        refused = 0
        for ask, call in asks(ip.load(root)).items():
            try:
                assert whole[ask] == np.ravel(call()).tolist()
            except ip.PlanFileError:
                refused += 1
        assert refused or path.parent.name == "epoch-00001" or path.name != "chunk-00000.npy"
    finally:
        path.write_bytes(content)
