"""Plans with balance in files: the same batches, and no way to lose the balance unseen."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import indexplan as ip

BALANCE = ip.Balance([1 + 7 * i % 20 for i in range(60)], quadratic=2)
PLAN = ip.Plan(
    ip.Shuffle(60, seed=3), world_size=4, batch_size=(2, 3), remainder="carry", balance=BALANCE
)
DIGEST = BALANCE.lengths.identity["sha256"]


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A saved plan."""
    ip.save(PLAN, tmp_path / "a.plan", epochs=range(2))
    return tmp_path / "a.plan"


def test_lengths_that_changed_or_are_gone(saved: Path) -> None:
    """Other numbers are seen by verify and by whoever opens; a missing file before that."""
    path = saved / "columns" / f"{DIGEST}.npy"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(ip.PlanFileError, match="60 numbers of the sha256 in its name"):
        ip.load(saved)
    path.unlink()
    with pytest.raises(ip.PlanFileError, match=re.escape(f"none named columns/{DIGEST}.npy")):
        ip.load(saved)


def test_what_is_said_of_it(saved: Path) -> None:
    """`explain`, `diff` and `show` name the balance; what they say of a rank is so."""
    plan = ip.load(saved)
    for sample in range(60):
        (reading,) = ip.explain(plan, sample, [1])
        where = reading.where
        assert where == plan.locate(sample, 1)
        at = f"step {where.step}, rank {where.rank}, slot {where.slot}"
        assert reading.words.endswith(at)
        batch = plan.batch(where.epoch, step=where.step, rank=where.rank)
        assert sample == batch[where.slot]
    difference = ip.diff(plan, plan.replace(balance=None), [0])
    assert (None, (0, 0, 0)) == (difference.steps_from, difference.ranks_from)
    assert ("balance",) == difference.why
    assert ip.diff(plan, PLAN).same
