"""Write files of known answers: `python -m tests.golden.make NAME...`, or `all`.

The only script that writes them, by answering the cases that stand in them: for a new algorithm,
write its cases without answers first. Other answers are another algorithm, with another name: do
not write a file again for less.

`drawn_plans` has plans over every order, in layers, under all remainders, and the library's own
answers, for changes that must not change any: they say that two versions agree, and the other known
answers say that they are right. Hypothesis draws other plans in each of its versions, so the file
holds the plans, and gets some over each kind of order that it lacks.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

import indexplan as ip
from tests.golden import files, orders
from tests.golden.lines import FOLDER, answered, known, lines
from tests.support.every_order import every_order
from tests.support.frozen import algorithms, answers, columns_of, rebuilt
from tests.support.strategies import balances
from tests.support.strategies import plans as strategy

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


MAKERS: dict[str, Callable[[], str]] = {
    **{
        name: partial(answered, name, partial(answer, reads=orders.PLAIN))
        for name, answer in orders.ANSWERS.items()
    },
    "plan_file": files.directories,
}
DRAWN = {"drawn_plans": drawn_plans}  # not among `all`, as it takes a minute


def main(names: list[str]) -> None:
    """Write the files of these names."""
    for name in MAKERS if names == ["all"] else names:
        (FOLDER / f"{name}.json").write_text((MAKERS | DRAWN)[name]())


if __name__ == "__main__":
    main(sys.argv[1:])
