"""Parse what is typed: the options of a verb, and one line of error where a word is wrong."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

import indexplan as ip
from indexplan.errors import IndexPlanError, did_you_mean, wrong

# argparse's words, and ours for the same: what, the rule, what it got
REASONS = (
    (r"argument (.*?): (must be .*); got (.*)", ("{0}", "{1}", "{2}")),  # by `number` and others
    (r"argument (.*?): expected .*", ("{0}", "needs a value", "")),
    (r"argument (.*?): ignored explicit argument (.*)", ("{0}", "must have no value", "{1}")),
    (r"the following arguments are required: (.*)", ("`{prog}`", "needs {0}", "")),
    (r"unrecognized arguments: (.*)", ("`{prog}`", "must have no more arguments", "{0!r}")),
)


class Parser(argparse.ArgumentParser):
    """A parser whose errors are those of the library: raised, in one line, with a cure."""

    def error(self, message: str) -> NoReturn:
        """Raise what is wrong with a command."""
        what, rule, got = f"`{self.prog}`", "must be written as its help says", message
        for pattern, words in REASONS:
            if found := re.fullmatch(pattern, message, re.DOTALL):
                what, rule, got = [each.format(*found.groups(), prog=self.prog) for each in words]
                break
        raise IndexPlanError(what, rule, got or None, f"see `{self.prog} --help`")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Raise unless the value of an option is one of its choices; argparse calls this."""
        if action.choices is not None and value not in action.choices:
            known = list(action.choices)
            what = "/".join(action.option_strings) or str(action.metavar)
            cure = did_you_mean(value, known) + f"see `{self.prog} --help`"
            raise wrong(what, f"one of {', '.join(known)}", value, cure)


def options_in(words: Sequence[str], parser: argparse.ArgumentParser, verbs: Any) -> Any:
    """Return the options that a command's words give.

    Raises
    ------
    IndexPlanError
        If the parser or the verb's own parser does not know a word.
    SystemExit
        With 0, if help or the version is asked for.
    """
    place = next((i for i, word in enumerate(words) if not word.startswith("-")), len(words))
    _check_names(parser, words[:place])
    if place < len(words):
        known = list(verbs.choices)
        if words[place] not in known:
            cure = did_you_mean(words[place], known) + "see `indexplan --help`"
            raise wrong("the verb", f"one of {', '.join(known)}", words[place], cure)
        _check_names(verbs.choices[words[place]], words[place + 1 :])
    options, more = parser.parse_known_args(words)
    if more:
        verbs.choices[words[place]].error(f"unrecognized arguments: {' '.join(more)}")
    return options


def _check_names(parser: argparse.ArgumentParser, words: Iterable[str]) -> None:
    """Raise unless each option among the words is one of the parser's, or begins one of them.

    Before argparse looks, as that would first complain that a misspelt option is missing.
    """
    known = [name for name in parser._option_string_actions if name.startswith("--")]  # noqa: SLF001
    for word in words:
        if word == "--":
            return
        name = word.partition("=")[0]
        if not name.startswith("--") or name in known:
            continue
        meant = [each for each in known if each.startswith(name)]
        if not meant:
            cure = did_you_mean(name, known) + f"see `{parser.prog} --help`"
            raise wrong("an option", f"one that `{parser.prog}` has", name, cure)
        if len(meant) > 1:
            rule = f"the beginning of one option, not of {' and '.join(meant)}"
            raise wrong("an option", rule, name, "write it in full")


def new_parser() -> Parser:
    """Return the parser of all commands, still without verbs."""
    parser = Parser(
        prog="indexplan",
        description="Which dataset index does rank r read at step t of epoch e?",
        epilog="Exit codes: 0 all is well; 1 a plan or file is wrong; 2 the command is wrong.",
    )
    version = f"indexplan {ip.__version__}"
    parser.add_argument("-V", "--version", action="version", version=version)
    return parser
