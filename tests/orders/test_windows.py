"""Windows of documents and of tokens: known answers, oracles, and which tokens are targets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

import indexplan as ip
from indexplan.kernels import documents as documents_kernels
from tests.support.strategies import seeds
from tests.support.units import units_of
from tests.support.windows_oracle import Documents, Piece, Windows

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
    return ip.DocumentWindows(**fields._asdict())


def listed(units: list[list[Piece]]) -> list[list[list[int]]]:
    """Return the oracle's units with lists for pieces."""
    return [[[*piece] for piece in unit] for unit in units]


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
    return ip.TokenWindows(**fields._asdict())


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
