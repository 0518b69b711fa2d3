"""`indexplan completion`: a script that lets a shell complete verbs, options and choices."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from typing import Any

from indexplan.answers import Shown
from indexplan.cli.common import OK, add_verb, emit
from indexplan.errors import IndexPlanError

SHELLS = ("bash", "zsh", "fish", "tcsh")
PATHS = {"PLAN", "A", "B", "OUT", "PATH", "FILE", "LEDGER", "WHAT"}  # what is completed as a file


def add(verbs: Any, parser: argparse.ArgumentParser) -> None:
    """Add the verb, which completes the commands of a parser, itself among them."""
    words = "print a script that lets your shell complete verbs, options and choices"
    completion = add_verb(verbs, "completion", partial(run, parser, verbs), words)
    completion.description = (
        "Print a script that lets your shell complete verbs, options, choices and paths; pressing "
        "TAB starts no Python. bash: indexplan completion bash > "
        "~/.local/share/bash-completion/completions/indexplan; zsh: indexplan completion zsh > "
        "DIRECTORY/_indexplan, for a directory of fpath; fish: indexplan completion fish > "
        "~/.config/fish/completions/indexplan.fish."
    )
    completion.add_argument("shell", choices=SHELLS, metavar="SHELL", help=", ".join(SHELLS))


def run(parser: argparse.ArgumentParser, verbs: Any, options: Any) -> int:
    """Print the script."""
    try:
        import shtab
    except ImportError as error:
        cure = "pip install 'indexplan[cli]'"
        raise IndexPlanError("completion", "needs shtab", None, cure) from error
    for verb in verbs.choices.values():
        for action in verb._actions:  # noqa: SLF001
            if action.metavar in PATHS:
                action.complete = shtab.FILE
    script = shtab.complete(parser, shell=options.shell)
    if options.json:
        emit(options, Shown({"shell": options.shell, "script": script}, script))
    else:  # as it is, whatever is in it: it is a program
        sys.stdout.write(script)
    return OK
