"""A plan, a ledger or a folder in another's place: what it is, and which command takes it."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

import indexplan as ip
from indexplan.cli.main import main

PLAN = ip.Plan(ip.Shuffle(100, seed=1), world_size=2, batch_size=4)
OF_PLANS = [  # verbs, and what else they need
    "show",
    "locate --index=3",
    "explain --index=3",
    "plot -o new.png",
    "verify",
    "export out",
    "traffic --shards=sizes.npy",
    "finish",
    "diff other.json",
]
OF_LEDGERS = ["ledger", "replay --step=0", "plot -o new.png --kind=life"]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand in a folder with plans, ledgers, and other things."""
    monkeypatch.chdir(tmp_path)
    ip.save(PLAN, "run.plan")
    for name, seed in (("plan.txt", 1), ("other.json", 2)):
        Path(name).write_text(PLAN.replace(order=ip.Shuffle(100, seed=seed)).to_json())
    for name, step in (("run.ledger", 5), ("longer.ledger", 7)):
        ip.Ledger(name).record(PLAN, PLAN.cursor(0, step=step))
    Path("photos").mkdir()
    Path("photos/a.jpg").write_bytes(b"\xff\xd8")
    np.save("sizes.npy", [60, 40])


def command(verb: str, path: str) -> list[str]:
    """Return a command with its path, which follows the verb."""
    name, *others = verb.split()
    return [name, path, *others]


@pytest.mark.parametrize(
    ("verbs", "path", "kind"),
    [
        (OF_PLANS[:-1], "run.ledger", "the ledger of a run"),
        (OF_PLANS, "photos", "a folder without manifest.json"),
        (OF_PLANS, "plan.txt", "a plan in JSON"),
        (OF_PLANS, "nowhere", "nothing there"),
        (OF_LEDGERS, "run.plan", "a plan directory"),
        (OF_LEDGERS, "plan.txt", "a plan in JSON"),
        (OF_LEDGERS, "photos", "a folder"),
        (OF_LEDGERS, "sizes.npy", "a file of something else"),
        (OF_LEDGERS, "nowhere", "no file"),
    ],
)
def test_every_verb_says_what_it_was_given(
    verbs: list[str], path: str, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """And a whole command that it names instead does what it says."""
    named = set()
    for verb in verbs:
        assert 1 == main(command(verb, path)), verb
        said = capsys.readouterr().err
        assert f"got {kind}; " in said
        named |= set(re.findall(r"`indexplan (\w+ [^`]+)`", said))
    for each in named:
        assert 0 == main(shlex.split(each)), each


def test_ledgers_are_compared(capsys: pytest.CaptureFixture[str]) -> None:
    """As the question diff of a ledger compares them; with a plan there is nothing to compare."""
    assert 0 == main(["ledger", "run.ledger", "diff", "longer.ledger"])
    expected = capsys.readouterr().out
    assert 0 == main(["diff", "run.ledger", "longer.ledger", "--exit-code"])
    assert expected == capsys.readouterr().out
    assert 2 == main(["diff", "run.ledger", "other.json"])
    rule = "A and B must be two plans or two ledgers; got 'a ledger and a plan'; write a run's"
    assert rule in capsys.readouterr().err


def test_exit_codes_of_diff(capsys: pytest.CaptureFixture[str]) -> None:
    """As git's: a difference is no failure, unless the exit code was asked to tell."""
    assert 0 == main(["diff", "run.plan", "other.json"])
    assert "different since epoch 0, sub-epoch 0, step 0" in capsys.readouterr().out
    assert 1 == main(["diff", "run.plan", "other.json", "--exit-code"])
    assert 0 == main(["diff", "run.plan", "run.plan", "--exit-code"])
    assert 2 == main(["diff", "run.plan", "nowhere", "--exit-code"])
    assert 1 == main(["diff", "run.plan", "nowhere"])


def test_each_side_has_its_ranks(capsys: pytest.CaptureFixture[str]) -> None:
    """One number is for both, two are one for each."""
    for text, (one, other) in (("4", (4, 4)), ("2,5", (2, 5))):
        assert 0 == main(["diff", "run.plan", "run.plan", "--json", "--world-size", text])
        found = ip.diff(PLAN.replace(world_size=one), PLAN.replace(world_size=other))
        assert json.loads(capsys.readouterr().out)["words"] == list(found.words)


@pytest.mark.parametrize("verb", ["show --step=3", "show --step=3 --rank=1", "locate --index=7"])
def test_an_epoch_need_not_be_named(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Without one it is the first: of the run, of what is stored, or after a resume."""
    ip.save(PLAN, "later.plan", epochs=[2, 3])
    Path("resumed.json").write_text(PLAN.resume(PLAN.cursor(1, step=2)).to_json())
    for path, epoch in (("other.json", 0), ("later.plan", 2), ("resumed.json", 1)):
        assert 0 == main([*command(verb, path), f"--epoch={epoch}"])
        expected = capsys.readouterr().out
        assert 0 == main(command(verb, path))
        assert expected == capsys.readouterr().out
