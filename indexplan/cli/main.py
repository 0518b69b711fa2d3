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
    diff,
    explain,
    export,
    ledger,
    locate,
    orders,
    plot,
    shards,
    show,
    verify,
)
from indexplan.cli.common import emit, option_of
from indexplan.cli.parsing import Parser, new_parser
from indexplan.errors import Cure, IndexPlanError, PlanFileError

OK, WRONG_PLAN, WRONG_COMMAND = 0, 1, 2
VERBS = (
    *(build, show, locate, explain, diff, verify, export, plot),
    *(ledger, shards, orders, bench),
)


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
    known: Parser | None = None
    try:
        options = parser.parse_args(words)
        known = verbs.choices[options.verb]
        for name in options.modules:
            _import(name)
        answer = options.run(options)
        emit(options, answer)
        sys.stdout.flush()
    except IndexPlanError as error:
        return _complain(in_words_of(known, error), as_json)
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    fine = answer.same if options.exit_code else getattr(answer, "ok", True)
    return OK if fine else WRONG_PLAN


def parser_of_verbs() -> tuple[Parser, Any]:
    """Return the parser of all commands, and its verbs, whose `choices` are their parsers."""
    parser = new_parser()
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    for verb in VERBS:
        verb.add(verbs)
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


def in_words_of(parser: Parser | None, error: IndexPlanError) -> IndexPlanError:
    """Return an error as a verb says it: --world-size, not plan.replace."""
    option = option_of(error.what)
    known = parser is not None and option in parser.known
    return type(error)(
        option if known else error.what,
        error.rule,
        "none" if error.got == "None" else error.got,
        error.cure.command if isinstance(error.cure, Cure) else error.cure,
    )


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
    sys.stderr.write(f"indexplan: {error}\n")
    return code
