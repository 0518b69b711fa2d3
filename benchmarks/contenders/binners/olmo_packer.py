"""OLMo-core's InstancePacker.

Of what its module imports, the reading of files needs the clients of several clouds: left out here.
"""

from __future__ import annotations

import numpy as np

from benchmarks.contenders import leave_out, name_packages
from benchmarks.contenders.binners import Case, Int64, joined

name_packages("olmo_core", "olmo_core.data")
leave_out("olmo_core.io", "olmo_core.utils", "olmo_core.config")
from olmo_core.data.utils import InstancePacker  # noqa: E402 (needs the names above)


class Binner:
    def __init__(self, case: Case, lengths: Int64) -> None:
        ends = np.cumsum(lengths)
        documents = np.stack([ends - lengths, ends], axis=1)
        bins, found, _ = InstancePacker(case.limit).pack_documents(documents)
        numbers = np.searchsorted(ends, found[:, 1])
        self.bins = [numbers[each] for each in bins]

    def epoch(self, number: int) -> tuple[Int64, Int64]:
        return joined(self.bins, number)
