"""Every verb calls one public function, and says what it did.

Exit codes: 0, all is well; 1, a plan or file is wrong; 2, the command is wrong.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

import indexplan as ip
from indexplan.cli import (
    bench,
    build,
    diff,
    draws,
    explain,
    export,
    finish,
    locate,
    orders,
    plot,
    shards,
    show,
    traffic,
    verify,
    warm_up,
)
from indexplan.cli.common import OK, WRONG_COMMAND, WRONG_PLAN
from indexplan.errors import IndexPlanError, PlanFileError, printable

VERBS = (
    *(build, orders, finish, show, plot, draws, shards, traffic, locate, explain, diff, verify),
    *(export, bench, warm_up),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    if arguments is None:  # the command itself: Ctrl-C ends it at once, as it may be killed anyhow
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    options = _parser().parse_args(arguments)
    try:
        for name in options.modules:
            _import(name)
        code: int = options.run(options)
        sys.stdout.flush()
    except PlanFileError as error:
        return _complain(error, WRONG_PLAN)
    except IndexPlanError as error:
        return _complain(error, WRONG_COMMAND)
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    return code


def _import(name: str) -> None:
    """Import a module, which may be anything that somebody has written."""
    try:
        import_module(name)
    except Exception as error:
        got = f"{name!r} ({type(error).__name__}: {error})"
        rule = "--import must name a module that Python can import"
        cure = "set PYTHONPATH to the folder that it lies in"
        raise IndexPlanError(f"{rule}; got {got}; {cure}") from error


def _complain(error: Exception, code: int) -> int:
    sys.stderr.write(f"indexplan: {error}\n")
    return code


class _Parser(argparse.ArgumentParser):
    """A parser that prints a wrong word so that no terminal takes it for a command."""

    def error(self, message: str) -> NoReturn:
        super().error(printable(message))


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="indexplan",
        description="Which dataset index does rank r read at step t of epoch e?",
        epilog="Exit codes: 0 all is well; 1 a plan or file is wrong; 2 the command is wrong.",
    )
    parser.add_argument("--version", action="version", version=f"indexplan {ip.__version__}")
    verbs = parser.add_subparsers(title="verbs", required=True, metavar="VERB")
    for verb in VERBS:
        verb.add(verbs)
    return parser
