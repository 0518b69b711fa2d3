"""`indexplan explain`: where each epoch reads a sample, or why it does not."""

from __future__ import annotations

from typing import Any

import indexplan as ip
from indexplan.answers import Shown
from indexplan.cli.common import add_numbers, add_plan, add_verb, epochs_of, number, open_plan


def add(verbs: Any) -> None:
    """Add the verb."""
    explain = add_verb(
        verbs,
        "explain",
        run,
        "say where each epoch reads a sample, or why it doesn't",
        examples=(
            "indexplan explain run.plan --index 4711",
            "indexplan explain run.plan --index 4711 --epochs 5",
        ),
    )
    explain.add_argument("--index", type=number, required=True, metavar="N", help="the sample")
    words = "how many epochs to look at, starting with epoch 0 (those in the plan directory; for "
    add_numbers(explain, epochs=words + "a .json file, the first three)")
    add_plan(explain)


def run(options: Any) -> Shown:
    """Explain the sample."""
    readings = ip.explain(open_plan(options).plan, options.index, epochs_of(options))
    return Shown({"index": options.index, "readings": readings}, str(readings))
