"""Bridges to those who take plain arrays: the page's own code, run with the real libraries."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import grain
import numpy as np
import pytest

import indexplan as ip
from indexplan.cli import main

ROOT = Path(__file__).parents[2]
PLAN = ip.Plan(ip.Shuffle(5003, seed=2), world_size=8, batch_size=20)  # the last step is short


def block(words: str) -> str:
    """Return the one Python block of the page of exports that holds some words."""
    page = (ROOT / "docs/exports.md").read_text()
    (found,) = [
        each for each in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if words in each
    ]
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with run.plan, and arrays as the page's command exports them."""
    root = tmp_path_factory.mktemp("page")
    ip.save(PLAN.replace(world_size=None), root / "run.plan")
    (command,) = re.findall(r"```sh\nindexplan (.*)\n```", (ROOT / "docs/exports.md").read_text())
    words = [str(root / w) if w in {"run.plan", "arrays"} else w for w in command.split()]
    assert 0 == main(words)
    return root


def names_after(block: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What a block of the page leaves behind, run in a folder."""
    monkeypatch.chdir(folder)
    names: dict[str, Any] = {"__name__": "page"}
    exec(block, names)  # noqa: S102 (our own page)
    return names


def test_numpy(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two arrays and a slice are a batch."""
    batch = names_after(block("steps[17]"), folder, monkeypatch)["batch"]
    assert PLAN.batch(0, step=17, rank=2).tolist() == batch.tolist()


def test_grain(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In one process, Grain's elements are the plan's batches, from an export too."""
    monkeypatch.chdir(folder)
    expected = [batch.tolist() for batch in PLAN.batches(0, rank=2)]

    class Exported:
        def __len__(self) -> int:
            return PLAN.steps(0).stop

        def __getitem__(self, step: int) -> np.ndarray:
            indices = np.load("arrays/epoch-00000/rank-00002.npy", mmap_mode="r")
            steps = np.load("arrays/epoch-00000/rank-00002.steps.npy", mmap_mode="r")
            return indices[steps[step] : steps[step + 1]]

    assert expected == [batch.tolist() for batch in grain.MapDataset.source(Exported())]


WITH_WORKERS = """
import grain
import numpy as np

import indexplan as ip
from indexplan_jax.grain import PlanIterDataset

if __name__ == "__main__":  # Grain starts its workers as new processes
    plan = ip.load("run.plan").replace(world_size=8)
    batches = PlanIterDataset(
        grain.MapDataset.range(plan.order.num_samples).map(np.sqrt),
        plan,
        grain.sharding.ShardOptions(2, 8),
        num_epochs=2,
        multiprocessing_options=grain.MultiprocessingOptions(num_workers=2),
    )
    for batch in batches:
        print(batch.sum())
"""


def test_grain_with_workers(folder: Path) -> None:
    """With two worker processes a program reads two epochs, one stored, in order."""
    (folder / "page.py").write_text(WITH_WORKERS)
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "page.py"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert 0 == done.returncode, done.stderr
    expected = [np.sqrt(b).sum() for epoch in range(2) for b in PLAN.batches(epoch, rank=2)]
    assert expected == [float(line) for line in done.stdout.split()]


def test_grain_sampler(folder: Path) -> None:
    """A DataLoader that does not batch reads the samples in the order of an exported array."""
    indices = np.load(folder / "arrays/epoch-00000/rank-00002.npy", mmap_mode="r")

    class Sampler:
        def __len__(self) -> int:
            return len(indices)

        def __getitem__(self, i: int) -> grain.RecordMetadata:
            return grain.RecordMetadata(index=i, record_key=int(indices[i]))

    loader = grain.DataLoader(
        data_source=range(5003), sampler=Sampler(), shard_options=grain.sharding.NoSharding()
    )
    assert PLAN.indices(0, rank=2).tolist() == list(loader)


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
