"""LengthGroupedSampler of transformers."""

from __future__ import annotations

import numpy as np
import torch
from transformers.trainer_pt_utils import LengthGroupedSampler

from benchmarks.contenders.binners import BATCH, Case, Int64


class Binner:
    def __init__(self, case: Case, lengths: Int64) -> None:  # noqa: ARG002 (as the others)
        self.generator = torch.Generator()
        self.sampler = LengthGroupedSampler(
            BATCH, lengths=lengths.tolist(), generator=self.generator
        )

    def epoch(self, number: int) -> tuple[Int64, Int64]:
        self.generator.manual_seed(number)
        samples = np.array(list(self.sampler), np.int64)
        return samples, np.append(np.arange(0, len(samples), BATCH), len(samples))
