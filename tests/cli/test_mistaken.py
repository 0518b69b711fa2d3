"""A plan, a ledger or a folder in another's place: what it is, and which command takes it."""

from __future__ import annotations

import json
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
    "diff other.json",
]
OF_LEDGERS = ["ledger account", "ledger replay --step=0", "plot -o new.png --kind=life"]


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


@pytest.mark.parametrize("verb", [*OF_PLANS, *OF_LEDGERS])
@pytest.mark.parametrize("path", ["run.plan", "plan.txt", "photos", "sizes.npy", "nowhere"])
def test_what_is_neither(verb: str, path: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Is refused in one line that names it, by every verb that does not take it."""
    if path == "run.plan" and verb in OF_PLANS:
        return
    assert 1 == main(command(verb, path)), verb
    assert f"{path} must be " in capsys.readouterr().err


def test_draw_a_ledger(capsys: pytest.CaptureFixture[str]) -> None:
    """Its life is drawn, which no kind has to say."""
    assert 0 == main(["plot", "run.ledger", "-o", "life.png"])
    assert "life.png: the whole life of a run, from its ledger\n" == capsys.readouterr().out
    assert Path("life.png").stat().st_size > 10**4


def test_show_a_ledger(capsys: pytest.CaptureFixture[str]) -> None:
    """What a rank read in a step is shown too."""
    assert 0 == main(["show", "run.ledger", "--step=3", "--rank=1"])
    batch = " ".join(map(str, PLAN.batch(0, step=3, rank=1).tolist()))
    assert f"{batch}\n" == capsys.readouterr().out
    for option in ("--epoch=0", "--world-size=2", "--rank=1", "--column=a.npy"):
        assert 2 == main(["show", "run.ledger", option])
        assert f"indexplan: {option.partition('=')[0]} needs a plan" in capsys.readouterr().err


def test_ledgers_are_compared(capsys: pytest.CaptureFixture[str]) -> None:
    """With each other, and with a plan, as the function compares them."""
    assert 0 == main(["diff", "run.ledger", "longer.ledger", "--exit-code"])
    found = ip.diff(ip.Ledger("run.ledger"), ip.Ledger("longer.ledger"))
    assert f"{found}\n" == capsys.readouterr().out
    assert 1 == main(["diff", "run.ledger", "other.json", "--exit-code", "--world-size", "2"])
    other = ip.Plan.from_json(Path("other.json").read_text()).replace(world_size=2)
    assert f"{ip.diff(ip.Ledger('run.ledger'), other)}\n" == capsys.readouterr().out
    assert 2 == main(["diff", "run.ledger", "other.json", "--epochs", "1"])
    assert "--epochs needs two plans; got a ledger; leave --epochs out" in capsys.readouterr().err


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
