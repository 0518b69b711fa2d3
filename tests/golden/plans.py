"""Known answers of whole plans, with balance and without, from the plain Python of tests/support.

The cases stand in the files. Of the library, only the fingerprints of plans with balance are taken.
Other answers from the same spec are another algorithm, with another name.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from functools import cache
from typing import Any

import numpy as np

import indexplan as ip
from tests.golden.lines import crc32, numbers
from tests.support import model, oracles
from tests.support.balance_oracle import dealt


def run_of(data: dict[str, Any]) -> model.Run:
    """Return the run that the dict form of a plan describes."""
    sizes = data["global_batch_size"] or data["batch_size"]
    phases = sizes if isinstance(sizes, list) and isinstance(sizes[0], dict) else None
    phases = phases or [{"at": 0, "size": sizes}]
    ranks = 1 if data["global_batch_size"] else data["world_size"]
    resumed = data["resumed"]
    resume = [resumed[key] for key in ("epoch", "sub_epoch", "step", "position")] if resumed else 0
    return model.Run(
        num_units=lambda _: data["order"]["num_samples"],
        world_size=data["world_size"],
        phases=[(phase["at"], ranks * int(np.prod(phase["size"]))) for phase in phases],
        sub_epochs=data["sub_epochs"],
        remainder=data["remainder"],
        resume=tuple(resume) if resume else None,
    )


@cache
def index(order: str, epoch: int, position: int) -> int:
    """Return the index at a position, by the oracles."""
    fields = json.loads(order)
    kind = fields.pop("algorithm")
    n = fields["num_samples"]
    if kind == "shuffle-v1":
        return oracles.shuffle_forward(n, fields["seed"], epoch, position)
    if kind == "block-shuffle-v1":
        sizes = fields["block_size"], fields["window"]
        return oracles.block_shuffle_forward(n, *sizes, fields["seed"], epoch, position)
    return position


def plans(case: dict[str, Any]) -> dict[str, Any]:
    """Return the known answers of a plan; of a large plan, their check sums."""
    data = case["spec"]
    order = json.dumps(data["order"])
    run = run_of(data)
    text = json.dumps(data, sort_keys=True, separators=(",", ":"))
    large = data["order"]["num_samples"] > 60
    sub_epochs = []
    for epoch, sub_epoch, first_step, _, steps in model.walk(run, 2):
        batches = [
            [[index(order, slot.epoch, slot.position) for slot in slots] for slots in step.ranks]
            for step in steps
        ]
        valid = [[sum(not s.padded for s in slots) for slots in step.ranks] for step in steps]
        numbers = range(first_step, first_step + len(steps) + 1)
        cursors = [model.cursor(run, epoch, sub_epoch, n) for n in numbers[:: 9 if large else 1]]
        indices = [i for step in batches for batch in step for i in batch]
        sub_epochs.append(
            {
                "epoch": epoch,
                "sub_epoch": sub_epoch,
                "first_step": first_step,
                "num_steps": first_step + len(steps),
                "phases": [step.phase for step in steps],
                "cursors": cursors,
                "num_valid": zlib.crc32(json.dumps(valid).encode()) if large else valid,
                "batches": crc32(indices) if large else batches,
            }
        )
    fingerprint = hashlib.sha256(text.encode()).hexdigest()
    return {"fingerprint": fingerprint, "sub_epochs": sub_epochs}


def plan_of(case: dict[str, Any]) -> ip.Plan:
    """Return the plan with balance of a case, over Sequential."""
    lengths, fields = numbers(case["lengths"]), {**case["fields"]}
    for name in ("batch_size", "global_batch_size"):
        if isinstance(fields.get(name), list):
            fields[name] = tuple(fields[name])
    balance = ip.Balance(lengths, **case["weights"])
    return ip.Plan(ip.Sequential(len(lengths)), **fields, balance=balance)


def balanced(case: dict[str, Any]) -> dict[str, Any]:
    """Return the answers of a plan with balance."""
    plan = plan_of(case)
    walked = [step for there in model.walk(model.run_of(plan), 1) for step in there.steps]
    steps = [
        [[slot.position for slot in slots] for slots in dealt(plan, step, lambda s: [s.position])]
        for step in walked
    ]
    return {
        "fingerprint": plan.fingerprint[:16],
        "num_steps": len(steps),
        "first_step": steps[0],
        "last_step": steps[-1],
        "crc32": crc32([sample for step in steps for batch in step for sample in batch]),
    }
