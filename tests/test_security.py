"""What SECURITY.md says that no folder of its own tests."""

from __future__ import annotations

import io
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import indexplan as ip
from indexplan_torch import PlanLoader, ShardedDataset
from tests.support.forging import rewritten


def test_edited_json_is_another_plan() -> None:
    """What a text says within the rules is taken for meant; its fingerprint tells."""
    plan = ip.Plan(ip.Shuffle(10, seed=1), world_size=2, batch_size=2)
    edited = ip.Plan.from_json(plan.to_json().replace('"seed":1', '"seed":2'))
    assert plan.replace(order=ip.Shuffle(10, seed=2)) == edited
    assert plan.fingerprint != edited.fingerprint


def test_states_are_read_as_weights() -> None:
    """torch.load reads one that was saved without unpickling classes."""
    loader = PlanLoader(range(10), ip.Plan(ip.Shuffle(10), batch_size=2))
    next(iter(loader))
    saved = io.BytesIO()
    torch.save(loader.state_dict(), saved)
    saved.seek(0)
    assert loader.state_dict() == torch.load(saved, weights_only=True)


def test_whoever_writes_can_forge_checksums(tmp_path: Path) -> None:
    """Chunks of another order, and their hashes, are loaded; only verify finds them."""
    mine, theirs = tmp_path / "mine.plan", tmp_path / "theirs.plan"
    for seed, root in enumerate((mine, theirs)):
        ip.save(ip.Plan(ip.Shuffle(1000, seed=seed), world_size=1, batch_size=4), root)
    for path in theirs.glob("epoch-*/chunk-*"):
        shutil.copyfile(path, mine / path.relative_to(theirs))
    with pytest.raises(ip.PlanFileError, match="must hold the hashes of"):  # they say whose
        ip.load(mine).batch(0, step=0, rank=0)
    rewritten(mine, lambda content: content)
    plan = ip.load(mine)
    assert plan.batch(0, step=0, rank=0).tolist() != ip.Shuffle(1000, seed=0).take(0, 0, 4).tolist()
    assert not ip.verify(plan).ok


def test_a_store_that_lies_is_believed(tmp_path: Path) -> None:
    """Values that were changed in place, with the file's time put back, are read."""
    path = tmp_path / "a.npy"
    np.save(path, np.arange(100))
    shards, times = ip.shard_sizes(path), path.stat()
    np.save(path, np.arange(100) + 7)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    rows = lambda file: np.load(file.path)  # noqa: E731
    dataset = ShardedDataset(shards, rows, cache_dir=tmp_path / "cache", cache_bytes=10**6)
    assert 7 == dataset[0]


@pytest.mark.slow
def test_a_mapped_file_that_is_cut_off(tmp_path: Path) -> None:
    """Nobody can be told: the kernel ends the process; of a copy it is not so."""
    code = (
        "import os, sys, numpy as np, indexplan as ip\n"
        "np.save('a.npy', np.ones(10**6))\n"
        "column = ip.Column('a.npy')\n"
        "numbers = column.array if sys.argv[1] == 'mapped' else column.array.copy()\n"
        "os.truncate('a.npy', 128)\n"
        "print(numbers[-1])\n"
    )
    for how, expected in (("mapped", -signal.SIGBUS), ("copied", 0)):
        done = subprocess.run(
            [sys.executable, "-c", code, how], cwd=tmp_path, capture_output=True, check=False
        )
        assert expected == done.returncode, done.stderr
