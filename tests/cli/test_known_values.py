"""What one option says, another need not: numbers of samples that sizes and columns tell."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import indexplan as ip
from tests.cli.test_cli import fails, run

SIZES = [300, 0, 120, 80]
BATCHES = ["--batch-size=4", "--world-size=1"]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand in a folder with the sizes of shards, and weights."""
    monkeypatch.chdir(tmp_path)
    np.save("sizes.npy", np.array(SIZES))
    np.save("weights.npy", np.arange(1, 8) / 2)


def test_sizes_are_sizes_in_each_verb(capsys: pytest.CaptureFixture[str]) -> None:
    """A .npy file after --shards has the number of samples in each shard, and is no shard."""
    run(capsys, "build", "a.plan", "--shards=sizes.npy", "--order=shard-shuffle lanes=2", *BATCHES)
    assert ip.ShardShuffle(SIZES, lanes=2) == ip.load("a.plan").order
    words = ["traffic", "a.plan", "--ranks-per-node=1", "--json"]
    said = json.loads(run(capsys, *words, "--shards=sizes.npy"))
    assert said == json.loads(run(capsys, *words))
    run(capsys, "build", "b.plan", "--shards=sizes.npy", *BATCHES)
    assert ip.Shuffle(500) == ip.load("b.plan").order
    said = fails(capsys, 2, "verify", "a.plan", "--shards=sizes.npy")
    assert said.startswith("--shards must be shards, or the .json file that ")


@pytest.mark.parametrize(
    ("order", "made"),
    [
        ("shard-shuffle lanes=2 sizes=sizes.npy", ip.ShardShuffle(SIZES, lanes=2)),
        ("weighted weights=weights.npy", ip.Weighted(np.arange(1, 8) / 2)),
        ("Weighted('weights.npy')", ip.Weighted(np.arange(1, 8) / 2)),
    ],
)
def test_the_order_tells(order: str, made: ip.Order, capsys: pytest.CaptureFixture[str]) -> None:
    """--num-samples may be left out, and is refused, by its own number, if it is another one."""
    run(capsys, "build", "a.plan", "--order", order, *BATCHES)
    assert made == ip.load("a.plan").order
    said = fails(capsys, 2, "build", "b.plan", "--order", order, "--num-samples=400", *BATCHES)
    if not order.startswith("Weighted"):
        number, kind = made.num_samples, order.partition(" ")[0]
        expected = f"--num-samples must be {number}, as the fields of {kind} tell; got 400; "
        assert f"{expected}leave it out, or change the fields" == said


def test_orders_that_do_not_tell(capsys: pytest.CaptureFixture[str]) -> None:
    """A shuffle has no sizes, so that it needs the number of samples."""
    said = fails(capsys, 2, "build", "a.plan", *BATCHES)
    assert said.startswith("exactly one of --num-samples, --dataset and --shards must be given")
