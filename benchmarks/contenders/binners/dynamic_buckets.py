"""Lhotse's DynamicBucketingSampler."""

from __future__ import annotations

from lhotse import MonoCut
from lhotse.dataset.sampling import DynamicBucketingSampler

from benchmarks.contenders.binners import Case, Int64, joined

FRAMES = 100  # of a second


class Binner:
    def __init__(self, case: Case, lengths: Int64) -> None:
        cuts = [
            MonoCut(id=str(i), start=0, duration=length / FRAMES, channel=0)
            for i, length in enumerate(lengths.tolist())
        ]
        self.sampler = DynamicBucketingSampler(
            cuts,
            max_duration=case.limit / FRAMES,
            num_buckets=64,
            shuffle=True,
            rank=0,
            world_size=1,
        )

    def epoch(self, number: int) -> tuple[Int64, Int64]:
        self.sampler.set_epoch(number)
        return joined([[int(cut.id) for cut in cuts] for cuts in self.sampler])
