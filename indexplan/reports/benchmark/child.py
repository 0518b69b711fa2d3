"""What `bench` measures in new processes: the first batch since the start, and torch's sampler.

Run as `python -m indexplan.reports.benchmark.child JOB '{...}'`; it prints one JSON object.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path
from time import perf_counter, time
from typing import Any

SMALL = 10**6  # samples from which torch's time for more is extrapolated


def first_batch(plan: str, columns: list[str]) -> None:
    """Print when the first batch was there, and how much memory one more such plan takes."""
    from indexplan.plan.plan import Plan

    whole = Plan.from_json(plan, columns=columns)
    start = whole.start
    where = {"epoch": start.epoch, "sub_epoch": start.sub_epoch}
    step = whole.steps(**where).start
    whole.batch(**where, step=step, rank=0)
    ready = time()
    whole.locate(0, start.epoch)  # this loads another kernel
    before = _peak_bytes()
    fresh = Plan.from_json(plan, columns=columns)
    batch = fresh.batch(**where, step=step, rank=0)
    if len(batch):
        fresh.locate(int(batch[0]), start.epoch)
    _say({"ready": ready, "peak_bytes": _growth(before)})


class Sized:
    """A dataset that has only a size."""

    def __init__(self, num_samples: int) -> None:
        self.num_samples = num_samples

    def __len__(self) -> int:
        """Return the number of samples."""
        return self.num_samples


def torch_sampler(
    num_samples: int, world_size: int, batch_size: int, shuffle: bool, limit: float
) -> None:
    """Time the first batch of torch's sampler, unless it would take more than `limit` seconds."""
    from torch.utils.data.distributed import DistributedSampler  # bench's own process has none

    def first(num: int) -> float:
        start = perf_counter()
        sized: Any = Sized(num)
        sampler: Iterable[int] = DistributedSampler(sized, world_size, 0, shuffle=shuffle)
        list(islice(iter(sampler), batch_size))
        return perf_counter() - start

    first(1000)
    small = min(SMALL, num_samples)
    estimate = first(small) * num_samples / small
    if estimate > limit:
        _say({"estimate": estimate})
        return
    before = _peak_bytes()
    seconds = first(num_samples)
    _say({"seconds": seconds, "peak_bytes": _growth(before)})


def _say(result: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(result) + "\n")


def _peak_bytes() -> int | None:
    """Reset the highest memory use to the current one and return it; None without Linux's /proc."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
        return _high_water()
    except OSError:
        return None


def _growth(before: int | None) -> int | None:
    return None if before is None else max(0, _high_water() - before)


def _high_water() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) * 1024


if __name__ == "__main__":
    jobs: dict[str, Callable[..., None]] = {
        "first_batch": first_batch,
        "torch_sampler": torch_sampler,
    }
    jobs[sys.argv[1]](**json.loads(sys.argv[2]))
