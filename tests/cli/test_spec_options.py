"""Options that say what is planned: columns, sizes and balances, typed and beside a .json file."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import indexplan as ip
from indexplan.cli.written import order_as_written
from tests.support.listed import Listed
from tests.support.shell import Shell

IMPORT = "--import=tests.support.listed"
SPEC = ["--num-samples=5", "--world-size=1", "--batch-size=2", IMPORT]
FIRST = ["--epoch=0", "--step=0", "--rank=0"]
PLAN = ip.Plan(Listed([3, 1, 3, 0], 5, [0.5, 2.0]), world_size=1, batch_size=2)
SIZES = [300, 0, 120, 80]
BATCHES = ["--batch-size=4", "--world-size=1"]
LENGTHS = [1 + 7 * i % 20 for i in range(60)]
SIXTY = ["--num-samples=60", "--order=Shuffle(seed=3)", "--world-size=4", "--batch-size=5"]
OF_SIXTY = ip.Plan(ip.Shuffle(60, seed=3), world_size=4, batch_size=5)


@pytest.fixture(autouse=True)
def folder(here: Path) -> Path:
    """The current folder, with columns, some under names with a space, and sizes of shards."""
    np.save("my rows.npy", np.array([3, 1, 3, 0]))
    np.save("shares.npy", np.array([0.5, 2.0]))
    Path("plan.json").write_text(PLAN.to_json())
    np.save("my lengths.npy", np.array(LENGTHS))
    np.save("sizes.npy", np.array(SIZES))
    np.save("weights.npy", np.arange(1, 8) / 2)
    return here


def test_build(folder: Path, shell: Shell) -> None:
    """An order's columns are paths in its text."""
    text = "Listed('my rows.npy', shares='shares.npy')"
    shell.run("build", "a.plan", *SPEC, "--order", text)
    assert PLAN == ip.load("a.plan")
    assert 2 == len(list((folder / "a.plan/columns").iterdir()))
    assert "3 1\n" == shell.run("show", "a.plan", *FIRST)


def test_a_column_that_is_not_needed() -> None:
    """A column that may be None is left out."""
    order = order_as_written("Listed('my rows.npy')", {"num_samples": 5})
    assert Listed([3, 1, 3, 0], 5) == order


@pytest.mark.parametrize(
    "columns",
    [
        ["my rows.npy", "shares.npy"],
        ["a.plan/columns"],
        ["other.npy", "here=.npy", "rows", "shares.npy"],
    ],
)
def test_plan_without_its_columns(columns: list[str], folder: Path, shell: Shell) -> None:
    """A plan in a .json file finds its columns, by their numbers, in files and folders of files."""
    ip.save(PLAN, "a.plan")
    np.save("other.npy", np.array([3, 1, 3, 1]))
    np.save("here=.npy", np.array([0.5, 3.0]))
    samples = PLAN.order.to_dict()["samples"]["sha256"]
    (folder / "rows").mkdir()
    shutil.copy(f"a.plan/columns/{samples}.npy", "rows")
    words = ["plan.json", IMPORT, *(f"--column={each}" for each in columns)]
    assert "3 1\n" == shell.run("show", *words, *FIRST)
    assert "rank 0, slot 1" in shell.run("locate", *words, "--index=1", "--epoch=0")
    assert "step 0" in shell.run("explain", *words, "--index=1")
    said = shell.json("diff", *words, "a.plan")
    assert said == shell.json("diff", "a.plan", "a.plan", IMPORT)
    assert said == shell.json("diff", *words, "plan.json")
    shell.run("plot", *words, "--kind=mixing", "--output=a.png")
    shell.run("export", *words, "out")
    assert [3, 1, 3, 0] == np.load("out/epoch-00000/rank-00000.npy").tolist()


def test_columns_that_are_not_those_of_the_plan(shell: Shell) -> None:
    """Other numbers are never taken for the plan's."""
    np.save("other.npy", np.array([3, 1, 3, 1]))
    words = ["show", "plan.json", IMPORT, "--column=shares.npy"]
    for more in ([], ["--column=other.npy"], ["--column=shares.npy"]):
        said = shell.fails(1, *words, *more)
        assert said.startswith("plan.json: samples needs a column of 4 numbers, <u4, with sha256 ")
        assert said.endswith("give it, or the folder that it is in, as --column")


def test_sizes_are_sizes_in_each_verb(shell: Shell) -> None:
    """A .npy file after --shards has the number of samples in each shard, and is no shard."""
    shell.run("build", "a.plan", "--shards=sizes.npy", "--order=ShardShuffle(lanes=2)", *BATCHES)
    assert ip.ShardShuffle(SIZES, lanes=2) == ip.load("a.plan").order
    words = ["shards", "--plan=a.plan", "--ranks-per-node=1"]
    assert shell.json(*words, "sizes.npy") == shell.json(*words)
    shell.run("build", "b.plan", "--shards=sizes.npy", *BATCHES)
    assert ip.Shuffle(500) == ip.load("b.plan").order
    said = shell.fails(2, "verify", "a.plan", "--shards=sizes.npy")
    assert said.startswith("--shards must be shards, or a .json file with what ")


@pytest.mark.parametrize(
    ("order", "made"),
    [
        ("ShardShuffle('sizes.npy', lanes=2)", ip.ShardShuffle(SIZES, lanes=2)),
        ("TokenWindows(9000, 10)", ip.TokenWindows(9000, 10)),
        ("Weighted('weights.npy')", ip.Weighted(np.arange(1, 8) / 2)),
    ],
)
def test_the_order_tells(order: str, made: ip.Order, shell: Shell) -> None:
    """--num-samples may be left out, and is refused, by its own number, if it is another one."""
    shell.run("build", "a.plan", "--order", order, *BATCHES)
    assert made == ip.load("a.plan").order
    said = shell.fails(2, "build", "b.plan", "--order", order, "--num-samples=400", *BATCHES)
    assert f"400, as the other options say; got {made.num_samples}; " in said


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
def test_sizes_that_are_known(order: str, made: ip.Order, shell: Shell) -> None:
    """What --shards tells may be left out wherever the order means the whole dataset."""
    shell.run("build", "a.plan", "--order", order, "--shards=sizes.npy", *BATCHES)
    assert made == ip.load("a.plan").order


@pytest.mark.parametrize(
    ("text", "weights"),
    [
        ("Balance('my lengths.npy')", {}),
        (
            "ip.Balance('my lengths.npy', quadratic=1, linear=24_576)",
            {"linear": 24576, "quadratic": 1},
        ),
        ("Balance('my lengths.npy', quadratic=10**3, linear=0)", {"linear": 0, "quadratic": 1000}),
    ],
)
def test_balance(text: str, weights: dict[str, int], shell: Shell) -> None:
    """The path of the lengths, and what they cost, are one option; `show` says so."""
    shell.run("build", "a.plan", *SIXTY, "--balance", text)
    plan = ip.load("a.plan")
    assert OF_SIXTY.replace(balance=ip.Balance(LENGTHS, **weights)) == plan
    shown = shell.run("show", "a.plan", "--epoch=0", "--step=1", "--rank=2")
    assert plan.batch(0, step=1, rank=2).tolist() == [int(word) for word in shown.split()[:5]]
    assert "balance      balance-v1(lengths 60 numbers of sha256 " in shell.run("show", "a.plan")
    Path("balanced.json").write_text(plan.to_json())  # finds its lengths as columns
    where = ["--epoch=0", "--step=1", "--rank=2", "--column", "my lengths.npy"]
    assert shown.split()[:5] == shell.run("show", "balanced.json", *where).split()
