"""A flipped bit in a plan of bins: an answer, or a PlanFileError; never memory without bounds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import indexplan as ip

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
    """Bits of the first numbers of a file and of its last one, by the default check."""
    ip.save(ip.Plan(ORDERS[name], world_size=1, batch_size=3), tmp_path / "a", units_per_chunk=4)
    path = tmp_path / f"a/epoch-00000/chunk-00000{kind}.npy"
    if not path.exists():
        assert (name, kind) == ("packed", ".spans")
        return
    content = path.read_bytes()
    whole = {ask: call() for ask, call in asks(ip.load(tmp_path / "a")).items()}
    refused = set()
    firsts = [8 * at for at in (128, 136, 144, len(content) - 8)]
    for bit in [first + low for first in firsts for low in (0, 5, 31, 40, 59, 62, 63)]:
        data = bytearray(content)
        data[bit // 8] ^= 1 << bit % 8
        path.write_bytes(data)
        for ask, call in asks(ip.load(tmp_path / "a")).items():
            try:
                answer = call()
            except ip.PlanFileError:
                refused.add(ask)
                continue
            assert len(np.ravel(answer)) <= 2 * len(np.ravel(whole[ask])) + 8, (ask, bit)
    if kind == ".offsets":
        assert set(whole) == refused
