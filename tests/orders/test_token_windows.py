"""token-windows-v1: known answers, the oracle, and which tokens an epoch reads and predicts."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import indexplan as ip
from tests.support.strategies import seeds
from tests.support.windows_oracle import Windows

GOLDEN = Path(__file__).parents[1] / "golden" / "token_windows_v1.json"
CASES = json.loads(GOLDEN.read_text())["cases"]

epochs = st.integers(0, 2**32 - 1)


@st.composite
def windows(draw: st.DrawFn, most: int = 130) -> Windows:
    """Draw the fields of an order, as often as not of one window, or of windows that just fit."""
    length, overlap = draw(st.integers(1, most)), draw(st.integers(0, most))
    more = draw(st.one_of(st.integers(0, 2 * length), st.integers(0, most)))
    return Windows(length + overlap + more, length, overlap, draw(st.booleans()), draw(seeds))


def made(fields: Windows) -> ip.TokenWindows:
    """Return the order of these fields."""
    first, *more = fields
    return ip.TokenWindows(first, more[0], overlap=more[1], shift=bool(more[2]), seed=more[3])


small = windows(most=30).map(made)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['num_tokens']}, {case['length']}")
def test_known_answers(case: dict[str, Any]) -> None:
    """Bits that never change, of the order and of the oracle."""
    fields = Windows(*(case[name] for name in Windows._fields))
    order, epoch, positions = made(fields), case["epoch"], case["positions"]
    assert case["num_units"] == order.num_units(epoch) == fields.num
    assert case["phase"] == order.targets(epoch).start - order.overlap == fields.phase(epoch)
    assert case["starts"] == order.take(epoch, positions).tolist()
    assert positions == order.locate(epoch, case["starts"]).tolist()
    assert case["starts"] == [fields.start(epoch, position) for position in positions]
    if "crc32_of_all_as_little_endian_int64" in case:
        row = order.take(epoch, 0, case["num_units"]).astype("<i8")
        assert case["crc32_of_all_as_little_endian_int64"] == zlib.crc32(row.tobytes())


@given(st.one_of(windows(), windows(2**61)), epochs, st.data())
def test_the_oracle(fields: Windows, epoch: int, data: st.DataObject) -> None:
    """Any positions have the oracle's windows, and these lead back to them."""
    order = made(fields)
    assert fields.num == order.num_units(epoch)
    positions = data.draw(st.lists(st.integers(0, fields.num - 1), max_size=5))
    starts = [fields.start(epoch, position) for position in positions]
    assert starts == order.take(epoch, positions).tolist()
    assert positions == order.locate(epoch, starts).tolist()
    inside = [start + data.draw(st.integers(1, fields.length)) for start in starts]
    between = [token for token in inside if (token - fields.phase(epoch)) % fields.length]
    assert [-1] * len(between) == order.locate(epoch, between).tolist()


@pytest.mark.parametrize(("num_tokens", "overlap"), [(103, 1), (120, 0), (29, 0), (30, 1), (20, 0)])
def test_each_epoch_cuts_elsewhere(num_tokens: int, overlap: int) -> None:
    """All phases come, so that every token that has one before it is a target in some epoch."""
    order = ip.TokenWindows(num_tokens, 20, overlap=overlap, seed=1)
    left = num_tokens - overlap - len(order.targets(0))
    phases = [order.targets(epoch).start - overlap for epoch in range(600)]
    assert set(range(left + 1)) == set(phases)
    seen = {token for epoch in range(600) for token in order.targets(epoch)}
    assert set(range(overlap, num_tokens)) == seen
    still = ip.TokenWindows(num_tokens, 20, overlap=overlap, shift=False, seed=1)
    assert {overlap} == {still.targets(epoch).start for epoch in range(9)}


def test_windows_of_an_evaluation() -> None:
    """The page's way to read windows in order, at fixed places: the same windows."""
    num_tokens, length = 1003, 20
    n = (num_tokens - 1) // length
    order = ip.Subset(ip.Sequential(n), range(0, n * length, length), num_tokens)
    still = ip.TokenWindows(num_tokens, length, shift=False)
    assert sorted(still.take(0, 0, n).tolist()) == order.take(5, 0, n).tolist()


def test_written_as_text() -> None:
    """`--order` takes it, with the number of tokens that a dataset tells."""
    from indexplan.cli.written import order_as_written

    order = order_as_written("TokenWindows(length=1024, shift=False)", {"num_tokens": 10**6})
    assert ip.TokenWindows(10**6, 1024, shift=False) == order
