"""The page's order of one's own that keeps an epoch's permutation."""

from __future__ import annotations

import re
import sys
import threading
from pathlib import Path
from types import ModuleType

import pytest

import indexplan as ip
from indexplan.testing import check_order

PAGE = Path(__file__).parents[2] / "docs" / "orders.md"


@pytest.fixture
def permuted(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Return the page's module."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    (source,) = (each for each in blocks if each.startswith("# permuted.py"))
    module = ModuleType("permuted")
    monkeypatch.setitem(sys.modules, "permuted", module)
    exec(source, vars(module))  # noqa: S102 (our own page)
    return module


def test_the_page_draws_a_permutation_once_an_epoch(permuted: ModuleType) -> None:
    """Batches of an epoch, in several threads, share one permutation, and so does `find`."""
    order = permuted.Permuted(1000, seed=3)
    plan = ip.Plan(order, world_size=2, batch_size=16)
    read: list[list[int]] = []

    def some(rank: int) -> None:
        read.extend(batch.tolist() for batch in plan.batches(4, rank=rank))

    plan.batch(4, step=0, rank=0)
    threads = [threading.Thread(target=some, args=(rank,)) for rank in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(sum(read, [])) == list(range(1000))
    plan.locate(7, epoch=4)
    assert permuted.permutation.cache_info().misses == 1
    plan.replace(remainder="carry").batch(4, step=31, rank=1)  # the next epoch's first units, too
    plan.replace(remainder="carry").batch(4, step=30, rank=1)
    assert permuted.permutation.cache_info().misses == 2
    assert check_order(permuted.Permuted(100), fresh_process=False).ok
