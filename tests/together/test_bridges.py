"""Bridges to those who take plain arrays: the page's own code, run with the real libraries."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import indexplan as ip
from indexplan.cli import main

ROOT = Path(__file__).parents[2]
PLAN = ip.Plan(ip.Shuffle(5003, seed=2), world_size=8, batch_size=20)  # the last step is short


def block(words: str) -> str:
    """Return the one Python block of the page of plan files that holds some words."""
    page = (ROOT / "docs/files.md").read_text()
    (found,) = [
        each for each in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if words in each
    ]
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with run.plan, and arrays as the page's command exports them."""
    root = tmp_path_factory.mktemp("page")
    ip.save(PLAN.replace(world_size=None), root / "run.plan")
    (command,) = re.findall(r"```sh\nindexplan (.*)\n```", (ROOT / "docs/files.md").read_text())
    words = [str(root / w) if w in {"run.plan", "arrays"} else w for w in command.split()]
    assert 0 == main(words)
    return root


def names_after(block: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What a block of the page leaves behind, run in a folder."""
    monkeypatch.chdir(folder)
    names: dict[str, Any] = {"__name__": "page"}
    exec(block, names)  # noqa: S102 (our own page)
    return names


def test_build_and_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan is saved, loaded and verified, as the page begins."""
    plan = names_after(block("ip.verify(plan).ok"), tmp_path, monkeypatch)["plan"]
    assert (0, 1, 2, 3) == ip.types.Stored(tmp_path / "run.plan").build.epochs
    assert ip.Shuffle(1_000_000).take(3, 0, 9).tolist() == plan.order.take(3, 0, 9).tolist()


def test_numpy(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two arrays and a slice are a batch."""
    batch = names_after(block("steps[17]"), folder, monkeypatch)["batch"]
    assert PLAN.batch(0, step=17, rank=2).tolist() == batch.tolist()


def test_headerless(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file without a header is the order, cut into the plan's global batches."""
    names_after(block("no header"), folder, monkeypatch)
    order = np.memmap("global_indices.npy", mode="r", dtype=np.uint32)
    assert PLAN.order.take(0, 0, 5003).tolist() == order.tolist()
    full = PLAN.replace(remainder="drop")
    for step, batch in enumerate(order[: 5003 // 160 * 160].reshape(-1, 160)):
        ranks = [full.batch(0, step=step, rank=rank).tolist() for rank in range(8)]
        assert sum(ranks, []) == batch.tolist()
    mapped = names_after(block("offset=128"), folder, monkeypatch)["indices"]
    assert PLAN.indices(0, rank=2).tolist() == mapped.tolist()
