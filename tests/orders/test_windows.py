"""Windows of documents and of tokens: known answers, oracles, and which tokens are targets."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import indexplan as ip
from indexplan.kernels import documents as documents_kernels
from tests.golden.lines import CRC, cases, crc32
from tests.support.strategies import seeds
from tests.support.units import units_of
from tests.support.windows_oracle import Documents, Piece, Windows

epochs = st.integers(0, 2**32 - 1)
# of few tokens or many; single tokens, which make windows of many documents; one giant among them
rows = st.one_of(
    st.lists(st.integers(1, 9), min_size=1, max_size=40),
    st.lists(st.just(1), min_size=1, max_size=60),
    st.lists(st.sampled_from([1, 2, 70, 150]), min_size=1, max_size=6),
)


@st.composite
def documents(draw: st.DrawFn) -> Documents:
    """Draw the fields of an order; windows longer and shorter than documents, blocks of any."""
    lengths = draw(rows)
    length = draw(st.integers(1, min(sum(lengths), draw(st.sampled_from([3, 12, 200])))))
    overlap = draw(st.integers(0, sum(lengths) - length))
    size = draw(st.one_of(st.integers(1, len(lengths) + 1), st.sampled_from([1, 7, 2**62])))
    if draw(st.booleans()):
        overlap = min(overlap, 1)
    return Documents(tuple(lengths), length, overlap, size, draw(seeds))


def order_of(fields: Documents) -> ip.DocumentWindows:
    """Return the order of these fields."""
    lengths, length, *more = fields
    return ip.DocumentWindows(
        list(lengths), length, overlap=more[0], block_size=more[1], seed=more[2]
    )


def listed(units: list[list[Piece]]) -> list[list[list[int]]]:
    """Return the oracle's units with lists for pieces."""
    return [[[*piece] for piece in unit] for unit in units]


@pytest.mark.parametrize("case", cases("document_windows_v1"), ids=lambda case: case["name"])
def test_known_answers_of_documents(case: dict[str, Any]) -> None:
    """Bits that never change."""
    order = order_of(Documents(*(case[name] for name in Documents._fields)))
    assert case["num_units"] == order.num_units(case["epoch"])
    assert case["units"] == units_of(order, case["epoch"], case["positions"])
    if CRC in case:
        assert case[CRC] == crc32(sum(units_of(order, case["epoch"]), []))


@given(documents(), epochs, st.data())
def test_documents_are_the_oracles(fields: Documents, epoch: int, data: st.DataObject) -> None:
    """All units of an epoch, and any of them in any order, are cut out of the plain list."""
    order, units = order_of(fields), fields.units(epoch)
    assert fields.num == order.num_units(epoch) == len(units)
    assert listed(units) == units_of(order, epoch)
    positions = data.draw(st.lists(st.integers(0, fields.num - 1), max_size=6))
    assert [units[p] for p in positions] == [fields.far(epoch, p) for p in positions]
    assert listed([units[p] for p in positions]) == units_of(order, epoch, positions)


@given(documents(), epochs)
def test_where_a_document_is_read(fields: Documents, epoch: int) -> None:
    """In all windows that hold some of it, which may be none: found, and counted."""
    order, units = order_of(fields), fields.units(epoch)
    places: list[list[int]] = [[] for _ in fields.lengths]
    for position, unit in enumerate(units):
        for document, _, _ in unit:
            places[document].append(position)
    every = np.arange(len(places))
    found, offsets = order.locate_all(epoch, every)
    assert places == [found[a:b].tolist() for a, b in pairwise(offsets.tolist())]
    assert list(map(len, places)) == order.count(epoch, every).tolist()
    assert [min(some, default=-1) for some in places] == order.locate(epoch, every).tolist()
    backwards = order.locate_all(epoch, every[::-1])
    assert sum(reversed(places), []) == backwards[0].tolist()


def test_lengths_that_change_while_they_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was cut by other lengths is no answer, and nothing is read from beyond the blocks."""
    path, lengths = tmp_path / "a.npy", np.arange(1, 300) % 17 + 1
    for name, ask in (("read_windows", "take"), ("find_documents", "locate")):
        np.save(path, lengths)
        order = ip.DocumentWindows(path, 12, block_size=10)
        getattr(order, ask)(0, [0, 5])
        kernel = getattr(documents_kernels, name)

        def read(*given: Any, kernel: Any = kernel) -> Any:
            np.save(path, lengths // 3 + 1)
            return kernel(*given)

        monkeypatch.setattr(documents_kernels, name, read)
        with pytest.raises(ip.IndexPlanError, match="got one that has changed"):
            getattr(order, ask)(0, [0, 5])


def test_a_document_of_more_windows_than_can_be_listed() -> None:
    """The first of them is found without listing the others."""
    order = ip.DocumentWindows([2**40, 1, 2**35], 4, seed=1)
    far, near = order.locate(3, [2, 0]).tolist()
    found, offsets = order.take(3, 0, far + 1), order.offsets(3, 0, far + 1)
    assert offsets[near] == np.flatnonzero(found == 0)[0]
    assert offsets[far] <= np.flatnonzero(found == 2)[0] < offsets[far + 1]


def test_a_window_of_many_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawn a few pieces at a time, whatever a window has: the same."""
    fields = Documents((1,) * 300 + (90,) * 5 + (1,) * 100, 70, 5, 16, 1)
    monkeypatch.setattr("indexplan.orders.document_windows.AT_ONCE", 3)
    assert listed(fields.units(1)) == units_of(order_of(fields), 1)


@st.composite
def windows(draw: st.DrawFn, most: int = 130) -> Windows:
    """Draw the fields of an order, as often as not of one window, or of windows that just fit."""
    length, overlap = draw(st.integers(1, most)), draw(st.integers(0, most))
    more = draw(st.one_of(st.integers(0, 2 * length), st.integers(0, most)))
    return Windows(length + overlap + more, length, overlap, draw(st.booleans()), draw(seeds))


def tokens_of(fields: Windows) -> ip.TokenWindows:
    """Return the order of these fields."""
    first, *more = fields
    return ip.TokenWindows(first, more[0], overlap=more[1], shift=bool(more[2]), seed=more[3])


@pytest.mark.parametrize(
    "case", cases("token_windows_v1"), ids=lambda case: f"{case['num_tokens']}, {case['length']}"
)
def test_known_answers_of_tokens(case: dict[str, Any]) -> None:
    """Bits that never change."""
    order, epoch = tokens_of(Windows(*(case[name] for name in Windows._fields))), case["epoch"]
    assert case["num_units"] == order.num_units(epoch)
    assert case["phase"] == order.targets(epoch).start - order.overlap
    assert case["starts"] == order.take(epoch, case["positions"]).tolist()
    if CRC in case:
        assert case[CRC] == crc32(order.take(epoch, 0, case["num_units"]))


@given(st.one_of(windows(), windows(2**61)), epochs, st.data())
def test_tokens_are_the_oracles(fields: Windows, epoch: int, data: st.DataObject) -> None:
    """Any positions have the oracle's windows, and these lead back to them."""
    order = tokens_of(fields)
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
    """The way of docs/tokens.md to read windows in order, at fixed places: the same windows."""
    num_tokens, length = 1003, 20
    n = (num_tokens - 1) // length
    order = ip.Subset(ip.Sequential(n), range(0, n * length, length), num_tokens)
    still = ip.TokenWindows(num_tokens, length, shift=False)
    assert sorted(still.take(0, 0, n).tolist()) == order.take(5, 0, n).tolist()
