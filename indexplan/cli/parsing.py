"""Parse what is typed: the options of a verb, and one line of error where a word is wrong."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

import indexplan as ip
from indexplan.cli.helping import Formatter, in_groups, with_address
from indexplan.errors import IndexPlanError, did_you_mean, shown, wrong


class Parser(argparse.ArgumentParser):
    """A parser whose errors are those of the library: raised, in one line, with a cure."""

    example = ""  # a command that works, for the cure of one that lacks something
    one_of: Sequence[Sequence[str]] = ()  # groups of options; one of each group is needed

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, exit_on_error=False, formatter_class=Formatter)

    def format_help(self) -> str:
        """Return the page of help."""
        return with_address(super().format_help())

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Read words, or raise what is wrong with them; argparse calls this for each verb."""
        found = argparse.Namespace() if namespace is None else namespace
        try:
            read = super().parse_known_args(args, found)
        except argparse.ArgumentError as error:
            raise self._told(error, found) from error.__context__
        if len(missing := self._missing(found)) > 1:  # a single one has an error of its own
            raise self._lacks(missing)
        return read

    def _missing(self, found: argparse.Namespace) -> list[str]:
        """Return all that a command needs and has not been given."""
        needed = [each for each in self._actions if each.required]
        missing = [_named(each) for each in needed if getattr(found, each.dest, None) is None]
        return missing + [
            f"one of {_listed(names, 'or')}"
            for names in self.one_of
            if all(getattr(found, name[2:].replace("-", "_")) is None for name in names)
        ]

    def _lacks(self, missing: Sequence[str]) -> IndexPlanError:
        cure = f"write it as in `{self.example}`" if self.example else f"see `{self.prog} --help`"
        return IndexPlanError(f"`{self.prog}`", f"needs {_listed(missing)}", None, cure)

    def error(self, message: str) -> NoReturn:
        """Raise what argparse finds wrong, in its words, which nobody takes apart."""
        raise argparse.ArgumentError(None, message)

    def _told(self, error: argparse.ArgumentError, found: argparse.Namespace) -> IndexPlanError:
        """Return an error of argparse in our words, by what it is about and by what was read."""
        cure = f"see `{self.prog} --help`"
        if (name := error.argument_name) is not None:
            if isinstance(error.__context__, IndexPlanError):  # raised by `number`
                return IndexPlanError(name, error.__context__.rule, error.__context__.got, cure)
            action = self._option_string_actions.get(name.partition("/")[0])
            is_flag = action is not None and action.nargs == 0
            rule = "must have no value" if is_flag else "needs a value"
            return IndexPlanError(name, rule, None, cure)
        if missing := self._missing(found):
            return self._lacks(missing)
        return IndexPlanError(f"`{self.prog}`", "must be written as its help says", error, cure)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Raise unless the value of an option is one of its choices; argparse calls this."""
        if action.choices is not None and value not in action.choices:
            known = list(action.choices)
            cure = did_you_mean(value, known) + f"see `{self.prog} --help`"
            raise wrong(_named(action), f"one of {', '.join(known)}", value, cure)


class VerbsParser(Parser):
    """The parser of all commands, whose help lists the verbs in groups."""

    groups: Mapping[str, Iterable[str]]  # the names of the verbs under each heading

    def format_help(self) -> str:
        """Return the page of help."""
        return with_address(in_groups(self, self.groups))


def _listed(words: Sequence[str], last: str = "and") -> str:
    """Return words as a list, with "and" before the last, and a comma too if they have commas."""
    comma = "," * any(" " in word for word in words)
    return f"{comma} {last} ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def _named(action: argparse.Action) -> str:
    return "/".join(action.option_strings) or str(action.metavar)


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
        prog = verbs.choices[words[place]].prog
        rule, cure = "must have no more arguments", f"see `{prog} --help`"
        raise IndexPlanError(f"`{prog}`", rule, shown(" ".join(more)), cure)
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


def new_parser() -> VerbsParser:
    """Return the parser of all commands, still without verbs."""
    parser = VerbsParser(
        prog="indexplan",
        description="Which dataset index does rank r read at step t of epoch e?",
        epilog="`indexplan help VERB` describes a verb and its options, with examples. Exit "
        "codes: 0 all is well; 1 a plan or a file is wrong; 2 the command is wrong.",
    )
    version = f"indexplan {ip.__version__}"
    parser.add_argument("-V", "--version", action="version", version=version)
    return parser
