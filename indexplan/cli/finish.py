"""`indexplan finish`: make a plan of the parts that a build has written."""

from __future__ import annotations

from typing import Any

import indexplan as ip
from indexplan.cli.common import OK, Progress, add_plan, add_verb, emit


def add(verbs: Any) -> None:
    """Add the verb."""
    words = "finish a plan whose parts have been built, or tell what is missing"
    add_plan(add_verb(verbs, "finish", run, words))


def run(options: Any) -> int:
    """Finish the plan directory."""
    with Progress("checking", "chunk") as progress:
        saved = ip.finish(options.plan, progress=progress)
    emit(options, saved)
    return OK
