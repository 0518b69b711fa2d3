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
    run(capsys, "build", "a.plan", "--shards=sizes.npy", "--order=ShardShuffle(lanes=2)", *BATCHES)
    assert ip.ShardShuffle(SIZES, lanes=2) == ip.load("a.plan").order
    words = ["shards", "--plan=a.plan", "--ranks-per-node=1", "--json"]
    said = json.loads(run(capsys, *words, "sizes.npy"))
    assert said == json.loads(run(capsys, *words))
    run(capsys, "build", "b.plan", "--shards=sizes.npy", *BATCHES)
    assert ip.Shuffle(500) == ip.load("b.plan").order
    said = fails(capsys, 2, "verify", "a.plan", "--shards=sizes.npy")
    assert said.startswith("--shards must be shards, or a .json file with what ")


@pytest.mark.parametrize(
    ("order", "made"),
    [
        ("ShardShuffle('sizes.npy', lanes=2)", ip.ShardShuffle(SIZES, lanes=2)),
        ("TokenWindows(9000, 10)", ip.TokenWindows(9000, 10)),
        ("Weighted('weights.npy')", ip.Weighted(np.arange(1, 8) / 2)),
    ],
)
def test_the_order_tells(order: str, made: ip.Order, capsys: pytest.CaptureFixture[str]) -> None:
    """--num-samples may be left out, and is refused, by its own number, if it is another one."""
    run(capsys, "build", "a.plan", "--order", order, *BATCHES)
    assert made == ip.load("a.plan").order
    said = fails(capsys, 2, "build", "b.plan", "--order", order, "--num-samples=400", *BATCHES)
    expected = "the number of samples in --order must be 400, as the other options say; got "
    assert f"{expected}{made.num_samples}; change one of the two" == said


@pytest.mark.parametrize(
    ("order", "made"),
    [
        ("BlockShuffle(block_size=10, seed=3)", ip.BlockShuffle(500, 10, seed=3)),
        ("Epochs(Repeat(Shuffle(), 2), 30)", ip.Epochs(ip.Repeat(ip.Shuffle(500), 2), 30)),
        ("Epochs(order=Shuffle(), epoch_size=30)", ip.Epochs(ip.Shuffle(500), 30)),
        ("Subset(Shuffle(3), [1, 4, 5])", ip.Subset(ip.Shuffle(3), [1, 4, 5], 500)),
        ("TokenWindows(length=7)", ip.TokenWindows(500, 7)),
        ("ShardShuffle(lanes=2)", ip.ShardShuffle(SIZES, lanes=2)),
        ("Epochs(ShardShuffle(lanes=2), 7)", ip.Epochs(ip.ShardShuffle(SIZES, lanes=2), 7)),
    ],
)
def test_sizes_that_are_known(
    order: str, made: ip.Order, capsys: pytest.CaptureFixture[str]
) -> None:
    """What --shards tells may be left out wherever the order means the whole dataset."""
    run(capsys, "build", "a.plan", "--order", order, "--shards=sizes.npy", *BATCHES)
    assert made == ip.load("a.plan").order


@pytest.mark.parametrize(
    ("order", "missing"),
    [
        ("Subset(Shuffle(), [1, 4, 5])", "num_samples of Shuffle"),
        (
            "Mixture({'a': Shuffle(3), 'b': Shuffle()}, {'a': 1, 'b': 1})",
            "num_samples of Sh",
        ),
        ("Part(parts=[0], sizes=[500], num_samples=Shuffle())", "num_samples of Shuffle"),
        ("Part(parts=[0])", "sizes of Part"),
    ],
)
def test_sizes_that_are_not_known(
    order: str, missing: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Orders of a part of the dataset are not given the size of all of it."""
    said = fails(capsys, 2, "build", "a.plan", "--order", order, "--shards=sizes.npy", *BATCHES)
    assert said.startswith(f"--order: {missing}")
