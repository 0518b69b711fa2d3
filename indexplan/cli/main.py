"""Run a command: every verb calls one public function, and prints its answer.

Exit codes: 0, all is well; 1, a plan or file is wrong; 2, the command is wrong.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from indexplan.cli import (
    bench,
    build,
    completion,
    diff,
    explain,
    export,
    finish,
    ledger,
    locate,
    orders,
    plot,
    replay,
    shards,
    show,
    show_help,
    traffic,
    verify,
    warm_up,
)
from indexplan.cli.common import OK, WRONG_COMMAND, WRONG_PLAN
from indexplan.cli.parsing import Parser, new_parser, options_in
from indexplan.cli.terminal import for_terminal
from indexplan.cli.words import in_words_of
from indexplan.errors import IndexPlanError, PlanFileError

GROUPS = {
    "plan a run": (build, finish, orders, bench),
    "look at a plan or a run": (show, locate, explain, diff, plot, ledger, replay),
    "check and export files": (verify, export),
    "look at data in shards": (shards, traffic),
    "set up a machine and a shell": (warm_up,),  # and what has to know all verbs
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    words = sys.argv[1:] if arguments is None else arguments
    if arguments is None:  # the command itself: Ctrl-C ends it at once, as it may be killed anyhow
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    parser, verbs = parser_of_verbs()
    if not words:  # help, but an error code: a script may have lost its verb
        parser.print_help()
        return WRONG_COMMAND
    as_json = "--json" in words  # errors in the other words are reported as JSON, too
    known = None
    try:
        options = options_in(words, parser, verbs)
        known = verbs.choices[options.verb]
        for name in options.modules:
            _import(name)
        code: int = options.run(options)
        sys.stdout.flush()
    except IndexPlanError as error:
        return _complain(in_words_of(known, error), as_json)
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    return code


def parser_of_verbs() -> tuple[Parser, Any]:
    """Return the parser of all commands, and its verbs, whose `choices` are their parsers."""
    parser = new_parser()
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB", parser_class=Parser)
    parser.groups = groups = {}
    for title, members in GROUPS.items():
        before = len(verbs.choices)
        for each in members:
            each.add(verbs)
        groups[title] = (*verbs.choices,)[before:]
    completion.add(verbs, parser)
    show_help.add(verbs, parser)
    groups[title] += ("completion", "help")
    return parser, verbs


def _import(name: str) -> None:
    """Import a user's module, which may raise anything, or exit."""
    try:
        import_module(name)
    except (Exception, SystemExit) as error:
        got = f"{name!r} ({type(error).__name__}: {error})"
        cure = "set PYTHONPATH to the folder that it is in"
        raise IndexPlanError(
            "--import", "must name a module that Python can import", got, cure
        ) from error


def _complain(error: IndexPlanError, as_json: bool) -> int:
    """Print what is wrong to stderr, and as JSON to stdout if that was asked for."""
    about_files = isinstance(error, PlanFileError)
    code = WRONG_PLAN if about_files else WRONG_COMMAND
    if as_json:
        found = {
            "type": (PlanFileError if about_files else IndexPlanError).__name__,
            "what": error.what,
            "rule": error.rule,
            "got": error.got,
            "cure": error.cure,
            "message": str(error),
            "exit_code": code,
        }
        print(json.dumps({"error": found}, indent=2))  # noqa: T201 (the output)
        sys.stdout.flush()
    sys.stderr.write(for_terminal(f"indexplan: {error}", sys.stderr) + "\n")
    return code
