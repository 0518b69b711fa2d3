"""`indexplan finish`: make a plan of the parts that a build has written."""

from __future__ import annotations

from typing import Any

import indexplan as ip
from indexplan.cli.common import OK, Progress, add_plan, add_verb, emit


def add(verbs: Any) -> None:
    """Add the verb."""
    finish = add_verb(
        verbs,
        "finish",
        run,
        "finish a plan that was built in parts",
        examples=("indexplan finish run.plan", "indexplan finish run.plan --json"),
    )
    finish.description = (
        "Finish a plan that was built in parts, or list the parts that are missing. You only need "
        "it if the parts could not see each other's files: otherwise the last part to end "
        "finishes the plan."
    )
    add_plan(finish)


def run(options: Any) -> int:
    """Finish the plan directory."""
    with Progress("checking", "chunk") as progress:
        saved = ip.finish(options.plan, progress=progress)
    emit(options, saved)
    return OK
