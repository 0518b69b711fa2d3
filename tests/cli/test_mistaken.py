"""A plan, a ledger or a folder in another's place: what it is, and which command takes it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import indexplan as ip
from tests.support.shell import Shell

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
def _things(here: Path) -> None:
    """Stand in a folder with plans, ledgers, and other things."""
    ip.save(PLAN, here / "run.plan")
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
def test_what_is_neither(verb: str, path: str, shell: Shell) -> None:
    """Is refused in one line that names it, by every verb that does not take it."""
    if path != "run.plan" or verb not in OF_PLANS:
        assert f"{path} must be " in shell.fails(1, *command(verb, path))


def test_ledgers(shell: Shell) -> None:
    """A run's life is drawn, which no kind has to say; options of plans are refused."""
    said = shell.run("plot", "run.ledger", "-o", "life.png")
    assert "life.png: the whole life of a run, from its ledger\n" == said
    assert Path("life.png").stat().st_size > 10**4
    for option in ("--epoch=0", "--world-size=2", "--rank=1", "--column=a.npy"):
        said = shell.fails(2, "show", "run.ledger", option)
        assert said.startswith(f"{option.partition('=')[0]} needs a plan")


def test_diff(shell: Shell) -> None:
    """Ledgers are compared with each other, and with a plan, as the function compares them.

    As git's: a difference is no failure, unless the exit code was asked to tell. One number of
    ranks is for both sides, two are one for each.
    """
    run, longer = ip.Ledger("run.ledger"), ip.Ledger("longer.ledger")
    other = PLAN.replace(order=ip.Shuffle(100, seed=2))
    for words, code, found in (
        ("run.ledger longer.ledger", 0, ip.diff(run, longer)),
        ("run.ledger other.json --world-size=2", 1, ip.diff(run, other)),
        ("run.plan other.json", 1, ip.diff(PLAN, other)),
        ("other.json run.plan --epochs=2", 1, ip.diff(other, PLAN, range(2))),
        ("run.plan run.plan", 0, ip.diff(PLAN, PLAN)),
        ("run.plan run.plan --world-size=4", 0, ip.diff(*[PLAN.replace(world_size=4)] * 2)),
        ("run.plan run.plan --world-size=2,5", 1, ip.diff(PLAN, PLAN.replace(world_size=5))),
    ):
        assert f"{found}\n" == shell.run("diff", *words.split())
        assert f"{found}\n" == shell.run("diff", *words.split(), "--exit-code", code=code)
    for words, code in ((["--exit-code"], 2), ([], 1)):
        shell.fails(code, "diff", "run.plan", "nowhere", *words)
    said = shell.fails(2, "diff", "run.ledger", "other.json", "--epochs", "1")
    assert "--epochs needs two plans; got a ledger; leave --epochs out" == said


@pytest.mark.parametrize("verb", ["show --step=3", "show --step=3 --rank=1", "locate --index=7"])
def test_an_epoch_need_not_be_named(verb: str, shell: Shell) -> None:
    """Without one it is the first: of the run, of what is stored, or after a resume."""
    ip.save(PLAN, "later.plan", epochs=[2, 3])
    Path("resumed.json").write_text(PLAN.resume(PLAN.cursor(1, step=2)).to_json())
    for path, epoch in (("other.json", 0), ("later.plan", 2), ("resumed.json", 1)):
        words = command(verb, path)
        assert shell.run(*words) == shell.run(*words, f"--epoch={epoch}")
