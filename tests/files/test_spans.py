"""Plan directories of orders that cut samples: spans beside the chunks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import indexplan as ip
from tests.golden.files import DOCUMENTS as FIELDS
from tests.golden.files import EPOCHS, WINDOWS_PER_CHUNK
from tests.support.trees import tree

ORDER = ip.DocumentWindows(
    list(FIELDS.lengths),
    FIELDS.length,
    overlap=FIELDS.overlap,
    block_size=FIELDS.block_size,
    seed=FIELDS.seed,
)
PLAN = ip.Plan(ORDER, world_size=2, batch_size=3)
SPANS = "epoch-00001/chunk-00001.spans.npy"


def save(path: Any, **options: Any) -> Any:
    """Save the plan in several chunks."""
    ip.save(PLAN, path, epochs=range(EPOCHS), units_per_chunk=WINDOWS_PER_CHUNK, **options)
    return path


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """Return a plan directory."""
    path: Path = save(tmp_path / "a.plan")
    return path


def test_spans_are_read(saved: Path) -> None:
    """Over the edges of chunks, singly, none, and of an epoch that is not stored."""
    order = ip.types.Stored(saved)
    num = ORDER.num_units(0)
    for epoch in range(EPOCHS + 1):
        runs = [0, 19, 5, 5, num - 1], [num, 23, 5, 6, num]
        assert np.array_equal(ORDER.spans(epoch, *runs), order.spans(epoch, *runs))
        assert (0, 2) == order.spans(epoch, []).shape
    assert ip.verify(ip.load(saved)).ok


def flip(path: Path, at: int) -> None:
    """Change a bit of a file."""
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def test_damage_is_found(saved: Path) -> None:
    """By `verify`, which names the number; by the first read."""
    flip(saved / SPANS, 128 + 8 * 3)
    right = ORDER.spans(1, 20, 40)[1, 1]
    problems = [p for check in ip.verify(ip.load(saved)).checks for p in check.problems]
    said = [problem for problem in problems if problem.startswith(f"{SPANS}, block 0: ")]
    assert len(problems) == len(said) == 2
    assert f"number 3 of epoch 1 holds {right ^ 1}, not {right}" in said[1]
    order = ip.types.Stored(saved)
    order.spans(0, 0, 40)
    order.take(1, 0, 40)
    with pytest.raises(ip.PlanFileError, match=r"chunk-00001\.spans\.npy, block 0 must have"):
        order.spans(1, 20, 21)


@pytest.mark.parametrize("change", [lambda path: path.unlink(), lambda path: flip(path, 8)])
def test_files_that_are_gone_or_of_other_numbers(saved: Path, change: Any) -> None:
    """Seen when the directory is opened, or the file is."""
    change(saved / SPANS)
    with pytest.raises(ip.PlanFileError, match=r"chunk-00001\.spans\.npy[ ;,]"):
        ip.load(saved).order.spans(1, 0, 40)


@pytest.mark.parametrize("slab", [1, 7, 33])
def test_chunks_are_written_some_at_a_time(
    saved: Path, slab: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of any size: the same bytes."""
    monkeypatch.setattr("indexplan.files.format.SLAB_UNITS", slab)
    assert tree(saved) == tree(save(tmp_path / "slabs.plan"))


def test_parts_and_other_builds(saved: Path, tmp_path: Path) -> None:
    """Job arrays make the same directory; what is there is compared, spans too."""
    parts = tmp_path / "parts.plan"
    for number in (2, 1, 3):
        save(parts, part=(number, 3))
    assert tree(saved) == tree(parts)
    flip(saved / SPANS, 200)
    with pytest.raises(ip.PlanFileError, match=r"chunk-00001\.spans\.npy must hold what"):
        save(saved)
