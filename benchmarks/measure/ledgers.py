"""Measure ledgers: bytes of a long run, and how long its questions take.

    python -m benchmarks.measure.ledgers [--lines 100000] [--epochs 15]

The first table is of a run of 1,000 resumes over 24 plans with 100 returns to a checkpoint; the
second of a ledger of as many lines as are asked for, which is opened, asked and verified. The third
asks two sizes a factor of four apart, of lines of many epochs, and of many returns. From 5,000 to
20,000 epochs, times were 3.2 to 4.7 times as long, and from 250 to 1,000 returns 1.4 to 2.8 times;
of 4,000 and 16,000 epochs, 4.1 to 6.5 times. Some epochs are kept (4,096), so that asking again
costs less: runs of fewer epochs than that compare what is kept with what is not.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import indexplan as ip
from indexplan.ledger.lines import FIRST, RunLine, sha256_of, text_of
from indexplan.ledger.tail import Tail


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=100_000)
    parser.add_argument("--epochs", type=int, default=15)
    given = parser.parse_args()
    with TemporaryDirectory() as folder:
        of_a_life(Path(folder), given.epochs)
        of_many_lines(Path(folder), given.lines)
        of_two_sizes(Path(folder))


def of_a_life(folder: Path, epochs: int) -> None:
    """Measure a run that stopped and resumed 1,000 times, and returned 100 times."""
    drawn = random.Random(1)  # noqa: S311 (not for secrets)
    order = ip.Shuffle(10**9)
    plans = [
        ip.Plan(order, world_size=8 * world, global_batch_size=size)
        for world in (8, 16, 24, 32, 48, 64)
        for size in (2**21, 2**22, 2**21 + 64, 2**22 + 64)
    ]
    ledger = ip.Ledger(folder / "life.ledger")
    plan, cursor, saved = plans[0], plans[0].start, [(ledger.hash, plans[0].start)]
    steps = sum(plan.account(epoch).num_steps for epoch in range(epochs))
    each = max(1, steps // 1000)
    for number in range(1000):
        plan = drawn.choice(plans).resume(cursor)
        cursor = _after(plan, cursor, drawn.randrange(1, 2 * each))
        ledger.record(plan, cursor)
        saved.append((ledger.hash, cursor))
        if number % 10 == 9:
            digest, cursor = saved[-drawn.randrange(2, 6)]
            ledger.rewind(digest)
    size = ledger.path.stat().st_size
    _say("1,000 resumes over 24 plans, 100 returns", f"{size / 1000:.0f} kB")
    _say("steps that count, epochs begun", f"{ledger.step}, {ledger.cursor.epoch + 1}")
    _say("open", _time(lambda: ip.Ledger(ledger.path), 5))
    ledger = ip.Ledger(ledger.path)
    asked = [drawn.randrange(ledger.step) for _ in range(200)]
    _say("at, the first", _time(lambda: ledger.at(asked[0]), 1))
    _say("at", _time(lambda: [ledger.at(step) for step in asked], 3, len(asked)))
    samples = [drawn.randrange(10**9) for _ in range(20)]
    _say("reads, the first", _time(lambda: ledger.reads(samples[0]), 1))
    _say("reads", _time(lambda: [ledger.reads(sample) for sample in samples], 3, len(samples)))
    _say("verify", _time(ledger.verify, 3))


def _after(plan: ip.Plan, cursor: ip.Cursor, steps: int) -> ip.Cursor:
    """Return where a run stands some steps later."""
    epoch, left = cursor.epoch, plan.steps(cursor.epoch)
    while steps > len(left):
        steps -= len(left)
        epoch, left = epoch + 1, plan.steps(epoch + 1)
    return plan.cursor(epoch, step=left.start + steps)


def of_many_lines(folder: Path, num: int) -> None:
    """Measure a ledger of very many lines, of a step each."""
    plan = ip.Plan(ip.Shuffle(10**9), world_size=64, batch_size=2**10)
    text, path = [], folder / "long.ledger"
    tail, digest = Tail(), FIRST
    lines, tail = tail.record(plan, plan.cursor(0, step=1), {})
    place, epoch, step = tail.place, 0, 1
    last = plan.steps(0).stop
    for number in range(1, num - 1):
        epoch, step = (epoch, step + 1) if step + 1 < last else (epoch + 1, 0)
        where = plan.cursor(epoch, step=step)
        stop = type(place)(where.epoch, where.sub_epoch, where.step, where.position)
        lines.append(RunLine(1, number, 1, place, stop, {}))
        place = stop
    for line in lines:
        text.append(text_of(line, digest))
        digest = sha256_of(text[-1])
    path.write_bytes(b"".join(each + b"\n" for each in text))
    _say(f"{num:,} lines", f"{path.stat().st_size / 1e6:.1f} MB")
    _say("open", _time(lambda: ip.Ledger(path), 1))
    ledger = ip.Ledger(path)
    _say("verify", _time(ledger.verify, 1))
    _say("reads, the first", _time(lambda: ledger.reads(7), 1))
    _say("reads", _time(lambda: ledger.reads(8), 3))
    _say("at", _time(lambda: ledger.at(num // 2), 5))
    drawn = random.Random(2)  # noqa: S311 (not for secrets)
    for asked in (drawn.randrange(ledger.step) for _ in range(100)):  # what was timed is right
        epoch, step = divmod(asked, last)
        batch = plan.batch(epoch, step=step, rank=asked % 64)
        if batch.tolist() != ledger.batch(asked, asked % 64).tolist():
            sys.exit(f"step {asked} is another")
        if (asked, asked % 64) not in [read[:2] for read in ledger.reads(int(batch[5]))]:
            sys.exit(f"a read of sample {batch[5]} is not found")


def of_two_sizes(folder: Path) -> None:
    """Measure how times grow with the epochs of a line, and with the returns of a run."""
    asked: dict[str, Callable[[ip.Ledger], Any]] = {
        "reads": lambda ledger: ledger.reads(7),
        "seen": lambda ledger: ledger.seen(range(50)),
        "account": lambda ledger: ledger.account(),
        "verify": lambda ledger: ledger.verify(),
    }
    for remainder in ("spread", "drop", "pad", "carry"):
        plan = ip.Plan(ip.Shuffle(1003), world_size=2, batch_size=5, remainder=remainder)
        for name, size in (("epochs", 5000), ("returns", 250)):
            paths = []
            for num in (size, 4 * size):
                paths.append(folder / f"{remainder}-{name}-{num}.ledger")
                ledger = ip.Ledger(paths[-1])
                ledger.record(plan, plan.cursor(num if name == "epochs" else 1000, step=3))
                for number in range(num * (name == "returns")):
                    step = ledger.step - 30 - number % 7
                    ledger.begin(plan.resume(ledger.at(step).cursor))
            for what, ask in asked.items():
                times = [_time(lambda: ask(ip.Ledger(path)), 3) for path in paths]  # noqa: B023
                _say(f"{what}, {remainder}, {size} and {4 * size} {name}", ", ".join(times))


def _time(call: Callable[[], Any], times: int, calls: int = 1) -> str:
    """Return the median time of a call, in CPU seconds of this process."""
    found = []
    for _ in range(times):
        start = time.process_time()
        call()
        found.append((time.process_time() - start) / calls)
    return f"{1000 * median(found):.3f} ms of CPU"


def _say(what: str, figure: str) -> None:
    sys.stdout.write(f"{what:<42} {figure}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
