"""A ledger of some returns and plans, and changes of its bytes."""

from __future__ import annotations

import random
from pathlib import Path
from tempfile import TemporaryDirectory

import indexplan as ip
from tests.histories.stories import Given, Story


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


def live(story: Story, given: Given) -> None:
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
