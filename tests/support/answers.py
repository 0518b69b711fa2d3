"""What a plan says, as JSON types: run here, in a fresh process, and in many threads."""

from __future__ import annotations

import json
import sys
from typing import Any

import indexplan as ip


def answers(plan: ip.Plan) -> list[Any]:
    """Return fingerprints, sizes, batches, cursors and places of two epochs of a plan."""
    said: list[Any] = [plan.fingerprint, plan.order.fingerprint, plan.to_json()]
    for epoch in (0, 1):
        samples = range(0, plan.order.num_samples, 7)
        said.append([part.tolist() for part in plan.locate(samples, epoch)])
        start = plan.start.sub_epoch if epoch == plan.start.epoch else 0
        for sub_epoch in range(start, plan.sub_epochs):
            num_steps = plan.steps(epoch, sub_epoch).stop
            said.append(plan.cursor(epoch, sub_epoch, step=num_steps).to_json())
            for rank in range(plan.world_size or 0):
                said.append(plan.indices(epoch, sub_epoch, rank=rank).tolist())
                batches = plan.batches(epoch, sub_epoch, rank=rank)
                said.append([batch.tolist() for batch in batches])
    return said


if __name__ == "__main__":
    print(json.dumps([answers(ip.Plan.from_json(text)) for text in sys.argv[1:]]))  # noqa: T201
