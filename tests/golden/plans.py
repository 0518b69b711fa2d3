"""Known answers of whole plans, with balance and without, from the plain Python of tests/support.

The cases stand in the files. Of the library, only fields and the fingerprints of plans with balance
are taken. Other answers from the same spec are another algorithm, with another name.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import zlib
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

import indexplan as ip
from tests.golden.lines import crc32, known, lines, numbers
from tests.support import model, plain
from tests.support.balance_oracle import dealt
from tests.support.every_order import every_order
from tests.support.frozen import algorithms, answers, columns_of, rebuilt
from tests.support.strategies import balances
from tests.support.strategies import plans as strategy


def plans(case: dict[str, Any]) -> dict[str, Any]:
    """Return the known answers of a plan; of a large plan, their check sums.

    Some plans with "drop" are refused today; the model walks them all the same.
    """
    data = case["spec"]
    made = "pad" if data["remainder"] == "drop" else data["remainder"]
    plan = ip.Plan.from_json(json.dumps({**data, "remainder": made}))
    run = dataclasses.replace(model.run_of(plan), remainder=data["remainder"])
    large = plan.order.num_samples > 60
    sub_epochs = []
    for epoch, sub_epoch, first_step, _, steps in model.walk(run, 2):
        batches = [
            [[read(plan.order, slot)[0] for slot in slots] for slots in step.ranks]
            for step in steps
        ]
        valid = [[sum(not s.padded for s in slots) for slots in step.ranks] for step in steps]
        stops = range(first_step, first_step + len(steps) + 1)
        cursors = [model.cursor(run, epoch, sub_epoch, n) for n in stops[:: 9 if large else 1]]
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
    text = json.dumps(data, sort_keys=True, separators=(",", ":"))
    return {"fingerprint": hashlib.sha256(text.encode()).hexdigest(), "sub_epochs": sub_epochs}


def read(order: ip.Order, slot: model.Slot) -> list[int]:
    """Return the samples of the unit that a slot reads."""
    (unit,) = plain.units(order, slot.epoch, [slot.position])
    return unit


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


# Drawn plans over every order, in layers, under all remainders, and what they answer. These are the
# library's own answers, for changes that must not change any: they say that two versions agree, and
# the other known answers say that they are right. Hypothesis draws other plans in each of its
# versions, so the file holds the plans, and gets some over each kind of order that it lacks.

OF_EACH = 12


@st.composite
def over(draw: st.DrawFn, order: Any) -> ip.Plan:
    """Draw a plan over an order: fresh or resumed, under any remainder, with balance or without.

    Over one for global batches, a plan of whole ones or of equal parts.
    """
    if (size := order.ip_global_batch) > 1:
        parts = [part for part in range(1, size + 1) if size % part == 0]
        return ip.Plan(
            order,
            world_size=draw(st.integers(1, 5)),
            global_batch_size=draw(st.sampled_from(parts)),
            remainder=draw(st.sampled_from(["spread", "drop", "pad", "carry"])),
        )
    plan: ip.Plan = draw(strategy(st.just(order)))
    if draw(st.integers(0, 4)) == 0:
        plan = plan.replace(balance=draw(balances(order.num_samples)))
    return plan


def drawn_over(order: ip.Order, number: int) -> list[ip.Plan]:
    """Return plans over an order, the last that are drawn: the first are the simplest."""
    found: dict[str, ip.Plan] = {}

    @seed(number)
    @settings(
        max_examples=4 * OF_EACH,
        database=None,
        phases=[Phase.generate],
        deadline=None,
        suppress_health_check=[*HealthCheck],
    )
    @given(over(order))
    def look(plan: ip.Plan) -> None:
        found[plan.fingerprint] = plan

    look()
    return list(found.values())[-OF_EACH:]


def drawn_plans() -> str:
    """Return the plans of the file, and others over orders that it lacks, with their answers."""
    head = known("drawn_plans")
    cases = head.pop("cases")
    held = set().union(*(algorithms(case["plan"]["order"]) for case in cases))
    for number, (name, order) in enumerate(every_order().items()):
        for plan in [] if name in held else drawn_over(order, number):
            cases.append({"plan": json.loads(plan.to_json()), "columns": columns_of(plan)})
    return lines(head, "cases", [{**case, "answers": answers(rebuilt(case))} for case in cases])
