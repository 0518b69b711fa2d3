"""Write files of known answers: `python -m tests.golden.make NAME...`, or `all`.

The only script that writes them, by answering the cases that stand in them: for a new algorithm,
write its cases without answers first. Other answers are another algorithm, with another name: do
not write a file again for less.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial

from tests.golden import files, orders, plans
from tests.golden.lines import FOLDER, answered

MAKERS: dict[str, Callable[[], str]] = {
    **{
        name: partial(answered, name, partial(answer, reads=orders.PLAIN))
        for name, answer in orders.ANSWERS.items()
    },
    "plan_file": files.directories,
}
DRAWN = {"drawn_plans": plans.drawn_plans}  # not among `all`, as it takes a minute


def main(names: list[str]) -> None:
    """Write the files of these names."""
    for name in MAKERS if names == ["all"] else names:
        (FOLDER / f"{name}.json").write_text((MAKERS | DRAWN)[name]())


if __name__ == "__main__":
    main(sys.argv[1:])
