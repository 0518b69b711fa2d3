"""The kinds of orders: what the text of an order may call, and the arguments of each."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from inspect import Parameter, cleandoc, formatannotation, signature
from typing import Any

from indexplan.answers import Answer
from indexplan.cli.written import HELPERS
from indexplan.orders.registry import registered


@dataclass(frozen=True, kw_only=True)
class Argument:
    """An argument of what makes an order, as its signature and its docstring describe it.

    Parameters
    ----------
    name, type : str
    required : bool
    default : object
        None if the argument is required.
    words : str
        The argument's description in one line; empty if there is none.
    """

    name: str
    type: str
    required: bool
    default: Any
    words: str

    def __str__(self) -> str:
        kind = self.type if self.required else f"{self.type}, {self.default!r}"
        return f"    {self.name:<14}{kind:<11} {self.words}".rstrip()


@dataclass(frozen=True, kw_only=True)
class Kind(Answer):
    """A kind of order, or a function that helps to make one: its name, what it does, its arguments.

    Examples
    --------
    >>> import indexplan as ip
    >>> print(Kind.of(ip.Sequential))
    Sequential: Every epoch reads samples 0, 1, 2, ... in turn.
        num_samples   int         Samples in the dataset, 1 <= num_samples < 2**63.
    >>> [argument.name for argument in Kind.of(ip.BlockShuffle).arguments]
    ['num_samples', 'block_size', 'window', 'seed']
    """

    name: str
    algorithm: str  # empty for what is no kind, such as curriculum
    words: str
    arguments: tuple[Argument, ...]

    @classmethod
    def of(cls, make: Callable[..., Any]) -> Kind:
        """Return what a class of orders, or a function, says of itself."""
        text = cleandoc(make.__doc__ or "")
        if text.startswith(f"{make.__name__}("):  # what a dataclass without a docstring has
            text = ""
        described = _described(text)
        return cls(
            name=make.__name__,
            algorithm=getattr(make, "algorithm", ""),
            words=text.partition("\n")[0],
            arguments=tuple(
                _argument(each, described) for each in signature(make).parameters.values()
            ),
        )

    def __str__(self) -> str:
        return "\n".join([f"{self.name}: {self.words}".rstrip(": "), *map(str, self.arguments)])


def kinds() -> list[Kind]:
    """Return the registered kinds of orders, by name."""
    return sorted(map(Kind.of, registered()), key=lambda kind: kind.name)


def helpers() -> list[Kind]:
    """Return what else the text of an order may call, by name."""
    return [Kind.of(getattr(import_module(HELPERS[name]), name)) for name in sorted(HELPERS)]


def _argument(parameter: Parameter, words: dict[str, str]) -> Argument:
    required = parameter.default is Parameter.empty
    return Argument(
        name=parameter.name,
        # as text, since what it names may be imported for type checkers only
        type=re.sub(r"[\w.]+\.(?=Column\b)", "", formatannotation(parameter.annotation).strip("'")),
        required=required,
        default=None if required else parameter.default,
        words=words.get(parameter.name, ""),
    )


def _described(text: str) -> dict[str, str]:
    """Return the description of each parameter in a docstring, each as one line."""
    _, _, section = text.partition("\nParameters\n----------\n")
    section = re.split(r"\n\n\S.*\n-+(?:\n|$)", section)[0]  # up to the next one
    found: dict[str, str] = {}
    for entry in re.split(r"\n(?=\S)", section):
        heading, _, words = entry.partition("\n")
        for name in heading.partition(" :")[0].split(","):
            found[name.strip()] = " ".join(words.split())
    return found
