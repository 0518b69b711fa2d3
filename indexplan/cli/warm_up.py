"""`indexplan warm-up`: compile every kernel once, into numba's cache."""

from __future__ import annotations

import sys
from typing import Any

from indexplan.cli.common import OK, WRONG_PLAN, add_verb, emit
from indexplan.reports.warmth import warm_up


def add(verbs: Any) -> None:
    """Add the verb."""
    words = "compile every kernel into numba's cache, so that first batches come sooner"
    command = add_verb(verbs, "warm-up", run, words)
    command.description = (
        "Compile every kernel into numba's cache, or load those already there, and print where the "
        "cache is. Run it once where an image is built, and before many processes start at once. "
        "The cache is for one CPU type, one path of the installed package, and one version each of "
        "Python and numba; NUMBA_CACHE_DIR chooses the folder. Exits with 1 if a kernel cannot be "
        "saved."
    )


def run(options: Any) -> int:
    """Warm up."""
    warmth = warm_up()
    emit(options, warmth)
    if warmth.problem:
        sys.stdout.flush()
        sys.stderr.write(f"indexplan: {warmth.problem}\n")
    return OK if warmth.ok else WRONG_PLAN
