"""The first tutorial's five scripts, as a newcomer runs them: started, stopped, and resumed."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import indexplan as ip
from tests.support.remote import server, store
from tests.trainers.launching import found, in_ranks, run, torchrun
from tests.trainers.ranks import ROOT

__all__ = ["server"]  # a fixture

PAGE = (ROOT / "docs" / "tutorials" / "first-run.md").read_text()


def steps_after(plan: ip.Plan, cursor: ip.Cursor, world_size: int, epochs: range) -> int:
    """The steps of some epochs that are left after a cursor, on other ranks."""
    rest = plan.replace(world_size=world_size).resume(cursor)
    return sum(rest.steps(epoch).stop - rest.steps(epoch).start for epoch in epochs)


def test_lightning_images(tmp_path: Path) -> None:
    """Stopped in the second epoch on one device; two read what is left, and no more."""
    script = "lightning_images.py"
    lines = run(tmp_path, [sys.executable], script, "--devices", 1, "--max-steps", 30)
    assert [("30",)] == found(r"^(\d+) steps, .*accuracy", lines)
    lines = run(tmp_path, [sys.executable], script, "--devices", 2)
    assert "2 devices start after 30 steps" in lines
    plan = ip.Plan(ip.Shuffle(1400, seed=0), world_size=1, global_batch_size=60)
    left = steps_after(plan, plan.cursor(1, step=30 - plan.steps(0).stop), 2, range(1, 3))
    ((steps, accuracy),) = found(r"^(\d+) steps, .*accuracy.*tensor\((\S+)\)", lines)
    assert 30 + left == int(steps)
    assert float(accuracy) > 0.8


def test_three_corpora(tmp_path: Path) -> None:
    """Each corpus has its share of the windows, to within two, before the stop and after it."""
    lines = in_ranks(tmp_path, 2, "three_corpora.py", "--max-steps", 40)
    lines += in_ranks(tmp_path, 3, "three_corpora.py")
    assert "\n".join(lines) in PAGE
    assert [("2", "40"), ("3", "90")] == found(r"^(\d) ranks, up to step (\d+): ", lines)


def test_hf_imbalanced(tmp_path: Path) -> None:
    """Each class is read equally often; two ranks go on where one has stopped."""
    lines = run(tmp_path, [sys.executable], "hf_imbalanced.py", "--max-steps", 30)
    assert lines[-1] in PAGE.splitlines()
    lines = run(tmp_path, torchrun(2), "hf_imbalanced.py")
    labels = [0] * 900 + [1] * 90 + [2] * 10
    plan = ip.Plan(ip.ClassBalanced(labels, seed=0), world_size=1, batch_size=12)
    left = steps_after(plan, plan.cursor(0, step=30), 2, range(2))
    assert [(str(30 + left),)] == found(r"^(\d+) steps, ", lines)


@pytest.mark.usefixtures("server")
def test_s3_shards(tmp_path: Path) -> None:
    """Stopped on two ranks, gone on with on three: all full batches of the epoch are read."""
    url, command = "s3://bucket/*.parquet", [sys.executable, "-m", "indexplan", "shards"]
    for name in range(24):
        file = tmp_path / f"{name:02}.parquet"
        pq.write_table(pa.table({"x": np.arange(40.0) / 40}), file)
        store().put(str(file), f"bucket/{file.name}")
    with (tmp_path / "shards.json").open("w") as file:
        subprocess.run([*command, url, "--json"], check=True, stdout=file)

    lines = run(tmp_path, [sys.executable], "s3_shards.py", url, "--traffic", 16)
    assert "2 nodes of 8 ranks, 24 shards, 960 samples" == lines[0]
    lines = in_ranks(tmp_path, 2, "s3_shards.py", url, "--max-steps", 9)
    lines += in_ranks(tmp_path, 3, "s3_shards.py", url)
    assert ["2 ranks, up to step 9: 432 samples", "3 ranks, up to step 20: 528 samples"] == lines
