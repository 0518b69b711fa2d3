"""`indexplan warm-up`: compile every kernel once, into numba's cache."""

from __future__ import annotations

import sys
from typing import Any

from indexplan.cli.common import OK, WRONG_PLAN, add_verb, emit
from indexplan.reports.warmth import warm_up


def add(verbs: Any) -> None:
    """Add the verb."""
    command = add_verb(
        verbs,
        "warm-up",
        run,
        "compile everything ahead of time, for faster first batches",
        examples=(
            "indexplan warm-up",
            "NUMBA_CACHE_DIR=~/kernels indexplan warm-up",
        ),
    )
    command.description = (
        "Compile every kernel into numba's cache, or load what is already there, and print where "
        "the cache is. Run it when you build an image, and before you start many processes at "
        "once. A cache fits one type of CPU, one path of the installed package, and one version "
        "of Python and of numba. NUMBA_CACHE_DIR sets its folder. Exits with 1 if a kernel can't "
        "be saved."
    )


def run(options: Any) -> int:
    """Warm up."""
    warmth = warm_up()
    emit(options, warmth)
    if warmth.problem:
        sys.stdout.flush()
        sys.stderr.write(f"indexplan: {warmth.problem}\n")
    return OK if warmth.ok else WRONG_PLAN
