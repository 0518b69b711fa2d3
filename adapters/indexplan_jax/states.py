"""What the states of Grain's iterators say of a run."""

from __future__ import annotations

import json
from typing import Any

from indexplan import IndexPlanError, Plan
from indexplan.errors import as_integer, invalid
from indexplan_jax.steps import units_of_each_batch

STATE_VERSION = 1
GRAINS_VERSION = 2  # of the states of its DataLoader, since Grain 0.2


class Saved:
    """What a state of a DataLoader's iterator says of its sampler and its workers."""

    def __init__(self, state: bytes | str) -> None:
        try:
            data = json.loads(state)
            named, _, described = data["sampler"].partition("(")
            sampler = json.loads(described[:-1])
            self.worker_count = data["worker_count"]
            self.plan, version = dict(sampler["plan"]), sampler["version"]
            self.of_sampler = sampler["worker_count"]
            last = data["last_seen_indices"]
            self._last = [int(last[str(worker)]) for worker in range(len(last))]
            known = (
                isinstance(self.worker_count, int)
                and named == "PlanSampler"
                and data["version"] == GRAINS_VERSION
            )
        except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
            known, version = False, None
        if not known:
            cure = "pass what get_state returned, or use plan.resume(cursor)"
            rule = "that of a DataLoader that reads a PlanSampler"
            raise invalid("state", rule, state, cure)
        check_version(version)

    def steps(self, plan: Plan) -> int:
        """Return how many steps of the plan it has read."""
        count, units = len(self._last), units_of_each_batch(plan)
        ranks = plan.world_size or 1
        # a worker's last place is its next one, less a round of all workers of all processes
        read = [
            1 + (last - worker * ranks) // (count * ranks) for worker, last in enumerate(self._last)
        ]
        number = sum(read) // (units or 1)
        in_turn = [(units or 0) * -(-(number - worker) // count) for worker in range(count)]
        agreed = self.of_sampler == self.worker_count and max(self.worker_count, 1) == count
        if read != in_turn or not agreed:
            raise IndexPlanError(
                "state",
                "must stand between two steps, which the workers have read in turn",
                f"{read} samples read by worker_count={self.worker_count}, of batches of {units} "
                f"for a sampler with worker_count={self.of_sampler}",
                "give both the same worker_count, use Batch(sampler.batch_size), and drop no "
                "sample before it",
            )
        return number


def check_version(version: Any) -> None:
    """Refuse a state of another version."""
    if as_integer(version) != STATE_VERSION:
        cure = "load it with the version of indexplan that saved it"
        raise invalid("state", f"of version {STATE_VERSION}", version, cure)
