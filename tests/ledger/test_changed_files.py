"""Ledgers that were changed, cut or written by two: each change is seen, and nothing is lost."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import indexplan as ip
from tests.ledger import kills
from tests.ledger.changing import a_ledger, is_seen, mutated

NUM = 300


def test_each_change_of_a_byte_is_seen(tmp_path: Path) -> None:
    """Bytes changed, lines dropped, doubled or swapped: opening or `verify` finds each."""
    ledger = a_ledger(tmp_path)
    whole, checkpoint = ledger.path.read_bytes(), ledger.hash
    drawn = random.Random(3)  # noqa: S311 (draws a test)
    changed = tmp_path / "changed.ledger"
    for _ in range(NUM):
        changed.write_bytes(mutated(drawn, whole))
        assert is_seen(changed, whole, checkpoint), changed.read_bytes()
    changed.write_bytes(whole)
    assert not is_seen(changed, whole, checkpoint)


def test_a_cut_is_a_prefix(tmp_path: Path) -> None:
    """Wherever a file ends, its whole lines count; the next line takes the place of the rest."""
    ledger = a_ledger(tmp_path)
    whole = ledger.path.read_bytes()
    cut = tmp_path / "cut.ledger"
    for size in range(0, len(whole), 37):
        cut.write_bytes(whole[:size])
        found = ip.Ledger(cut)
        assert whole[:size].count(b"\n") == found.tail.num_lines
        assert found.verify().ok
        plan = ip.Plan(ip.Shuffle(200), world_size=2, batch_size=5)
        if found.step:
            plan = found.plan.resume(found.cursor)
        stop = plan.cursor(3, step=1)
        found.record(plan, stop)
        assert ip.Ledger(cut).verify(found.hash).ok
        assert ip.Ledger(cut).step == found.step


def test_two_writers(tmp_path: Path) -> None:
    """The second one that adds a line to what both have read gets an error, and writes nothing."""
    ledger = a_ledger(tmp_path)
    one, other = ip.Ledger(ledger.path), ip.Ledger(ledger.path)
    plan = one.plan.resume(one.cursor)
    one.record(plan, plan.cursor(3, step=2))
    after = ledger.path.read_bytes()
    with pytest.raises(ip.PlanFileError, match="must have one writer at a time"):
        other.record(plan, plan.cursor(3, step=3))
    assert after == ledger.path.read_bytes()
    assert one.step > other.step == ledger.step
    with pytest.raises(ip.PlanFileError, match="must have one writer at a time"):
        other.discard(1)


def test_a_file_that_was_replaced(tmp_path: Path) -> None:
    """A writer whose file is gone, or shorter, does not write another one in its place."""
    ledger = a_ledger(tmp_path)
    plan, data = ledger.plan.resume(ledger.cursor), ledger.path.read_bytes()
    ledger.path.write_bytes(data[:200])
    with pytest.raises(ip.PlanFileError, match="must have one writer at a time"):
        ledger.record(plan, plan.cursor(3, step=2))
    assert data[:200] == ledger.path.read_bytes()


def test_what_is_no_ledger(tmp_path: Path) -> None:
    """Other files, links and folders are refused by name."""
    text = tmp_path / "notes.txt"
    text.write_text("not a ledger\n")
    (tmp_path / "link").symlink_to(text)
    for path in (text, tmp_path / "link", tmp_path):
        with pytest.raises(ip.PlanFileError):
            ip.Ledger(path)
    with pytest.raises(ip.IndexPlanError):
        ip.Ledger(7)  # type: ignore[arg-type]


def test_a_killed_writer(tmp_path: Path) -> None:
    """Whenever the process that writes is killed, the ledger fits the last checkpoint."""
    steps, _ = kills.run(tmp_path, 20, seed=1)
    assert steps
