"""Plans with balance in files: the same batches, and no way to lose the balance unseen."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import indexplan as ip
from tests.support.bins import Bins

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


@pytest.mark.parametrize("order", [PLAN.order, Bins(60)], ids=["samples", "bins"])
def test_a_loaded_plan_deals_the_same_batches(order: ip.Order, tmp_path: Path) -> None:
    """In stored epochs and computed ones, in one piece or in parts, and from pieces of chunks."""
    plan = PLAN.replace(order=order)
    for part in (1, 2):
        ip.save(plan, tmp_path / "a.plan", epochs=range(2), part=(part, 2), units_per_chunk=16)
    loaded = ip.load(tmp_path / "a.plan")
    assert (plan, plan.fingerprint) == (loaded, loaded.fingerprint)
    for epoch in range(3):
        for rank in range(4):
            expected = [batch.tolist() for batch in plan.batches(epoch, rank=rank)]
            assert expected == [batch.tolist() for batch in loaded.batches(epoch, rank=rank)]
    assert ip.verify(loaded).ok
    again = ip.save(ip.load(tmp_path / "a.plan"), tmp_path / "b.plan", epochs=range(2))
    assert plan.fingerprint == again.fingerprint


def test_what_the_directory_says(saved: Path) -> None:
    """plan.json holds the balance, and `columns` the lengths, as they do a column of an order."""
    said = json.loads((saved / "plan.json").read_text())
    assert BALANCE.to_dict() == said["plan"]["balance"]
    lengths = np.load(saved / "columns" / f"{DIGEST}.npy")
    assert BALANCE.lengths.array.tolist() == lengths.tolist()
    text = PLAN.to_json()
    assert PLAN == ip.Plan.from_json(text, columns=saved / "columns")


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


def test_a_directory_has_one_balance(saved: Path, tmp_path: Path) -> None:
    """Another balance is another build, also for a part; none is one, too."""
    for balance in (None, ip.Balance(BALANCE.lengths)):
        with pytest.raises(ip.PlanFileError, match="must be a build of the same plan and epochs"):
            ip.save(PLAN.replace(balance=balance), saved, epochs=range(2))
    ip.save(PLAN, tmp_path / "parts", epochs=range(2), part=(1, 2))
    with pytest.raises(ip.PlanFileError, match="must be a build of the same plan and epochs"):
        ip.save(PLAN.replace(balance=None), tmp_path / "parts", epochs=range(2), part=(2, 2))


def test_without_balance(tmp_path: Path) -> None:
    """A plan without one says nothing of it, and there are no columns."""
    ip.save(PLAN.replace(balance=None), tmp_path / "a.plan")
    assert "balance" not in json.loads((tmp_path / "a.plan/plan.json").read_text())["plan"]
    assert not (tmp_path / "a.plan/columns").exists()


def test_an_export_is_of_balanced_batches(tmp_path: Path) -> None:
    """The arrays of each rank are what the plan deals, and the lengths lie beside them."""
    ip.export(PLAN, tmp_path / "out")
    for rank in range(4):
        exported = np.load(tmp_path / f"out/epoch-00000/rank-{rank:05d}.npy")
        assert PLAN.indices(0, rank=rank).tolist() == exported.tolist()
    said = json.loads((tmp_path / "out/export.json").read_text())["plan"]
    assert PLAN == ip.Plan.from_dict(said, columns=tmp_path / "out/columns")


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
