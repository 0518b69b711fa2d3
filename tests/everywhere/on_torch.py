"""What torch computes for tensors on a device, compared with the package."""

from __future__ import annotations

from collections.abc import Sequence

import torch

import indexplan as ip
from indexplan_torch.networks import num_walks, numbers_of, shuffled
from tests.everywhere.drawn import Run
from tests.support.shuffle_cases import CASES


def indices(run: Run) -> list[int]:
    """Return the indices of a run, computed by torch on the CPU."""
    numbers = torch.tensor(numbers_of(ip.Shuffle(run.n, run.seed), run.epoch))
    positions = run.start + torch.arange(run.num)
    answer: list[int] = shuffled(positions, numbers, num_walks(run.n)).tolist()
    return answer


def differences(runs: Sequence[Run]) -> int:
    """Return at how many positions torch and the package differ."""
    pairs = ((indices(run), run.indices().tolist()) for run in runs)
    return sum(a != b for one, other in pairs for a, b in zip(one, other, strict=True))


def known_differences() -> int:
    """Return how many known answers are others."""
    return sum(
        indices(Run(n, seed, epoch, start, len(known))) != known
        for n, seed, epoch, start, known in CASES
    )
