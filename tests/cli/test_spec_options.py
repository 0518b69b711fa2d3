"""Options that say what is planned: columns, sizes and balances, typed and beside a .json file.

Each verb takes plans by weight, by class, of several sources, and of pieces of samples.
"""

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


def test_plan_without_its_columns(folder: Path, shell: Shell) -> None:
    """A plan in a .json file finds its columns, by their numbers, in files and folders of files."""
    ip.save(PLAN, "a.plan")
    np.save("other.npy", np.array([3, 1, 3, 1]))
    np.save("here=.npy", np.array([0.5, 3.0]))
    samples = PLAN.order.to_dict()["samples"]["sha256"]
    (folder / "rows").mkdir()
    shutil.copy(f"a.plan/columns/{samples}.npy", "rows")
    for columns in (
        ["my rows.npy", "shares.npy"],
        ["a.plan/columns"],
        ["other.npy", "here=.npy", "rows", "shares.npy"],
    ):
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
    ("order", "made", "shards"),
    [
        ("ShardShuffle('sizes.npy', lanes=2)", ip.ShardShuffle(SIZES, lanes=2), False),
        ("TokenWindows(9000, 10)", ip.TokenWindows(9000, 10), False),
        ("Weighted('weights.npy')", ip.Weighted(np.arange(1, 8) / 2), False),
        ("BlockShuffle(block_size=10, seed=3)", ip.BlockShuffle(500, 10, seed=3), True),
        ("Epochs(Repeat(Shuffle(), 2), 30)", ip.Epochs(ip.Repeat(ip.Shuffle(500), 2), 30), True),
        ("Epochs(order=Shuffle(), epoch_size=30)", ip.Epochs(ip.Shuffle(500), 30), True),
        ("Subset(Shuffle(3), [1, 4, 5])", ip.Subset(ip.Shuffle(3), [1, 4, 5], 500), True),
        ("TokenWindows(length=7)", ip.TokenWindows(500, 7), True),
        ("ShardShuffle(lanes=2)", ip.ShardShuffle(SIZES, lanes=2), True),
        ("Epochs(ShardShuffle(lanes=2), 7)", ip.Epochs(ip.ShardShuffle(SIZES, lanes=2), 7), True),
    ],
)
def test_sizes_that_are_known(order: str, made: ip.Order, shards: bool, shell: Shell) -> None:
    """What the order tells may be left out, or --shards, where it means the whole dataset.

    --num-samples is refused, by its own number, if it is another one than the order's.
    """
    words = ["--order", order, *BATCHES]
    shell.run("build", "a.plan", *words, *(["--shards=sizes.npy"] if shards else []))
    assert made == ip.load("a.plan").order
    if not shards:
        said = shell.fails(2, "build", "b.plan", *words, "--num-samples=400")
        assert f"400, as the other options say; got {made.num_samples}; " in said


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


LABELS = [0, 0, 0, 0, 0, 1, 1, 2, 2, 2]
ORDERS = {  # of classes, of samples alone, and of sources; tests/orders builds every kind
    "class-balanced": "ClassBalanced('labels.npy')",
    "local-shuffle": "LocalShuffle(window=4)",
    "mixture": (
        "Mixture({'web': Shuffle(6), 'code': Weighted([(0, 'few.npy'), (1, [1, 1, 1, 9])])}, "
        "{'web': 0.7, 'code': 0.3})"
    ),
}


@pytest.mark.parametrize("name", ORDERS)
def test_every_verb(name: str, shell: Shell) -> None:
    """Built, shown, explained, verified and drawn, with names, when the columns are gone."""
    np.save("labels.npy", LABELS)
    np.save("few.npy", [1.0, 2.0, 0.0, 4.0])
    options = ["--num-samples", "10", "--world-size", "2", "--batch-size", "2", "--epochs", "2"]
    shell.run("build", "a.plan", "--order", ORDERS[name], *options)
    for column in ("labels.npy", "few.npy"):
        Path(column).unlink()
    plan = ip.load("a.plan")
    assert name in plan.order.to_dict()["algorithm"]
    names = plan.order.group_names
    shown = shell.run("show", "a.plan")
    assert all(f"\n{each} " in shown for each in names)
    assert f"order        {plan.order.to_dict()['algorithm']}(" in shown
    even = "\nshares       each source stays within 0.90 samples of its own\n"
    assert (name == "mixture") == (even in shown)
    explained = shell.run("explain", "a.plan", "--index", "7")
    group = names[plan.order.group_of(7)] if names else ""
    group = f"group {group}" if group.isdigit() else group  # of a class, whose name is its label
    assert not names or f", of {group}: " in explained
    said = shell.run("verify", "a.plan")
    assert "ok  every byte of every chunk is what the order generates" in said
    shell.run("plot", "a.plan", "-o", "a.png")
    assert Path("a.png").stat().st_size > 1000
    if names:
        assert str(ip.draws(plan)) in shell.run("show", "a.plan")


DOCUMENTS = np.arange(1, 90) % 31 + 1


def test_a_document_is_explained(shell: Shell) -> None:
    """All parts of it are named, and together they are all of it; `locate` finds the first."""
    np.save("lengths.npy", DOCUMENTS)
    order = "DocumentWindows('lengths.npy', 24, block_size=8, seed=1)"
    options = ["--world-size", "2", "--batch-size", "3", "--epochs", "2"]
    shell.run("build", "a.plan", "--order", order, *options)
    shell.run("verify", "a.plan")
    windows = ip.DocumentWindows(DOCUMENTS, 24, block_size=8, seed=1)
    plan = ip.Plan(windows, world_size=2, batch_size=3)
    assert DOCUMENTS[29] == 31
    lines = shell.run("explain", "a.plan", "--index", "29", "--epochs", "2").splitlines()
    for epoch in (0, 1):
        parts = [reading.span for reading in ip.explain(plan, 29, [epoch])]
        positions = plan.order.locate_all(epoch, 29)[0].tolist()
        assert len(parts) == len(positions) >= 2
        tokens = {i for part in parts if part for i in range(*part)}
        assert set(range(31)) == tokens
        for position, (start, stop) in zip(positions, filter(None, parts), strict=True):
            said = f"epoch {epoch}, position {position}, part [{start}, {stop}): "
            assert 1 == sum(line.startswith(said) for line in lines)
    where = plan.locate(29, 1)
    said = shell.run("locate", "a.plan", "--index", "29", "--epoch", "1")
    assert f"step {where.step}, rank {where.rank}" in said
