"""Known answers of whole plans, with balance and without, from the plain Python of tests/support.

Of the library, only the names of the remainders and the fingerprints of plans with balance are
taken. Other answers from the same spec are another algorithm, with another name.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from functools import cache
from typing import Any

import numpy as np

import indexplan as ip
from indexplan.partition.remainders import REMAINDERS
from tests.golden.lines import crc32, lines
from tests.support import balance_oracle, model, oracles

EPOCHS = 2
PHASES = [
    {"at": 0, "size": 3, "parameters": {"resolution": 128}},
    {"at": 17, "size": [2, 1], "parameters": {"mask": 0.5, "name": "b"}},
    {"at": 40, "size": 4, "parameters": {}},
    {"at": [1, 1], "size": 1, "parameters": {"resolution": None, "last": True}},
]


def shuffle(num_samples: int, seed: int) -> dict[str, Any]:
    """Return the dict form of a Shuffle."""
    return {"algorithm": "shuffle-v1", "num_samples": num_samples, "seed": seed}


BLOCKS = {
    "algorithm": "block-shuffle-v1",
    "num_samples": 53,
    "block_size": 7,
    "window": 2,
    "seed": 5,
}

# What a plan is made of, besides its remainder; what is left out is as in `spec`.
CASES: dict[str, dict[str, Any]] = {
    "sequential": {"order": {"algorithm": "sequential-v1", "num_samples": 31}},
    "shuffle": {"order": shuffle(60, 1)},
    "one-sample": {"order": shuffle(1, 0), "world_size": 1, "batch_size": 1},
    "fewer-units-than-ranks": {"order": shuffle(5, 7), "world_size": 8},
    "fewer-units-than-sub-epochs": {"order": shuffle(7, 8), "sub_epochs": 9},
    "sub-epochs": {"order": shuffle(47, 2**100), "world_size": 3, "sub_epochs": 4},
    "global": {
        "order": BLOCKS,
        "world_size": 5,
        "batch_size": None,
        "global_batch_size": 12,
        "sub_epochs": 2,
    },
    "nested": {"order": shuffle(50, 2), "world_size": 2, "batch_size": [2, 2, 3], "sub_epochs": 2},
    "phases": {"order": shuffle(59, 3), "world_size": 3, "batch_size": PHASES, "sub_epochs": 2},
    "resumed": {
        "order": shuffle(59, 3),
        "batch_size": None,
        "global_batch_size": PHASES,
        "sub_epochs": 2,
        "resumed": {"epoch": 0, "sub_epoch": 1, "step": 2, "position": 37},
    },
    "large": {
        "order": shuffle(3001, 2**64 + 5),
        "world_size": 16,
        "batch_size": [
            {"at": 0, "size": [4, 8], "parameters": {}},
            {"at": 700, "size": 11, "parameters": {}},
            {"at": [1, 0], "size": 64, "parameters": {}},
        ],
        "sub_epochs": 3,
        "resumed": {"epoch": 0, "sub_epoch": 0, "step": 1, "position": 100},
    },
    "large-blocks": {
        "order": {**BLOCKS, "num_samples": 2000, "block_size": 64, "window": 4},
        "world_size": 7,
        "batch_size": None,
        "global_batch_size": [8, 8],
        "sub_epochs": 5,
    },
}


def spec(remainder: str, case: dict[str, Any]) -> dict[str, Any]:
    """Return the dict form of a plan."""
    return {
        "partition": "partition-v1",
        "world_size": 4,
        "batch_size": 3,
        "global_batch_size": None,
        "sub_epochs": 1,
        "remainder": remainder,
        "resumed": None,
        **case,
    }


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


def golden(name: str, remainder: str, case: dict[str, Any]) -> dict[str, Any]:
    """Return a plan's spec and its known answers; of a large plan, their check sums."""
    data = spec(remainder, case)
    order = json.dumps(data["order"])
    run = run_of(data)
    text = json.dumps(data, sort_keys=True, separators=(",", ":"))
    large = data["order"]["num_samples"] > 60
    sub_epochs = []
    for epoch, sub_epoch, first_step, _, steps in model.walk(run, EPOCHS):
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
    return {"name": name, "spec": data, "fingerprint": fingerprint, "sub_epochs": sub_epochs}


def plans() -> str:
    """Return the answers of plans."""
    origin = (
        "written from plain-Python models of the design; "
        "batches: the indices by step and rank, or of a large plan the crc32 of all of them as "
        "little-endian int64; num_valid: by step and rank, or the crc32 of its JSON; cursors: "
        "(epoch, sub_epoch, step, position) after each number of steps, or after every ninth"
    )
    cases = [
        golden(f"{remainder}-{name}", remainder, case)
        for remainder in sorted(REMAINDERS, key="spread".__ne__)
        for name, case in CASES.items()
    ]
    return lines({"origin": origin}, "plans", cases)


# lengths are (i * factor % modulus + 1) ** power for i in range(n); units are those of Sequential
BALANCED: list[tuple[dict[str, int], dict[str, int], dict[str, Any]]] = [
    ({"n": 1}, {}, {"world_size": 3, "batch_size": 2}),
    ({"n": 24, "modulus": 1}, {}, {"world_size": 3, "batch_size": 4}),
    ({"n": 50, "factor": 37, "modulus": 41}, {}, {"world_size": 4, "batch_size": 5}),
    (
        {"n": 103, "factor": 7, "modulus": 11},
        {"linear": 24576, "quadratic": 1},
        {"world_size": 3, "batch_size": (2, 3), "remainder": "pad", "sub_epochs": 2},
    ),
    (
        {"n": 100, "factor": 61, "modulus": 97, "power": 3},
        {"linear": 0, "quadratic": 3},
        {"world_size": 5, "global_batch_size": (2, 2, 6), "remainder": "carry"},
    ),
    (
        {"n": 3000, "factor": 7919, "modulus": 997, "power": 2},
        {},
        {"world_size": 16, "batch_size": (4, 8), "remainder": "drop"},
    ),
]


def numbers(form: dict[str, int]) -> list[int]:
    """Return the lengths that a case describes."""
    factor, modulus = form.get("factor", 1), form.get("modulus", 10)
    return [(i * factor % modulus + 1) ** form.get("power", 1) for i in range(form["n"])]


def batches_of(plan: ip.Plan, lengths: list[int]) -> list[list[list[int]]]:
    """Return each rank's batches of epoch 0, step by step, of a plan over Sequential."""
    found = []
    for sub_epoch in model.walk(model.run_of(plan), 1):
        for step in sub_epoch.steps:
            places = enumerate(step.slots)
            cost_of = {
                place: balance_oracle.cost_of(plan.balance, [lengths[slot.position]])
                for place, slot in places
                if not slot.padded
            }
            held = balance_oracle.balanced(step, plan._layout.phases[0].inner_counts, cost_of)
            found.append([[step.slots[place].position for place in rank] for rank in held])
    return found


def balanced() -> str:
    """Return the answers of plans with balance."""
    cases = []
    for form, weights, fields in BALANCED:
        lengths = numbers(form)
        balance = ip.Balance(lengths, **weights)
        plan = ip.Plan(ip.Sequential(form["n"]), **fields, balance=balance)
        steps = batches_of(plan, lengths)
        case: dict[str, Any] = {"lengths": form, "weights": weights, "fields": fields}
        case["fingerprint"] = plan.fingerprint[:16]
        case["num_steps"] = len(steps)
        case["first_step"], case["last_step"] = steps[0], steps[-1]
        case["crc32"] = crc32([sample for step in steps for batch in step for sample in batch])
        cases.append(case)
    origin = "the oracles of tests/support/balance_oracle.py and model.py; fingerprints are ours"
    return lines({"origin": origin}, "cases", cases)
