"""local-shuffle-v1: known answers, the oracle, windows, and how far apart reads lie."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import indexplan as ip
from tests.support import oracles
from tests.support.strategies import seeds

GOLDEN = Path(__file__).parents[1] / "golden" / "local_shuffle_v1.json"
CASES = json.loads(GOLDEN.read_text())["cases"]

nums = st.one_of(st.integers(1, 60), st.integers(4000, 9000), st.integers(1, 2**63 - 1))
windows = st.one_of(st.integers(1, 9), st.integers(500, 5000), st.integers(1, 2**63 - 1))
small = st.builds(ip.LocalShuffle, st.integers(1, 60), st.integers(1, 9), seeds)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['n']}, {case['window']}")
def test_known_answers(case: dict[str, Any]) -> None:
    """Bits that never change, of the kernels and of the oracle."""
    order = ip.LocalShuffle(case["n"], case["window"], case["seed"])
    spec = (case["n"], case["window"], case["seed"], case["epoch"])
    epoch, positions = case["epoch"], case["positions"]
    assert case["indices"] == order.take(epoch, positions).tolist()
    assert positions == order.locate(epoch, case["indices"]).tolist()
    assert case["indices"] == [oracles.local_shuffle_forward(*spec, p) for p in positions]
    if "crc32_of_all_as_little_endian_int64" in case:
        row = order.take(epoch, 0, case["n"]).astype("<i8")
        assert case["crc32_of_all_as_little_endian_int64"] == zlib.crc32(row.tobytes())


@given(nums, windows, seeds, st.integers(0, 2**32 - 1), st.data())
def test_the_oracle(n: int, window: int, seed: int, epoch: int, data: st.DataObject) -> None:
    """Any runs of positions have the oracle's indices, and the indices lead back to them."""
    order = ip.LocalShuffle(n, window, seed)
    edge = st.integers(0, (n - 1) // window).map(lambda v: max(0, v * window - 3))
    starts = data.draw(st.lists(st.one_of(edge, st.integers(0, n - 1)), max_size=4))
    stops = [data.draw(st.integers(start, min(n, start + 9))) for start in starts]
    positions = [p for start, stop in zip(starts, stops, strict=True) for p in range(start, stop)]
    spec = (n, window, seed, epoch)
    expected = [oracles.local_shuffle_forward(*spec, p) for p in positions]
    assert expected == order.take(epoch, starts, stops).tolist()
    assert positions == order.locate(epoch, expected).tolist()
    assert positions == [oracles.local_shuffle_inverse(*spec, index) for index in expected]
