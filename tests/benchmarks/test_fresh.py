"""The runner of fresh processes returns results, or says why there are none."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

import pytest

from benchmarks.measure.fresh import JobError, run_fresh


def told(*arguments: Any) -> dict[str, Any]:
    """Tell what a job finds, and print besides, as loaders do."""
    sys.stdout.write("no JSON\n")
    found = ("torch" in sys.modules, os.environ.get("OMP_NUM_THREADS"), __file__)
    return {"arguments": arguments, "found": found, "process": os.getpid()}


def fails() -> None:
    """Fail, with words."""
    raise ValueError("a fault that was planted")


def is_ended() -> None:
    """End as a time limit ends a job."""
    signal.raise_signal(signal.SIGALRM)


def hangs() -> None:
    """Take longer than anybody waits."""
    signal.pause()


def test_a_job_has_a_process_of_its_own() -> None:
    """It gets the arguments, the environment and this checkout, and what it prints is no result."""
    result = run_fresh(f"{__name__}.told", "a", [1, None], OMP_NUM_THREADS="1")
    assert ["a", [1, None]] == result["arguments"]
    assert [False, "1", __file__] == result["found"]
    assert os.getpid() != result["process"]


@pytest.mark.parametrize(
    ("job", "code", "words"),
    [
        (fails, 1, "ValueError: a fault that was planted"),
        (is_ended, -signal.SIGALRM, ""),
        (hangs, None, ""),
    ],
)
def test_a_job_that_fails(job: Any, code: int | None, words: str) -> None:
    """The error has the process's exit code, and what it said."""
    with pytest.raises(JobError) as caught:
        run_fresh(f"{__name__}.{job.__name__}", seconds=None if code else 1)
    assert code == caught.value.code
    assert words in str(caught.value)
    assert str(caught.value).startswith(f"{__name__}.{job.__name__}(), exit code {code}:\n")
