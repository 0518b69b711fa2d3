"""Kill a process that keeps a ledger, at any instant, and look at what it leaves.

Whenever it dies, the ledger's whole lines fit the checkpoint that was saved last: its line is
there, and what comes after it is void for the process that goes on from it.
"""

from __future__ import annotations

import json
import os
import random
import signal
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import indexplan as ip
from tests.histories.stories import Given, Story

PLAN = ip.Plan(ip.Shuffle(2000, seed=1), world_size=2, batch_size=5, sub_epochs=3)
LONGEST = 0.02  # seconds that a process lives after it has begun; a save takes some 1 ms


def write(folder: Path, ranks: int, begun: int) -> None:
    """Go on from the checkpoint, and save after every few steps, for ever; tell when it begins."""
    drawn = random.Random(ranks)  # noqa: S311 (draws a test)
    plan, ledger = PLAN.replace(world_size=ranks), ip.Ledger(folder / "run.ledger")
    saved = load(folder)
    if saved is not None:
        plan = plan.resume(ip.Cursor.from_dict(saved["cursor"]))
    os.write(begun, b"!")
    ledger.begin(plan, saved and saved["ledger"])
    epoch, part = plan.start.epoch, plan.start.sub_epoch
    while True:
        for step in plan.steps(epoch, part):
            if drawn.random() < 0.5:
                save(folder, ledger, plan, plan.cursor(epoch, part, step=step + 1))
        save(folder, ledger, plan, plan.cursor(epoch, part, step=plan.steps(epoch, part).stop))
        epoch, part = (epoch, part + 1) if part + 1 < plan.sub_epochs else (epoch + 1, 0)


def save(folder: Path, ledger: ip.Ledger, plan: ip.Plan, cursor: ip.Cursor) -> None:
    """Save a checkpoint, as a trainer does: the ledger's line is on disk before it."""
    ledger.record(plan, cursor)
    state = {"cursor": cursor.to_dict(), "ledger": ledger.hash, "step": ledger.step}
    new = folder / "checkpoint.new"
    new.write_text(json.dumps(state))
    new.replace(folder / "checkpoint.json")


def load(folder: Path) -> dict[str, Any] | None:
    """Return the checkpoint that was saved last."""
    path = folder / "checkpoint.json"
    return json.loads(path.read_text()) if path.exists() else None


def kill(folder: Path, drawn: random.Random) -> None:
    """Start a process that goes on with the run, and kill it."""
    hear, tell = os.pipe()
    child = os.fork()
    if not child:
        try:
            write(folder, drawn.randrange(1, 5), tell)
        finally:
            os._exit(1)
    os.close(tell)
    assert os.read(hear, 1) == b"!"
    os.close(hear)
    time.sleep(drawn.random() * LONGEST)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL  # it has not ended by itself, with an error


def check(folder: Path) -> int:
    """Check that the ledger fits the checkpoint; return how many steps count."""
    saved, ledger = load(folder), ip.Ledger(folder / "run.ledger")
    report = ledger.verify(saved and saved["ledger"])
    assert report.ok, str(report)
    if saved is None:
        return ledger.step
    assert saved["step"] <= ledger.step
    place = ip.Cursor.from_dict(saved["cursor"])
    if saved["step"] < ledger.step:
        assert ledger.at(saved["step"]).cursor.position == place.position
    else:
        assert ledger.cursor.position == place.position
    return ledger.step


def live(story: Story, given: Given) -> None:
    """Kill the processes of a run, one after another."""
    drawn = random.Random(story.number)  # noqa: S311 (draws a test)
    PLAN.batch(0, 0, step=0, rank=0)  # compiled before the first fork
    with TemporaryDirectory() as folder:
        for _ in range(given.steps or 20):
            kill(Path(folder), drawn)
            check(Path(folder))
            story.count("", "kills")
        account = ip.Ledger(Path(folder, "run.ledger")).account()
    story.count("", "steps that count", account.num_steps)
    story.count("", "steps that are void", account.num_void_steps)
