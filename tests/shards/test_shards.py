"""Shards: where samples lie, the way to JSON and back, and what a plan remembers of them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import indexplan as ip
from tests.support.shell import Shell


def shards(held: list[int], **changes: object) -> ip.Shards:
    """Shards of these sizes, each a file."""
    fields = {
        "kind": "npy",
        "whole_files": True,
        "files": [f"{number}.npy" for number in range(len(held))],
        "num_bytes": [8 * size for size in held],
        "digests": ["0" * 32] * len(held),
        "parts": [1] * len(held),
        "sizes": held,
    }
    return ip.Shards(**{**fields, **changes})  # type: ignore[arg-type]


@given(st.lists(st.integers(0, 5), min_size=1, max_size=20).filter(any))
def test_locate(sizes: list[int]) -> None:
    """Over empty shards too, at the first, the last and in a row of them."""
    of = shards(sizes)
    every = [(shard, row) for shard, size in enumerate(sizes) for row in range(size)]
    which, rows = of.locate(np.arange(of.num_samples))
    assert every == list(zip(which.tolist(), rows.tolist(), strict=True))
    square, _ = of.locate(np.zeros((2, 2), int))  # answers have the shape of the question
    assert (2, 2) == square.shape
    firsts = np.cumsum(sizes) - sizes  # the way back, as the page on shards has it
    assert list(range(len(every))) == (firsts[which] + rows).tolist()


def test_parts() -> None:
    """A shard is a part of a file, which it is named by."""
    files = {"files": ["a", "b"], "num_bytes": [1, 2], "digests": ["", ""], "parts": [2, 1]}
    of = shards([3, 0, 4], whole_files=False, **files)
    assert ("a#0", "a#1", "b#0") == of.names
    assert [("a", 0), ("a", 1), ("b", 0)] == [of.part(shard) for shard in range(3)]


def test_an_order_takes_them() -> None:
    """By themselves, or their sizes; so do questions about reads and traffic."""
    of = shards([3, 0, 4])
    order = ip.ShardShuffle(of, lanes=2)
    assert order == ip.ShardShuffle(of.sizes, lanes=2) == ip.ShardShuffle([3, 0, 4], lanes=2)
    plan = ip.Plan(order, world_size=1, batch_size=2)
    assert {0, 2} == set(ip.reads(plan, of, 0).shards.tolist())


def test_where_they_lie(tmp_path: Path) -> None:
    """Whoever has saved shards says where they lie as they told `shard_sizes`."""
    np.save(tmp_path / "0.npy", np.zeros((3, 2)))
    for path in (str(tmp_path), str(tmp_path / "*.npy")):
        of = ip.shard_sizes(path)
        assert (tmp_path / "0.npy").samefile(Path(of.path) / of.files[0])
        assert of.path == ip.Shards.from_json(of.to_json(), path=path).path
    assert not ip.Shards.from_json(of.to_json()).path


@pytest.mark.parametrize(
    "changes",
    [
        {"sizes": [3, 4, 0]},
        {"num_bytes": [24, 0, 33]},
        {"digests": ["0" * 32] * 2 + ["1" * 32]},
        {"files": ["0.npy", "1.npy", "3.npy"]},
        {"kind": "mds"},
    ],
)
def test_a_plan_notices_changed_shards(changes: dict[str, object], tmp_path: Path) -> None:
    """Of names, samples, bytes or footers."""
    of = shards([3, 0, 4])
    plan = ip.Plan(ip.ShardShuffle(of), batch_size=2)
    ip.save(plan, tmp_path / "a.plan", dataset=of)
    loaded = ip.load(tmp_path / "a.plan", dataset=ip.Shards.from_json(of.to_json()))
    assert plan.order.take(0, 0, 7).tolist() == loaded.order.take(0, 0, 7).tolist()
    with pytest.raises(ip.PlanFileError, match="dataset must be the one that the plan was built"):
        ip.load(tmp_path / "a.plan", dataset=shards([3, 0, 4], **changes))


@pytest.mark.usefixtures("here")
def test_command(shell: Shell) -> None:
    """Sizes are saved, a plan is built of them, its batches name rows; changes are noticed."""
    for name, rows in (("a", 300), ("b", 0), ("c", 120)):
        np.save(f"{name}.npy", np.zeros((rows, 2)))
    Path("shards.json").write_text(json.dumps(shell.json("shards", "*.npy")))
    said = "3 shards (npy), 7,104 bytes: 420 samples, 0 to 300 in a shard, 140 on average\n"
    assert said == shell.run("shards", "*.npy")
    assert ip.shard_sizes("*.npy") == ip.shard_sizes("shards.json")
    words = ["--order", "ShardShuffle(lanes=2, window=1)", "--batch-size", "2", "--world-size", "1"]
    shell.run("build", "a.plan", "--shards", "shards.json", *words)
    expected = ip.ShardShuffle([300, 0, 120], lanes=2, window=1)
    assert expected.take(0, 0, 420).tolist() == ip.load("a.plan").order.take(0, 0, 420).tolist()
    where = ["--epoch", "0", "--step", "0", "--rank", "0"]
    names = shell.json("show", "a.plan", "--shards", "*.npy", *where)["names"]
    which, rows = ip.shard_sizes("*.npy").locate(expected.take(0, 0, 2))
    assert [f"{'abc'[n]}.npy row {row}" for n, row in zip(which, rows, strict=True)] == names
    assert "420 samples in npy shards, 7,104 bytes" in shell.run("show", "a.plan")
    told = shell.json("shards", "shards.json", "--plan", "a.plan")
    assert told == shell.json("shards", "--plan", "a.plan")
    np.save("b.npy", np.zeros((1, 2)))
    said = shell.fails(1, "verify", "a.plan", "--shards", "*.npy")
    assert "it had 420 samples, has 421" in said
