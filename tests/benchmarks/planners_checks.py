"""The rivals' answers are right, each by its own rules, in every index; nothing is timed here."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import test_quality as quality
from benchmarks.contenders.planners import RIVALS, Job, Rival, present

pytestmark = pytest.mark.benchmarks

# Whole global batches, so that nobody drops, pads or spreads: 5 of 4 * 16.
EVEN = Job(5 * 4 * 16 * 12, world=4, rank=1, batch=16, limit=2**62)
SAMPLERS = [pytest.param(rival, id=rival.name) for rival in present()]


def flat(batches: Any) -> Any:
    """Return batches one after another."""
    return np.concatenate([np.asarray(batch) for batch in batches])


def ready(rival: Rival, job: Job, folder: Path) -> tuple[Any, Job]:
    """Return a rival's functions, with its file there, if it has one."""
    module, job = rival.load(), job._replace(folder=str(folder))
    module.prepare(job)
    return module, job


@pytest.mark.parametrize("rival", SAMPLERS)
def test_share_is_the_stream(rival: Rival, tmp_path: Path) -> None:
    """A rank's share holds what its stream of batches holds, in the same order."""
    module, job = ready(rival, EVEN, tmp_path)
    np.testing.assert_array_equal(flat(module.stream(job)), np.asarray(module.share(job)))


@pytest.mark.parametrize("rival", SAMPLERS)
def test_shares_cover_the_dataset(rival: Rival, tmp_path: Path) -> None:
    """All ranks' shares together hold every index once."""
    module, job = ready(rival, EVEN, tmp_path)
    shares = [np.asarray(module.share(job._replace(rank=rank))) for rank in range(job.world)]
    assert [job.n // job.world] * job.world == [len(share) for share in shares]
    np.testing.assert_array_equal(np.arange(job.n), np.sort(flat(shares)))


@pytest.mark.parametrize("n", [100_003, 65_537])
@pytest.mark.parametrize("name", [rival.name for rival in RIVALS if rival.ours])
def test_our_shares_cover_any_dataset(name: str, n: int, tmp_path: Path) -> None:
    """Ours do so at sizes that nothing divides."""
    rival = next(rival for rival in RIVALS if rival.name == name)
    module, job = ready(rival, EVEN._replace(n=n, world=7), tmp_path)
    shares = [module.share(job._replace(rank=rank)) for rank in range(job.world)]
    np.testing.assert_array_equal(np.arange(n), np.sort(flat(shares)))


@pytest.mark.parametrize("rival", SAMPLERS)
def test_resume_goes_on(rival: Rival, tmp_path: Path) -> None:
    """What is left after a resume equals the rest of the uninterrupted stream."""
    module, job = ready(rival, EVEN, tmp_path)
    step = job.steps() // 2
    state = module.saved(job, step)
    rest = flat(islice(module.stream(job), step, None))
    np.testing.assert_array_equal(rest, flat(module.resume(job, state)))


@pytest.mark.parametrize(
    "rival", [pytest.param(r, id=r.name) for r in present() if r.module == "stateful_sampler"]
)
def test_state_is_the_rivals_own(rival: Rival) -> None:
    """The state that its resume starts from is the one that it saves there."""
    module = rival.load()
    sampler = module.sampler(EVEN)
    assert len(list(islice(sampler, 3 * EVEN.batch))) == 3 * EVEN.batch
    assert module.saved(EVEN, 3) == sampler.state_dict()


def test_quality_tells_good_from_bad() -> None:
    """A shuffle is near 1 in both tests; a row of blocks and a reversal are far from it."""
    n = 2**18
    shuffle = np.random.default_rng(3).permutation(n)
    assert 0.8 < quality.variance_ratio(shuffle) < 1.2
    assert quality.variance_ratio(np.arange(n)) > 100
    assert quality.variance_ratio(np.arange(n).reshape(2, -1).T.ravel()) == 0
    assert quality.distinct_xors(np.arange(n)) == 1
    assert quality.is_bijection(shuffle, n)
    assert not quality.is_bijection(np.where(shuffle == 5, 6, shuffle), n)
