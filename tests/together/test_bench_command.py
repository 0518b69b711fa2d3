"""`indexplan bench`: its rows, its errors, and what it says where others can't be measured."""

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

import indexplan as ip
from indexplan.reports.benchmark import bench
from tests.cli.test_help import examples, page, works
from tests.support.shell import Shell

KEYS = ["first_batch", "share", "resume", "torch", "numpy"]


def test_rows(shell: Shell) -> None:
    """Every row has a time, and its cost per index follows from it."""
    said = shell.json("bench", "--num-samples", "1e6", "--world-size", "4")
    plan = ip.Plan(ip.Shuffle(10**6), world_size=4, batch_size=256)
    assert plan == ip.Plan.from_json(json.dumps(said["plan"]))
    assert ip.__version__ == said["version"]
    assert KEYS == [row["key"] for row in said["rows"]]
    for row in said["rows"]:
        assert row["seconds"] > 0
        assert row["seconds"] / row["num_indices"] * 1e9 == row["ns_per_index"]
    assert [256, 250_000, 256, 256, 256] == [row["num_indices"] for row in said["rows"]]


def test_too_large_for_others(shell: Shell) -> None:
    """A size that no memory holds is measured all the same; others say their time for fewer."""
    order = ["--order", "BlockShuffle(block_size=4096)"]
    said = shell.run("bench", "--num-samples", "1e15", "--world-size", "64", *order)
    lines = said.splitlines()
    assert lines[0].startswith("1,000,000,000,000,000 samples, 64 ranks; ")
    assert "16,384 steps of one rank" in lines[4]
    for line, other in zip(
        lines[-2:], ("torch DistributedSampler", "numpy.random permutation"), strict=True
    ):
        assert line.startswith(f"{other}, first batch: not run, as it takes ")
        assert line.endswith("s for 10,000,000 samples already")


def test_every_kind_of_plan() -> None:
    """Any plan can be measured, also one of sub-epochs, or one that was resumed.

    Under "carry", where the next epochs have no step of their own, the first one is asked.
    """
    plan = ip.Plan(ip.Sequential(5000), world_size=2, batch_size=8, sub_epochs=3)
    carry = ip.Plan(ip.Shuffle(10), world_size=2, batch_size=300, remainder="carry")
    for each in (plan.replace(remainder="carry"), plan.resume(plan.cursor(1, 2, step=50)), carry):
        result = bench(each)
        assert KEYS == [row.key for row in result.rows]
        assert each == result.plan
    assert [300, 300, 300] == [row.num_indices for row in result.rows[:3]]


def test_without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """In an environment without torch, its row says so, and the others are there."""
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "torch" else find(name)
    )
    torch, numpy = bench(ip.Plan(ip.Shuffle(1000), world_size=4, batch_size=8)).rows[3:]
    assert ("torch is not installed", None) == (torch.note, torch.seconds)
    assert (numpy.seconds is None, torch.ns_per_index) == (False, None)


def test_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """The examples of its help work."""
    for command in examples(page(capsys, "bench")):
        works(command, tmp_path, monkeypatch)
