"""axolotl's MultipackBatchSampler.

Its package would import all of axolotl; the module needs torch, accelerate and transformers.
"""

from __future__ import annotations

import numpy as np

from benchmarks.contenders import name_packages
from benchmarks.contenders.binners import Case, Int64, joined

name_packages("axolotl", "axolotl.utils", "axolotl.utils.samplers")
from axolotl.utils.samplers.multipack import (  # noqa: E402 (needs the names above)
    MultipackBatchSampler,
)


class Binner:
    def __init__(self, case: Case, lengths: Int64) -> None:
        self.row = np.arange(len(lengths))
        self.sampler = MultipackBatchSampler(
            self, 1, case.limit, lengths, bin_size=case.limit, drop_last=False
        )
        self.epoch_number = 0
        len(self.sampler)

    def __iter__(self):
        return iter(np.random.default_rng(self.epoch_number).permutation(self.row).tolist())

    def __len__(self) -> int:
        return len(self.row)

    def epoch(self, number: int) -> tuple[Int64, Int64]:
        self.epoch_number = number
        self.sampler.set_epoch(number)
        # its iterator would end at the least of the four
        return joined([each for batch in self.sampler.generate_batches() for each in batch])
