"""Write files of known answers: `python -m tests.golden.make NAME...`, or `all`.

The only script that writes them, by answering the cases that stand in them: for a new algorithm,
write its cases without answers first. Other answers are another algorithm, with another name: do
not write a file again for less.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from tests.golden import drawn, files, orders, plans
from tests.golden.lines import FOLDER, answered

ANSWERS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {  # to a case of each file
    "balance_v1": plans.balanced,
    "distinct_v1": orders.distinct,
    "document_windows_v1": orders.document_windows,
    "local_shuffle_v1": orders.local_shuffle,
    "mixture_grown": orders.grown,
    "packed_v1": orders.bins,
    "strata_v1": orders.bins,
    "token_windows_v1": orders.token_windows,
    "without_v1": orders.without,
}
MAKERS: dict[str, Callable[[], str]] = {
    **{name: partial(answered, name, answer) for name, answer in ANSWERS.items()},
    "mixture_v1": orders.mixture,
    "plan_file": files.directories,
    "plans": partial(answered, "plans", plans.plans, "plans"),
    "shuffle_v1_cases": orders.shuffle_cases,
}
DRAWN = {"drawn_plans": drawn.drawn_plans}  # not among `all`, as it takes a minute


def main(names: list[str]) -> None:
    """Write the files of these names."""
    for name in MAKERS if names == ["all"] else names:
        (FOLDER / f"{name}.json").write_text((MAKERS | DRAWN)[name]())


if __name__ == "__main__":
    main(sys.argv[1:])
