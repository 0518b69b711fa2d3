"""Planning next to other libraries: each is asked until its memory or time ends."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.conftest import Effort, told
from benchmarks.contenders.planners import NAMES, OURS, Job, present
from benchmarks.measure import contest
from benchmarks.measure.contest import KEYS, Question

pytestmark = pytest.mark.benchmark(timer=told)
ANEW = {"torch DistributedSampler", "MosaicML Streaming planning", "NumPy permutation + slice"}


def early(question: Question, job: Job, name: str) -> bool:
    """Return whether a job is one of those that fit into ten minutes."""
    if question.key == "first_batch":
        return job.n in {10**6, 10**8} or (job.n, name) == (10**9, OURS)
    if question.key == "worlds":  # a rank's share, as of the question that has that name
        return job.world == 64
    if question.key == "resume":  # the others draw the epoch anew, as for their first batch
        return job.n == 10**8 and name not in ANEW
    return (question.key, job.n) == ("build", 10**6)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Ask every question for every size, the cheapest first, and every rival that is here."""
    quick, here = metafunc.config.getoption("--quick"), [rival.name for rival in present()]
    cases = [
        pytest.param(
            question, job, name, id=f"{question.key}, {contest.case_of(question.key, job)}, {name}",
            marks=[] if early(question, job, name) else [pytest.mark.nightly],
        )
        for question in KEYS.values()
        for job in question.jobs(quick=quick)
        for name in question.rivals
        if name in here
    ]  # fmt: skip
    metafunc.parametrize(("question", "job", "name"), cases)


@pytest.fixture(scope="module")
def stopped() -> dict[tuple[str, str], dict[str, Any]]:
    """Return who stopped at which question, at what, which is filled by the tests."""
    return {}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return where files of an epoch lie, for the next question of the same rival."""
    return tmp_path_factory.mktemp("files")


def test_planning(
    question: Question,
    job: Job,
    name: str,
    found: Callable[..., Any],
    effort: Effort,
    cache: str,
    files: Path,
    stopped: dict[tuple[str, str], dict[str, Any]],
) -> None:
    """Time a question to one rival; who stopped is not asked for more."""
    rival = NAMES[name]
    before = stopped.get((question.follows, name))
    if before and before["n"] <= job.n and not rival.bytes_per_index:
        stopped.setdefault((question.key, name), before)
    last = stopped.get((question.key, name))

    def ask() -> dict[str, Any]:
        if last:
            return {"stop": last["stop"], "since": last["since"]}
        return contest.measure_rival(question, rival, job, cache, str(files), quick=effort.quick)

    case = contest.case_of(question.key, job)
    answer = found(ask, question.key, case=case, who=name)
    if "stop" in answer and not last:
        place = f"world {case}" if question.key == "worlds" else case
        stopped[question.key, name] = {"n": job.n, "stop": answer["stop"], "since": place}
