"""`indexplan completion`: a script that lets a shell complete verbs, options and choices."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from typing import Any

from indexplan.answers import Shown
from indexplan.cli.common import OK, add_verb, emit
from indexplan.errors import IndexPlanError, install
from indexplan.orders.registry import registered

SHELLS = ("bash", "zsh", "fish", "tcsh")
PATHS = {"PLAN", "A", "B", "OUT", "PATH", "FILE", "LEDGER", "WHAT"}  # what is completed as a file


def add(verbs: Any, parser: argparse.ArgumentParser) -> None:
    """Add the verb, which completes the commands of a parser, itself among them."""
    completion = add_verb(
        verbs,
        "completion",
        partial(run, parser, verbs),
        "print a completion script for your shell",
        examples=(
            "indexplan completion bash > indexplan.bash && source indexplan.bash",
            "indexplan completion fish > indexplan.fish",
        ),
    )
    completion.description = (
        "Print a script that makes your shell complete verbs, options, choices and paths when you "
        "press TAB. To keep it, save it once where your shell looks:\n\n"
        "  bash  ~/.local/share/bash-completion/completions/indexplan\n"
        "  zsh   _indexplan, in a directory of fpath\n"
        "  fish  ~/.config/fish/completions/indexplan.fish"
    )
    completion.add_argument("shell", choices=SHELLS, metavar="SHELL", help=", ".join(SHELLS))


def run(parser: argparse.ArgumentParser, verbs: Any, options: Any) -> int:
    """Print the script."""
    try:
        import shtab
    except ImportError as error:
        cure = install("cli")
        raise IndexPlanError("completion", "needs shtab", None, cure) from error
    for verb in verbs.choices.values():
        for action in verb._actions:  # noqa: SLF001
            if action.metavar in PATHS:
                action.complete = shtab.FILE
            elif action.metavar == "KIND" and not action.option_strings:  # of orders
                action.choices = sorted(kind.__name__ for kind in registered())
    script = shtab.complete(parser, shell=options.shell)
    if options.json:
        emit(options, Shown({"shell": options.shell, "script": script}, script))
    else:  # as it is, whatever is in it: it is a program
        sys.stdout.write(script)
    return OK
