"""A run's ledger, asked from a shell."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import indexplan as ip
from tests.support.shell import Shell

PLAN = ip.Plan(ip.Shuffle(1000), world_size=4, batch_size=10)
SMALLER = PLAN.replace(world_size=2)


@pytest.fixture(autouse=True)
def ledger(here: Path) -> ip.Ledger:  # noqa: ARG001 (stands there)
    """The ledger of a run on 4 ranks and then on 2, which has returned to a checkpoint once."""
    made = ip.Ledger("run.ledger")
    made.record(PLAN, PLAN.cursor(epoch=1, step=5), {"global_step": 30})
    smaller = SMALLER.resume(made.cursor)
    made.record(smaller, smaller.cursor(epoch=2, step=0))
    made.rewind(40)
    return made


ASKED: dict[str, Callable[[ip.Ledger], Any]] = {
    "show run.ledger": lambda ledger: ledger,
    "show run.ledger --step 2.7e1": lambda ledger: ledger.at(27),
    "verify run.ledger": lambda ledger: ledger.verify(),
    "ledger run.ledger account": lambda ledger: ledger.account(),
    "ledger run.ledger account --epoch 0": lambda ledger: ledger.account(0),
    # where two runs part is an answer, not a failure
    "diff run.ledger other.ledger": lambda ledger: ip.diff(ledger, ip.Ledger("other.ledger")),
}


@pytest.mark.parametrize("words", ASKED)
def test_answers(words: str, ledger: ip.Ledger, shell: Shell) -> None:
    """The run, what became of its epochs, and where it parts from another: as words and JSON."""
    ip.Ledger("other.ledger").record(PLAN, PLAN.cursor(epoch=2, step=3))
    found = ASKED[words](ledger)
    assert f"{found}\n" == shell.run(*words.split())
    assert found.to_dict() == shell.json(*words.split())


def test_show_says_what_changed(shell: Shell) -> None:
    """A table has the stretches in the order of the file, with what changed and what is void."""
    assert shell.run("show", "run.ledger").splitlines() == [
        "run.ledger: 40 steps in 2 segments, 2 plans, 1 return to a checkpoint, 30 void",
        "step        steps ranks epoch     position",
        "0              30     4     0            0",
        "30             10     2     1          200 world",
        "40             30     2     1          400  void",
    ]


def test_show_many(shell: Shell) -> None:
    """Of many stretches the last ones are listed; before the first there is no table."""
    long = ip.Ledger("long.ledger")
    long.begin(PLAN)
    said = shell.run("show", "long.ledger")
    assert "long.ledger: 0 steps in 0 segments, 1 plan\n" == said
    for step in range(1, 16):
        long.record(PLAN, PLAN.cursor(epoch=0, step=step))
    lines = shell.run("show", "long.ledger").splitlines()
    assert "... 3 before these" == lines[2]
    assert ["3", "14"] == [lines[i].split()[0] for i in (3, -1)]
    assert 15 == len(lines)


def test_reads(ledger: ip.Ledger, shell: Shell) -> None:
    """What a rank read in a step; which steps read a sample, or that none did."""
    said = shell.run("show", "run.ledger", "--step", "27")
    assert "step 27: epoch 1, step 2, on 4 ranks; position 80; line 2\n" == said
    batch = ledger.batch(27, rank=3).tolist()
    words = ["show", "run.ledger", "--step", "27", "--rank", "3"]
    assert f"{' '.join(map(str, batch))}\n" == shell.run(*words)
    assert batch == shell.json(*words)["indices"]
    words = ["locate", "run.ledger", "--index", "123"]
    assert "step 18, rank 0, epoch 0\nstep 37, rank 1, epoch 1\n" == shell.run(*words)
    reads = [each._asdict() for each in ledger.reads(123)]
    assert {"sample": 123, "reads": reads} == shell.json(*words)
    ledger.rewind(1)
    assert "no step read sample 123\n" == shell.run(*words)


def test_verify(ledger: ip.Ledger, shell: Shell) -> None:
    """A ledger that holds together exits with 0; a lost line or another's hash with 1."""
    words = ["verify", "run.ledger"]
    shell.run(*words, "--checkpoint", ledger.hash)
    text = Path("run.ledger").read_bytes()
    Path("run.ledger").write_bytes(b"".join(text.splitlines(keepends=True)[:-1]))
    shell.run(*words)  # without the hash nobody can tell
    assert not shell.json(*words, "--checkpoint", ledger.hash, code=1)["ok"]
    Path("run.ledger").write_bytes(text.replace(b'"steps":30', b'"steps":31', 1))
    assert "run.ledger, line 2: its checksum must be " in shell.fails(1, *words)


def test_replay(ledger: ip.Ledger, shell: Shell) -> None:
    """A step is read again by one rank, whose plan another machine can load."""
    words = ["ledger", "run.ledger", "replay", "--step", "27"]
    batch = [sample for rank in range(4) for sample in ledger.batch(27, rank).tolist()]
    assert f"{ledger.at(27)}\n{' '.join(map(str, batch))}\n" == shell.run(*words)
    data = shell.json(*words)
    plan = ip.Plan.from_json(json.dumps(data["plan"]))
    assert ledger.replay(27) == plan
    assert batch == plan.batch(1, step=2, rank=0).tolist() == data["batch"]["indices"]


def test_replay_a_plan_with_columns(shell: Shell) -> None:
    """The columns of its order are found in the folder beside the ledger."""
    plan = ip.Plan(ip.Weighted([1, 2, 3] * 10), world_size=2, batch_size=3)
    weighted = ip.Ledger("weighted.ledger")
    weighted.record(plan, plan.cursor(1, step=0))
    data = shell.json("ledger", "weighted.ledger", "replay", "--step", "2")
    Path("plan.json").write_text(json.dumps(data["plan"]))
    where = ["--epoch", "0", "--step", "2", "--rank", "0"]
    said = shell.run("show", "plan.json", "--column", "columns", *where)
    batch = [sample for rank in range(2) for sample in weighted.batch(2, rank).tolist()]
    assert f"{' '.join(map(str, batch))}\n" == said
