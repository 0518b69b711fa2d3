"""`indexplan help`: the same pages as --help."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from typing import Any

from indexplan.answers import Shown
from indexplan.cli.common import OK, add_verb, emit


def add(verbs: Any, parser: argparse.ArgumentParser) -> None:
    """Add the verb, which prints the help of a parser or of one of its verbs, itself among them."""
    command = add_verb(
        verbs,
        "help",
        partial(run, parser, verbs),
        "print the help of a verb",
        examples=("indexplan help", "indexplan help build"),
    )
    names = (*verbs.choices,)
    words = f"one of {', '.join(names)}; leave it out to list what each of them does"
    command.add_argument("about", nargs="?", choices=names, metavar="VERB", help=words)


def run(parser: argparse.ArgumentParser, verbs: Any, options: Any) -> int:
    """Print the page."""
    about = parser if options.about is None else verbs.choices[options.about]
    page = about.format_help()
    if options.json:
        emit(options, Shown({"verb": options.about, "help": page}, page))
    else:  # which is wrapped already
        sys.stdout.write(page)
    return OK
