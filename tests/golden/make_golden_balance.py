"""Write balance_v1.json: `python -m tests.golden.make_golden_balance`.

The only script that writes it. The answers come from the oracles in tests/support, the design's
words in plain Python, and not from the library; fingerprints alone are the library's. Other answers
are another algorithm, with another name: do not write this file again for less.
"""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np

import indexplan as ip
from tests.support import balance_oracle, model

# lengths are (i * factor % modulus + 1) ** power for i in range(n); units are those of Sequential
CASES: list[tuple[dict[str, int], dict[str, int], dict[str, Any]]] = [
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


def main() -> None:
    """Write the file."""
    cases = []
    for form, weights, fields in CASES:
        lengths = numbers(form)
        balance = ip.Balance(lengths, **weights)
        plan = ip.Plan(ip.Sequential(form["n"]), **fields, balance=balance)
        steps = batches_of(plan, lengths)
        row = np.array([sample for step in steps for batch in step for sample in batch], "<i8")
        case = {"lengths": form, "weights": weights, "fields": fields}
        answers = {
            "fingerprint": plan.fingerprint[:16],
            "num_steps": len(steps),
            "first_step": steps[0],
            "last_step": steps[-1],
            "crc32": zlib.crc32(row.tobytes()),
        }
        cases.append({**case, **answers})
    lines = ",\n".join(json.dumps(case) for case in cases)
    origin = "the oracles of tests/support/balance_oracle.py and model.py; fingerprints are ours"
    text = f'{{"origin": "{origin}", "cases": [\n{lines}\n]}}\n'
    Path(__file__).with_name("balance_v1.json").write_text(text)


if __name__ == "__main__":
    main()
