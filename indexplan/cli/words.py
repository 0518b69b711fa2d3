"""An error of the library in the words of a command: --world-size, not plan.replace."""

from __future__ import annotations

import argparse

from indexplan.errors import Cure, IndexPlanError


def in_words_of(parser: argparse.ArgumentParser | None, error: IndexPlanError) -> IndexPlanError:
    """Return an error as a verb says it, whose parser knows which arguments are its options."""
    option = f"--{error.what.replace('_', '-')}"
    known = parser is not None and option in parser._option_string_actions  # noqa: SLF001
    return type(error)(
        option if known else error.what,
        error.rule,
        "none" if error.got == "None" else error.got,
        error.cure.command if isinstance(error.cure, Cure) else error.cure,
    )
