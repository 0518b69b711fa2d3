"""A run's ledger, asked from a shell."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import indexplan as ip
from indexplan.cli import main
from tests.cli.test_cli import fails, run

PLAN = ip.Plan(ip.Shuffle(1000), world_size=4, batch_size=10)
SMALLER = PLAN.replace(world_size=2)


@pytest.fixture(autouse=True)
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ip.Ledger:
    """The ledger of a run on 4 ranks and then on 2, which has returned to a checkpoint once."""
    monkeypatch.chdir(tmp_path)
    made = ip.Ledger("run.ledger")
    made.record(PLAN, PLAN.cursor(epoch=1, step=5), {"global_step": 30})
    smaller = SMALLER.resume(made.cursor)
    made.record(smaller, smaller.cursor(epoch=2, step=0))
    made.rewind(40)
    return made


ASKED: dict[str, Callable[[ip.Ledger], Any]] = {
    "show run.ledger": lambda ledger: ledger,
    "ledger run.ledger account": lambda ledger: ledger.account(),
    "ledger run.ledger account --epoch 0": lambda ledger: ledger.account(0),
    # where two runs part is an answer, not a failure
    "diff run.ledger other.ledger": lambda ledger: ip.diff(ledger, ip.Ledger("other.ledger")),
}


@pytest.mark.parametrize("words", ASKED)
def test_answers(words: str, ledger: ip.Ledger, capsys: pytest.CaptureFixture[str]) -> None:
    """The run, what became of its epochs, and where it parts from another: as words and JSON."""
    ip.Ledger("other.ledger").record(PLAN, PLAN.cursor(epoch=2, step=3))
    found = ASKED[words](ledger)
    assert f"{found}\n" == run(capsys, *words.split())
    assert found.to_dict() == json.loads(run(capsys, *words.split(), "--json"))


def test_show_says_what_changed(capsys: pytest.CaptureFixture[str]) -> None:
    """A table has the stretches in the order of the file, with what changed and what is void."""
    assert run(capsys, "show", "run.ledger").splitlines() == [
        "run.ledger: 40 steps in 2 segments, 2 plans, 1 return to a checkpoint, 30 void",
        "step        steps ranks epoch     position",
        "0              30     4     0            0",
        "30             10     2     1          200 world",
        "40             30     2     1          400  void",
    ]


def test_show_many(capsys: pytest.CaptureFixture[str]) -> None:
    """Of many stretches the last ones are listed; before the first there is no table."""
    long = ip.Ledger("long.ledger")
    long.begin(PLAN)
    said = run(capsys, "show", "long.ledger")
    assert "long.ledger: 0 steps in 0 segments, 1 plan\n" == said
    for step in range(1, 16):
        long.record(PLAN, PLAN.cursor(epoch=0, step=step))
    lines = run(capsys, "show", "long.ledger").splitlines()
    assert "... 3 before these" == lines[2]
    assert ["3", "14"] == [lines[i].split()[0] for i in (3, -1)]
    assert 15 == len(lines)


def test_at(ledger: ip.Ledger, capsys: pytest.CaptureFixture[str]) -> None:
    """A step's plan and place, or what one of its ranks read."""
    said = run(capsys, "show", "run.ledger", "--step", "27")
    assert "step 27: epoch 1, step 2, on 4 ranks; position 80; line 2\n" == said
    data = json.loads(run(capsys, "show", "run.ledger", "--step", "2.7e1", "--json"))
    assert ledger.at(27).to_dict() == data
    batch = ledger.batch(27, rank=3).tolist()
    words = ["show", "run.ledger", "--step", "27", "--rank", "3"]
    assert f"{' '.join(map(str, batch))}\n" == run(capsys, *words)
    assert batch == json.loads(run(capsys, *words, "--json"))["indices"]


def test_reads(ledger: ip.Ledger, capsys: pytest.CaptureFixture[str]) -> None:
    """Which steps read a sample, or that none did."""
    words = ["locate", "run.ledger", "--index", "123"]
    assert "step 18, rank 0, epoch 0\nstep 37, rank 1, epoch 1\n" == run(capsys, *words)
    data = json.loads(run(capsys, *words, "--json"))
    assert {"sample": 123, "reads": [r._asdict() for r in ledger.reads(123)]} == data
    ledger.rewind(1)
    assert "no step read sample 123\n" == run(capsys, *words)


def test_verify(ledger: ip.Ledger, capsys: pytest.CaptureFixture[str]) -> None:
    """A ledger that holds together exits with 0; a lost line or another's hash with 1."""
    words = ["verify", "run.ledger"]
    assert f"{ledger.verify()}\n" == run(capsys, *words)
    run(capsys, *words, "--checkpoint", ledger.hash)
    text = Path("run.ledger").read_bytes()
    Path("run.ledger").write_bytes(b"".join(text.splitlines(keepends=True)[:-1]))
    run(capsys, *words)  # without the hash nobody can tell
    assert 1 == main([*words, "--checkpoint", ledger.hash, "--json"])
    assert not json.loads(capsys.readouterr().out)["ok"]
    Path("run.ledger").write_bytes(text.replace(b'"steps":30', b'"steps":31', 1))
    assert "run.ledger, line 2: its checksum must be " in fails(capsys, 1, *words)


def test_replay(ledger: ip.Ledger, capsys: pytest.CaptureFixture[str]) -> None:
    """A step is read again by one rank, whose plan another machine can load."""
    words = ["ledger", "run.ledger", "replay", "--step", "27"]
    batch = [sample for rank in range(4) for sample in ledger.batch(27, rank).tolist()]
    assert f"{ledger.at(27)}\n{' '.join(map(str, batch))}\n" == run(capsys, *words)
    data = json.loads(run(capsys, *words, "--json"))
    plan = ip.Plan.from_json(json.dumps(data["plan"]))
    assert ledger.replay(27) == plan
    assert batch == plan.batch(1, step=2, rank=0).tolist() == data["batch"]["indices"]


def test_replay_a_plan_with_columns(capsys: pytest.CaptureFixture[str]) -> None:
    """The columns of its order are found in the folder beside the ledger."""
    plan = ip.Plan(ip.Weighted([1, 2, 3] * 10), world_size=2, batch_size=3)
    weighted = ip.Ledger("weighted.ledger")
    weighted.record(plan, plan.cursor(1, step=0))
    said = run(capsys, "ledger", "weighted.ledger", "replay", "--step", "2", "--json")
    Path("plan.json").write_text(json.dumps(json.loads(said)["plan"]))
    where = ["--epoch", "0", "--step", "2", "--rank", "0"]
    said = run(capsys, "show", "plan.json", "--column", "columns", *where)
    batch = [sample for rank in range(2) for sample in weighted.batch(2, rank).tolist()]
    assert f"{' '.join(map(str, batch))}\n" == said
