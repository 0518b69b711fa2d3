"""Write files of known answers: `python -m tests.golden.make NAME...`, or `all`.

The only script that writes them. Other answers are another algorithm, with another name: do not
write a file again for less. `drawn_plans.json` is not among `all`, as it would hold other plans.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from tests.golden import cases, drawn, files, orders, plans
from tests.golden.lines import FOLDER

MAKERS: dict[str, Callable[[], str]] = {
    "balance_v1.json": plans.balanced,
    "distinct_v1.json": orders.distinct,
    "document_windows_v1.json": orders.document_windows,
    "local_shuffle_v1.json": orders.local_shuffle,
    "mixture_grown.json": orders.grown,
    "mixture_v1.json": orders.mixture,
    "packed_v1.json": orders.packed,
    "plan_file.json": files.directories,
    "plans.json": plans.plans,
    "shuffle_v1_cases.json": cases.shuffle_v1,
    "strata_v1.json": orders.strata,
    "token_windows_v1.json": orders.token_windows,
    "without_v1.json": orders.without,
}
DRAWN = {"drawn_plans.json": drawn.drawn_plans}


def main(names: list[str]) -> None:
    """Write the files of these names."""
    for name in MAKERS if names == ["all"] else names:
        (FOLDER / name).write_text((MAKERS | DRAWN)[name]())


if __name__ == "__main__":
    main(sys.argv[1:])
