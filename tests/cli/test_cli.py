"""The command line: what it prints, to people and to programs, and how it exits."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import indexplan as ip
from tests.support.shell import Shell

BUILD = ["--num-samples", "1000", "--world-size", "3", "--batch-size", "16", "--sub-epochs", "2"]
PLAN = ip.Plan(ip.Shuffle(1000), world_size=3, batch_size=16, sub_epochs=2)
SPEC = ip.Plan(ip.Sequential(11), world_size=2, batch_size=2, remainder="drop")


@pytest.fixture(autouse=True)
def _here(here: Path, shell: Shell) -> None:
    """Stand in a folder with a plan directory that the command has made, and a plan alone."""
    said = shell.run("build", "a.plan", *BUILD, "--epochs", "2")
    assert "a.plan: 8,256 bytes; 2 files written, 0 were there already\n" == said
    (here / "spec.json").write_text(SPEC.to_json())


def test_build(shell: Shell) -> None:
    """What the command builds is what the library does; a second build keeps what is there."""
    assert PLAN == ip.load("a.plan")
    assert (0, 1) == ip.load("a.plan").order.build.epochs
    counts = {"num_bytes": 8256, "num_written": 0, "num_kept": 2}
    expected = {"path": "a.plan", **counts, "fingerprint": PLAN.fingerprint}
    assert expected == shell.json("build", "a.plan", *BUILD, "--epochs", "2")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--batch-size", "(5, 3)"], ip.Plan(ip.Shuffle(100), batch_size=(5, 3))),
        (
            ["--order", "BlockShuffle(block_size=10, window=3, seed=7)",
             "--global-batch-size",
             "[Phase(0, 8), Phase(50, 16, {'resolution': 192, 'name': 'x'})]",
             "--remainder", "pad"],
            ip.Plan(
                ip.BlockShuffle(100, 10, window=3, seed=7),
                global_batch_size=[
                    ip.Phase(0, 8),
                    ip.Phase(50, 16, {"resolution": 192, "name": "x"}),
                ],
                remainder="pad",
            ),
        ),
        (
            ["--order", "Sequential()", "--sub-epochs", "3",
             "--batch-size", "[Phase(0, 4), ip.Phase(at=(1, 2), size=8)]"],
            ip.Plan(
                ip.Sequential(100),
                batch_size=[ip.Phase(0, 4), ip.Phase((1, 2), 8)],
                sub_epochs=3,
            ),
        ),
    ],
)  # fmt: skip
def test_build_options(options: list[str], expected: ip.Plan, shell: Shell) -> None:
    """Every option of build reaches the plan."""
    shell.run("build", "b.plan", "--num-samples", "1e2", *options)
    assert expected == ip.load("b.plan")


def numbers(batch: Any) -> str:
    """A batch as a line."""
    return f"{' '.join(map(str, batch.tolist()))}\n"


ROW = "          22     1,000       0      0 15 to 16 333 to 334"
LOCATED = PLAN.locate(123, 1)
SAID = {  # what commands print
    # a plan in words: its spec, its files, and what becomes of each epoch's units
    "show a.plan": (
        "order        shuffle-v1(num_samples 1000, seed 0)\n"
        "unit         one sample (this order makes no bins)\n"
        "world_size   3\n"
        "batch_size   16\n"
        "sub_epochs   2\n"
        "remainder    spread: every unit is read once; batches may be one smaller\n"
        "dataset      none remembered\n"
        "files        2 epochs, 8,256 bytes\n"
        f"fingerprint  {PLAN.fingerprint}\n"
        "\n"
        "epoch   steps      read dropped padded  batches   per rank\n"
        f"0{ROW}\n"
        f"1{ROW}\n"
    ),
    "show a.plan --epoch=1 --sub-epoch=0 --step=4": (
        "units over all ranks  46\nunits of each rank    15 16 15\n"
        "phase                 (at 0, size 16, parameters ())\n"
    ),
    "show a.plan --epoch=1 --sub-epoch=1 --step=4 --rank=2": (
        numbers(PLAN.batch(1, 1, step=4, rank=2))
    ),
    # an epoch that the directory does not hold is computed from the order
    "show a.plan --epoch=7 --sub-epoch=0 --step=0 --rank=0": (
        numbers(PLAN.batch(7, 0, step=0, rank=0))
    ),
    "locate a.plan --index=123 --epoch=1": (
        f"epoch 1, sub-epoch {LOCATED.sub_epoch}, step {LOCATED.step}, rank {LOCATED.rank}, "
        f"slot {LOCATED.slot}\n"
    ),
    "locate spec.json --index=9 --epoch=0": "no step reads sample 9 in epoch 0\n",
    "explain spec.json --index=9 --epochs=1": (
        "epoch 0, position 9: dropped: the last 3 of 11 units do not fill a global batch, and "
        'remainder is "drop"\n'
    ),
    "explain spec.json --index=3 --epochs=1 --world-size=4": (
        "epoch 0, position 3: step 0, rank 1, slot 1\n"
    ),
}


@pytest.mark.parametrize("words", SAID)
def test_words(words: str, shell: Shell) -> None:
    """Plans, steps, batches and samples, in words."""
    assert SAID[words] == shell.run(*words.split())


def test_as_json(shell: Shell) -> None:
    """A program gets what it can go on with: a plan, a cursor, indices, a place."""
    where = ["show", "a.plan", "--epoch", "1", "--sub-epoch", "0", "--step", "4"]
    assert PLAN.cursor(1, 0, step=4) == ip.Cursor.from_dict(shell.json(*where)["cursor"])
    batch = PLAN.batch(1, 0, step=4, rank=2).tolist()
    assert {"indices": batch, "num_valid": len(batch)} == shell.json(*where, "--rank", "2")
    found = shell.json("locate", "a.plan", "--index", "123", "--epoch", "1")
    assert LOCATED._asdict() == found
    data = shell.json("show", "spec.json")
    assert [3, 3, 3] == [account["num_dropped"] for account in data["accounts"]]
    first, *_ = shell.json("explain", "spec.json", "--index", "3")["readings"]
    assert {"epoch": 0, "sub_epoch": 0, "step": 0, "rank": 1, "slot": 1} == first["where"]


def rows(said: str) -> list[list[str]]:
    """The rows of the table of epochs."""
    return [line.split() for line in said.splitlines() if line.strip()[:1].isdigit()]


def test_tables_of_epochs(shell: Shell) -> None:
    """Of many epochs the first; of one sub-epoch its own; of a plan alone as far as it goes."""
    shell.run("build", "many.plan", *BUILD, "--epochs", "15")
    assert "   ... 3 more; show one with --epoch\n" in shell.run("show", "many.plan")
    said = shell.run("show", "a.plan", "--epoch", "1", "--sub-epoch", "1")
    assert [["1", "11", "500", "0", "0", "15", "to", "16", "166", "to", "167"]] == rows(said)
    said = shell.run("show", "spec.json")
    assert "files        none (the plan isn't stored)\n" in said
    assert ["2", "2", "8", "3", "0", "2", "4"] == rows(said)[-1]


def test_batches_of_bins(shell: Shell) -> None:
    """A line for each bin; as JSON, where each starts; of pieces of samples, which parts."""
    words = ["--epoch", "0", "--step", "0", "--rank", "0"]
    for name, order in (
        ("grouped.plan", ip.Grouped([0, 1, 0, 1, 0], {0: 2, 1: 1})),
        ("windows.plan", ip.DocumentWindows([4, 9, 5], 3, block_size=2)),
    ):
        plan = ip.Plan(order, world_size=1, batch_size=3)
        ip.save(plan, name, epochs=[0])
        batch = plan.units(0, step=0, rank=0)
        bins = batch.bins
        lines = [[str(sample) for sample in each.tolist()] for each in bins]
        expected: dict[str, Any] = {
            "indices": batch.samples.tolist(),
            "num_valid": len(bins),
            "offsets": batch.offsets.tolist(),
        }
        if order.traits.cuts_samples:
            lines = [[f"{i}[{low}:{high}]" for i, low, high in each.tolist()] for each in bins]
            expected["spans"] = [row[1:] for each in bins for row in each.tolist()]
        assert [" ".join(each) for each in lines] == shell.run("show", name, *words).splitlines()
        assert expected == shell.json("show", name, *words)


def test_an_open_world(shell: Shell) -> None:
    """A plan that leaves its world size open is verified all the same."""
    shell.run("build", "open.plan", "--num-samples", "50", "--batch-size", "4")
    assert "ok " in shell.run("verify", "open.plan")
    said = shell.run("show", "open.plan")
    assert "\nworld_size is open: to see steps, name one with --world-size\n" in said
    said = shell.run("show", "open.plan", "--world-size", "2")
    assert [["0", "7", "50", "0", "0", "3", "to", "4", "25"]] == rows(said)
    where = ["--index", "7", "--epoch", "0"]
    assert "must be set" in shell.fails(2, "locate", "open.plan", *where)
    shell.run("locate", "open.plan", *where, "--world-size", "2")


def test_datasets(here: Path, shell: Shell) -> None:
    """A folder gives the number of samples, names a batch's files, and is watched for changes.

    A .npy file gives its number of rows.
    """
    (here / "data").mkdir()
    for number in range(10):
        (here / f"data/{number}.txt").write_text("x" * number)
    (here / "data/notes.md").write_text("")
    dataset = ["--dataset", "data"]
    options = ["--pattern", "*.txt", "--world-size", "2", "--batch-size", "5"]
    shell.run("build", "files.plan", *dataset, *options)
    said = shell.run("show", "files.plan", *dataset)
    assert "dataset      10 files by *.txt, 45 bytes\n" in said
    said = shell.run("show", "files.plan", *dataset, "--epoch", "0", "--step", "0", "--rank", "1")
    expected = ip.load("files.plan").batch(0, step=0, rank=1).tolist()
    assert [f"{index}  {index}.txt" for index in expected] == [s.strip() for s in said.splitlines()]
    assert "ok " in shell.run("verify", "files.plan", *dataset)
    (here / "data/5.txt").write_text("rewritten")
    for verb in ("show", "verify"):
        said = shell.fails(1, verb, "files.plan", *dataset)
        assert "it had 45 bytes, has 49; sizes of files changed" in said
    np.save("rows.npy", np.zeros((30, 2)))
    shell.run("build", "rows.plan", "--dataset", "rows.npy", "--batch-size", "5")
    assert 30 == ip.load("rows.plan").order.num_samples
    said = "dataset      30 rows, dtype <f8, shape (30, 2), row-major, 608 bytes\n"
    assert said in shell.run("show", "rows.plan")


@pytest.mark.slow
def test_as_a_program() -> None:
    """`python -m indexplan` is the same command line, and stops quietly when its reader does."""
    command = f"{sys.executable} -m indexplan show a.plan --json | head -c 1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=True)  # noqa: S602
    assert ("{", "") == (done.stdout, done.stderr)


def seen_at_a_terminal(*arguments: str) -> str:
    """What the command writes to stderr where that is a terminal, of 80 columns."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    command = [sys.executable, "-m", "indexplan", *arguments]
    others = ("COLUMNS", "NO_COLOR")  # which would say something else of the terminal
    where = {name: value for name, value in os.environ.items() if name not in others}
    child = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=follower, env={**where, "TERM": "xterm"}
    )
    os.close(follower)
    said = b""
    while True:
        try:
            more = os.read(leader, 4096)
        except OSError:  # the terminal's other end has closed
            break
        if not more:
            break
        said += more
    os.close(leader)
    assert 0 == child.wait()
    return said.decode()


@pytest.mark.slow
def test_progress() -> None:
    """Somebody at a terminal sees how far a verb is, how fast, and how long it will take."""
    said = seen_at_a_terminal("build", "c.plan", *BUILD)
    assert "building: 100%" in said
    assert "idx/s]" in said
    ip.save(ip.Plan(ip.Shuffle(5_000_000), world_size=2, batch_size=1000), "large.plan")
    said = seen_at_a_terminal("verify", "large.plan")
    bars = re.findall(r"verifying: +(\d+)%.*?\[(\d\d:\d\d)<(\d\d:\d\d|\?), +(\S+B/s)", said)
    assert "0" == bars[0][0]
    assert ("100", "00:00") == (bars[-1][0], bars[-1][2])
    assert re.fullmatch(r"[\d.]+[kMG]?B/s", bars[-1][3])


def test_what_is_resumed_far_away_or_large(here: Path, shell: Shell) -> None:
    """A plan that was resumed shows from where, in a late epoch that; of 1e12 nothing is drawn."""
    for name, plan in {
        "rest": SPEC.resume(SPEC.cursor(0, step=1)),
        "late": SPEC.resume(SPEC.cursor(5, step=1)),
        "large": ip.Plan(ip.Sequential(10**12), world_size=1, batch_size=10**12),
    }.items():
        (here / f"{name}.json").write_text(plan.to_json())
    place = "resumed      (epoch 0, sub_epoch 0, step 1, position 4)\n"
    assert place in shell.run("show", "rest.json")
    assert ["5", "6", "7"] == [row[0] for row in rows(shell.run("show", "late.json"))]
    assert ["0", "1", "1,000,000,000,000"] == rows(shell.run("show", "large.json"))[0][:3]
    ip.save(SPEC, "stored.plan", epochs=[1, 4])  # of which the stored epochs are explained
    for name, epochs in (("late.json", (5, 6, 7)), ("stored.plan", (1, 4))):
        said = shell.run("explain", name, "--index", "3").splitlines()
        assert [f"epoch {each}" for each in epochs] == [line.partition(",")[0] for line in said]
