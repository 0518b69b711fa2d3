"""Parse what is typed: argparse, whose errors are raised as the library's, in one line."""

from __future__ import annotations

import argparse
from typing import Any, NoReturn

import indexplan as ip
from indexplan.errors import IndexPlanError

ADDRESS = "https://github.com/indexplan/indexplan/tree/main/docs"


class Formatter(argparse.HelpFormatter):
    """Wraps paragraphs to the terminal's width, but no commands, which are there to be copied."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n\n".join(
            each
            if each.startswith("  ") or "\n  " in each
            else super(Formatter, self)._fill_text(each, width, indent)
            for each in text.split("\n\n")
        )


class Parser(argparse.ArgumentParser):
    """A parser of a verb or of all, whose errors are those of the library."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, formatter_class=Formatter)

    @property
    def known(self) -> frozenset[str]:
        """The options that this parser takes."""
        return frozenset(self._option_string_actions)

    def error(self, message: str) -> NoReturn:
        """Raise what argparse finds wrong, in its words."""
        rule, cure = f"must be written as its help says ({message})", f"see `{self.prog} --help`"
        raise IndexPlanError(f"`{self.prog}`", rule, None, cure)


def new_parser() -> Parser:
    """Return the parser of all commands, still without verbs."""
    parser = Parser(
        prog="indexplan",
        description="Which dataset index does rank r read at step t of epoch e?",
        epilog="`indexplan VERB --help` describes a verb and its options, with examples. Exit "
        "codes: 0 all is well; 1 a plan or a file is wrong; 2 the command is wrong.\n\n"
        f"documentation: {ADDRESS}",
    )
    version = f"indexplan {ip.__version__}"
    parser.add_argument("-V", "--version", action="version", version=version)
    return parser
