"""What happens to a ledger: its bytes are changed, and a process that keeps it is killed.

Each change is seen. Whenever a process dies, the ledger's whole lines fit the checkpoint that was
saved last: its line is there, and what comes after it is void for the process that goes on from it.
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


def a_ledger(folder: Path) -> ip.Ledger:
    """Write a ledger with every kind of line; its last one is a return to a checkpoint."""
    plan = ip.Plan(ip.Shuffle(200), world_size=2, batch_size=5)
    ledger = ip.Ledger(folder / "run.ledger")
    ledger.record(plan, plan.cursor(0, step=5), {"global_step": 5})
    checkpoint = ledger.hash
    ledger.record(plan, plan.cursor(0, step=9))
    ledger.rewind(checkpoint)
    wider = plan.replace(world_size=4, order=ip.Without(plan.order, [3, 7], since=ledger.cursor))
    wider = wider.resume(plan.cursor(0, step=5))
    ledger.record(wider, wider.cursor(1, step=2), {"global_step": 11})
    again = plan.replace(order=wider.order).resume(ledger.cursor)
    ledger.record(again, again.cursor(2, step=3))
    ledger.rewind(ledger.step - 2)
    return ledger


def mutated(drawn: random.Random, data: bytes) -> bytes:
    """Return the bytes of a file with a change, that of a bit, a byte or a line."""
    while True:
        changed = _mutated(drawn, data)
        if changed != data:
            return changed


def _mutated(drawn: random.Random, data: bytes) -> bytes:
    at = drawn.randrange(len(data))
    lines = data.splitlines(keepends=True)
    one, other = drawn.randrange(len(lines)), drawn.randrange(len(lines))
    match drawn.randrange(8):
        case 0 | 1 | 2:
            return data[:at] + bytes([data[at] ^ 1 << drawn.randrange(8)]) + data[at + 1 :]
        case 3:
            return data[:at] + bytes([drawn.randrange(256)]) + data[at + drawn.randrange(3) :]
        case 4:
            lines[one], lines[other] = lines[other], lines[one]
        case 5:
            del lines[one]
        case 6:
            lines.insert(one, lines[other])
        case _:  # a digit, so that the line is still JSON
            digits = [place for place, byte in enumerate(data) if 48 <= byte < 58]
            at = drawn.choice(digits)
            return data[:at] + str(drawn.randrange(10)).encode() + data[at + 1 :]
    return b"".join(lines)


def is_seen(path: Path, whole: bytes, checkpoint: str) -> bool:
    """Return whether a ledger is found to be changed, when it is opened or verified.

    If all that happened to it is that its last lines are gone, the hash of a checkpoint tells.
    """
    lines = path.read_bytes().rpartition(b"\n")[0]
    is_cut = len(lines) + 1 < len(whole) and whole.startswith(lines)
    try:
        return not ip.Ledger(path).verify(checkpoint if is_cut else None).ok
    except ip.PlanFileError:
        return True


def changes(story: Story, given: Given) -> None:
    """Change a ledger, again and again; each change has to be seen."""
    drawn = random.Random(story.number)  # noqa: S311 (draws a test)
    with TemporaryDirectory() as folder:
        ledger, changed = a_ledger(Path(folder)), Path(folder, "changed.ledger")
        whole, checkpoint = ledger.path.read_bytes(), ledger.hash
        for _ in range(given.steps or 100):
            changed.write_bytes(mutated(drawn, whole))
            assert is_seen(changed, whole, checkpoint), changed.read_bytes()
            story.count("", "changes")
        changed.write_bytes(whole)
        assert not is_seen(changed, whole, checkpoint)


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


def check(folder: Path) -> None:
    """Check that the ledger fits the checkpoint."""
    saved, ledger = load(folder), ip.Ledger(folder / "run.ledger")
    report = ledger.verify(saved and saved["ledger"])
    assert report.ok, str(report)
    if saved is not None:
        step = saved["step"]
        assert step <= ledger.step
        cursor = ledger.at(step).cursor if step < ledger.step else ledger.cursor
        assert cursor.position == ip.Cursor.from_dict(saved["cursor"]).position


def kills(story: Story, given: Given) -> None:
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
