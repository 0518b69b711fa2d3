"""`python -m tests.histories` can fail: it finds faults that are planted."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

import indexplan as ip
from indexplan.files.read import Stored
from tests.histories.plans import PER_CENT, live
from tests.histories.stories import Given, tell
from tests.support.fresh import ROOT, printed

MOST_LEGS = 3000
Patch = pytest.MonkeyPatch


def elastic_resume_loses_a_sample(patch: Patch) -> None:
    """A run that goes on under three ranks starts a unit late."""
    resume = ip.Plan.resume

    def late(self: ip.Plan, cursor: ip.Cursor) -> ip.Plan:
        found = resume(self, cursor)
        left = found.steps(cursor.epoch, cursor.sub_epoch).stop - cursor.step
        if self.world_size != 3 or left < 2 or not cursor.step:
            return found
        return resume(self, replace(cursor, position=cursor.position + 1))

    patch.setattr(ip.Plan, "resume", late)


def repeats_a_sample(order: type[ip.Order], patch: Patch) -> None:
    """What is read of an order of files, or of one that 32 bits don't count, has an entry twice."""
    fill = order.fill

    def twice(self: Any, epoch: int, starts: Any, stops: Any, out: Any) -> None:
        fill(self, epoch, starts, stops, out)
        if order is Stored or self.num_samples > 2**32:
            out[-1:] = out[:1]

    patch.setattr(order, "fill", twice)


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (elastic_resume_loses_a_sample, ""),
        (partial(repeats_a_sample, Stored), "plan directories"),
        (partial(repeats_a_sample, ip.Shuffle), "huge orders"),
    ],
)
def test_a_planted_fault_is_found(
    fault: Callable[[Patch], None], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each fault makes some history wrong, in words, before so many legs are over."""
    fault(monkeypatch)
    kinds = frozenset(each for each in PER_CENT if each == kind)
    legs = seed = 0
    while not (story := tell(partial(live, kinds=kinds), seed, Given())).wrong:
        legs += story.counts["", "legs"]
        seed += 1
        assert legs < MOST_LEGS
    assert not any("Traceback" in words for words in story.wrong), story.wrong
    assert any("again" in words or "dropped" in words for words in story.wrong), story.wrong


# The storm.


def test_the_count_imports_no_indexplan() -> None:
    """A fault in the library cannot be in the count, the store or the truth as well."""
    code = (
        "import sys, tests.histories.__main__, tests.histories.storm.driver\n"
        "print([name for name in sys.modules if name.startswith('indexplan')])"
    )
    assert "[]\n" == printed("-c", code)


def test_a_planted_fault_is_counted() -> None:
    """A rank that resumes a step early reads samples twice; the command says so, and fails."""
    options = "shards --histories 1 --first 6 --fault"
    command = [sys.executable, "-m", "tests.histories", *options.split()]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert 1 == done.returncode, done.stdout + done.stderr
    assert re.search(r"\d+ samples twice, such as epoch \d, sample \d+", done.stdout)
    assert "result: WRONG in 1 of them" in done.stdout
