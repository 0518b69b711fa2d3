"""Ledgers that were changed, cut or written by two: each change is seen, and nothing is lost."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import indexplan as ip
from tests.histories.ledgers import a_ledger, changes, kills
from tests.histories.stories import Given, Story

NUM = 300


def test_each_change_of_a_byte_is_seen() -> None:
    """Bytes changed, lines dropped, doubled or swapped: opening or `verify` finds each."""
    changes(Story(3), Given(steps=NUM))


def a_life(path: Path) -> Iterator[Callable[[], object]]:
    """Yield all that the processes of a run do with its ledger, each of which one line or more."""
    plan = ip.Plan(ip.Shuffle(60), world_size=2, batch_size=5)
    checkpoint: list[str] = []
    yield lambda: ip.Ledger(path).record(plan, plan.cursor(0, step=3), {"global_step": 3})
    checkpoint.append(ip.Ledger(path).hash)
    yield lambda: ip.Ledger(path).record(plan, plan.cursor(1, step=1))
    smaller = plan.replace(world_size=1)
    yield lambda: ip.Ledger(path).begin(smaller.resume(plan.cursor(0, step=2)))
    yield lambda: ip.Ledger(path).record(smaller, smaller.cursor(1, step=2))
    yield lambda: ip.Ledger(path).begin(plan.resume(plan.cursor(0, step=3)), checkpoint[0])
    left = plan.replace(order=ip.Without(plan.order, [3, 7], since=ip.Ledger(path).cursor))
    yield lambda: ip.Ledger(path).record(left, left.cursor(1, step=2))
    yield lambda: ip.Ledger(path).record(left, left.cursor(1, step=4))
    yield lambda: ip.Ledger(path).rewind(1)


def test_a_writer_may_be_killed_at_any_byte(tmp_path: Path) -> None:
    """Whoever does the same again leaves the very bytes that the first one would have left.

    It is killed beside each end of a line, and at one of a dozen bytes in between.
    """
    path, before = tmp_path / "run.ledger", b""
    for do in a_life(path):
        do()
        whole = path.read_bytes()
        assert whole.startswith(before)
        ends = [at for at, byte in enumerate(whole) if byte == ord("\n")]
        beside = {end + off for end in ends for off in (-1, 0, 1, 2)}
        for size in range(len(before), len(whole)):
            if size in beside or size % 12 == 0:
                path.write_bytes(whole[:size])
                assert whole[:size].count(b"\n") == ip.Ledger(path).tail.num_lines
                do()
                assert whole == path.read_bytes(), size
        before = whole
    kinds = [json.loads(line)["kind"] for line in before.splitlines()]
    assert ["plan", "run", "run", "discard", "plan", "run", "discard", "run"] == kinds[:8]
    assert ["plan", "run", "run", "discard"] == kinds[8:]
    assert ip.Ledger(path).verify().ok


@pytest.mark.parametrize("call", ["write_all", "os.fsync", "sync_folder"])
def test_a_line_is_written_wholly_or_not_at_all(
    call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If Ctrl-C comes while the first lines are written, the same ledger can write them again."""
    plan = ip.Plan(ip.Shuffle(200), world_size=2, batch_size=5)
    ledger = ip.Ledger(tmp_path / "run.ledger")
    with monkeypatch.context() as patched:
        patched.setattr(f"indexplan.ledger.file.{call}", interrupted)
        with pytest.raises(KeyboardInterrupt):
            ledger.record(plan, plan.cursor(0, step=5))
    assert b"" == ledger.path.read_bytes()
    ledger.record(plan, plan.cursor(0, step=5))
    assert ip.Ledger(ledger.path).verify(ledger.hash).ok


def interrupted(*_: Any) -> None:
    """Do nothing, as Ctrl-C comes first."""
    raise KeyboardInterrupt


def test_a_file_that_was_replaced(tmp_path: Path) -> None:
    """A writer whose file is gone, or shorter, does not write another one in its place."""
    ledger = a_ledger(tmp_path)
    plan, data = ledger.plan.resume(ledger.cursor), ledger.path.read_bytes()
    ledger.path.write_bytes(data[:200])
    with pytest.raises(ip.PlanFileError, match="must have one writer at a time"):
        ledger.record(plan, plan.cursor(3, step=2))
    assert data[:200] == ledger.path.read_bytes()


@pytest.mark.slow
def test_a_killed_writer() -> None:
    """Whenever the process that writes is killed, the ledger fits the last checkpoint."""
    kills(story := Story(1), Given())
    assert story.counts["", "steps that count"]


def append(ledger: ip.Ledger, begin: int, told: int) -> None:
    """Add a line for each of 50 steps, from when a pipe is closed on; tell how many, and why."""
    os.read(begin, 1)
    plan, error = ip.Plan(ip.Shuffle(200), world_size=1, batch_size=2), ""
    for step in range(1, 51):
        try:
            ledger.record(plan, plan.cursor(0, step=step))
        except ip.PlanFileError as raised:
            error, step = str(raised), step - 1  # noqa: PLW2901 (which was not written)
            break
    os.write(told, f"{step} {error}".encode())


@pytest.mark.slow
def test_two_processes_that_append_at_once(tmp_path: Path) -> None:
    """One of them has the file, the other is told so, and has written nothing."""
    for number in range(8):
        path = tmp_path / f"{number}.ledger"
        ledger = ip.Ledger(path)  # read before either of them writes
        begin, start = os.pipe()
        pipes, children = [os.pipe() for _ in range(2)], list[int]()
        for _, told in pipes:
            child = os.fork()
            if not child:
                try:
                    os.close(start)
                    append(ledger, begin, told)
                finally:
                    os._exit(0)
            children.append(child)
        for each in (begin, start, *(told for _, told in pipes)):
            os.close(each)
        for child in children:
            os.waitpid(child, 0)
        counts = []
        for hear, _ in pipes:
            count, _, error = os.read(hear, 10_000).decode().partition(" ")
            os.close(hear)
            counts.append(int(count))
            assert (counts[-1] == 50) == (not error)
            assert not error or error.startswith(f"{path} must have one writer at a time; got ")
        ledger = ip.Ledger(path)
        assert sorted(counts) == [0, ledger.step]
        assert ledger.step > 0
        assert ledger.verify().ok
