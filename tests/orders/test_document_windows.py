"""document-windows-v1: known answers, the oracle, and which tokens an epoch reads and predicts."""

from __future__ import annotations

import json
import pickle
import zlib
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import indexplan as ip
from indexplan.kernels import documents as documents_kernels
from indexplan.partition.remainders import REMAINDERS
from tests.support.documents_oracle import Documents, Piece
from tests.support.strategies import seeds

GOLDEN = Path(__file__).parents[1] / "golden" / "document_windows_v1.json"
CASES = json.loads(GOLDEN.read_text())["cases"]

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


def made(fields: Documents) -> ip.DocumentWindows:
    """Return the order of these fields."""
    lengths, length, *more = fields
    return ip.DocumentWindows(
        list(lengths), length, overlap=more[0], block_size=more[1], seed=more[2]
    )


def units_of(order: ip.Order, epoch: int, positions: Any = None) -> list[list[Piece]]:
    """Return what an order reads at some positions, as the oracle writes it."""
    if positions is None:
        positions = np.arange(order.num_units(epoch))
    rows = np.column_stack([order.take(epoch, positions), order.spans(epoch, positions)])
    offsets = order.offsets(epoch, positions).tolist()
    return [[tuple(row) for row in rows[a:b].tolist()] for a, b in pairwise(offsets)]


def tokens_of(order: ip.Order, epoch: int) -> list[list[tuple[int, int]]]:
    """Return the tokens that each unit reads: of each its document, and its number there."""
    units = units_of(order, epoch)
    return [[(d, i) for d, start, stop in unit for i in range(start, stop)] for unit in units]


small = documents().map(made)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_known_answers(case: dict[str, Any]) -> None:
    """Bits that never change, of the order and of the oracle."""
    fields = Documents(*(case[name] for name in Documents._fields))
    order, epoch, positions = made(fields), case["epoch"], case["positions"]
    units = [[tuple(piece) for piece in unit] for unit in case["units"]]
    assert case["num_units"] == order.num_units(epoch) == fields.num
    assert units == units_of(order, epoch, positions)
    assert units[:2] == [fields.far(epoch, position) for position in positions[:2]]
    if "crc32_of_all_as_little_endian_int64" in case:
        every = np.arange(fields.num)
        rows = np.column_stack([order.take(epoch, every), order.spans(epoch, every)])
        crc = zlib.crc32(rows.astype("<i8").tobytes())
        assert case["crc32_of_all_as_little_endian_int64"] == crc


@given(documents(), epochs, st.data())
def test_the_oracle(fields: Documents, epoch: int, data: st.DataObject) -> None:
    """All units of an epoch, and any of them in any order, are cut out of the plain list."""
    order, units = made(fields), fields.units(epoch)
    assert fields.num == order.num_units(epoch) == len(units)
    assert units == units_of(order, epoch)
    positions = data.draw(st.lists(st.integers(0, fields.num - 1), max_size=6))
    assert [units[p] for p in positions] == units_of(order, epoch, positions)
    assert [units[p] for p in positions] == [fields.far(epoch, p) for p in positions]


@given(documents(), epochs)
def test_where_a_document_is_read(fields: Documents, epoch: int) -> None:
    """In all windows that hold some of it, which may be none: found, and counted."""
    order, units = made(fields), fields.units(epoch)
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


def test_equal_lengths_are_one_order(tmp_path: Path) -> None:
    """Lengths in 4 bytes or 8, in memory or in a file."""
    lengths = np.arange(1, 300) % 17 + 1
    row = units_of(ip.DocumentWindows(lengths.tolist(), 12, block_size=10), 3)
    for dtype in (np.uint8, "<u4", "<i8"):
        np.save(tmp_path / "a.npy", lengths.astype(dtype))
        order = ip.DocumentWindows(tmp_path / "a.npy", 12, block_size=10)
        assert row == units_of(order, 3)
        assert row == units_of(pickle.loads(pickle.dumps(order)), 3)  # noqa: S301 (ours)


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


FAR = [
    Documents((2**40,) * 40, 2**30 + 1, 2**41, 7, 3),
    Documents((2**40, 1, 1, 2**33, 5) * 9, 2**38, 1, 4, 5),
]


@pytest.mark.parametrize("fields", FAR, ids=["long", "longer"])
def test_far(fields: Documents) -> None:
    """Long documents are cut by sums of 64 bits."""
    order, last = made(fields), fields.num - 1
    for p in (0, last // 3, last):
        assert [fields.far(7, p)] == units_of(order, 7, [p])
        for document, *_ in fields.far(7, p)[:2]:
            found, _ = order.locate_all(7, [document])
            assert p in found


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
    assert fields.units(1) == units_of(made(fields), 1)


def over(order: ip.Order) -> dict[str, ip.Order]:
    """Return orders over one that cuts samples."""
    n, num = order.num_samples, order.num_units(0)
    other = ip.DocumentWindows([4, 9, 2, 7], 5, seed=9)
    return {
        "itself": order,
        "subset": ip.Subset(order, np.arange(n) * 2 + 1, 2 * n + 1),
        "epochs": ip.Epochs(order, 2 * num // 3 + 1),
        "repeat": ip.Repeat(order, 2, span=4),
        "mixture": ip.Mixture({"a": order, "b": other}, {"a": 0.6, "b": 0.4}),
    }


@pytest.mark.parametrize("remainder", REMAINDERS)
@pytest.mark.parametrize("quadratic", [None, 1])
def test_what_a_step_holds(remainder: str, quadratic: int | None) -> None:
    """Of all ranks its windows, balanced or not; step_size counts them, step_total their pieces."""
    fields = Documents(tuple(i * 7 % 23 + 1 for i in range(40)), 12, 1, 8, 3)
    order = made(fields)
    plan = ip.Plan(order, world_size=3, batch_size=2, remainder=remainder)
    if quadratic is not None:
        balance = ip.Balance(list(fields.lengths), quadratic=quadratic)
        plan = plan.replace(balance=balance)
    stream = fields.units(0) + fields.units(1)
    read = 0
    for step in range(plan.steps(0).stop):
        batches = [batch_of(plan, epoch=0, step=step, rank=rank) for rank in range(3)]
        sizes = [plan.units(0, step=step, rank=rank).num_valid for rank in range(3)]
        valid = [unit for batch, n in zip(batches, sizes, strict=True) for unit in batch[:n]]
        size = plan.step_size(0, step=step)
        assert sorted(stream[read : read + size]) == sorted(valid)
        assert sum(map(len, valid)) == plan.step_total(None, 0, step=step)
        assert size * 13 == sum(stop - start for unit in valid for _, start, stop in unit)
        read += size
    assert read == plan.account(0).num_read or remainder == "carry"


def batch_of(plan: ip.Plan, **where: Any) -> list[list[Piece]]:
    """Return what each unit of a batch reads."""
    rows = np.column_stack([plan.batch(**where), plan.units(**where).spans]).tolist()
    offsets = plan.units(**where).offsets.tolist()
    return [[tuple(row) for row in rows[a:b]] for a, b in pairwise(offsets)]
