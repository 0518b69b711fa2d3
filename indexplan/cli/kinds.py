"""The kinds of orders: what the text of an order may call, and the arguments of each."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from inspect import Parameter, cleandoc, formatannotation, signature
from typing import Any

from indexplan.answers import Answer
from indexplan.cli.order_examples import IN_TEXT, example_of
from indexplan.cli.written import HELPERS
from indexplan.orders.registry import registered

SAID = "--num-samples, --dataset or --shards says it"
FILLED = {"num_samples": SAID, "num_tokens": SAID, "sizes": "--shards gives them"}
# types in words: the first that an annotation has decides
PLAIN = (
    (r"Column|ArrayLike|Numbers|Entries", "column"),
    (r"^Mapping\[.*Sequence", "dict or list"),
    (r"^Mapping", "dict"),
    (r"^(?:Sequence|tuple|list)", "list"),
    (r"^int \| tuple", "integer or list"),
    (r"^int \| str", "integer or text"),
    (r"^int\b", "integer"),
    (r"^float\b", "number"),
    (r"^str\b", "text"),
    (r"^bool\b", "True or False"),
    (r"^Order\b", "order"),
    (r"^Any\b", "column"),
)


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

    @property
    def in_words(self) -> str:
        """The type and the default, as in a command's help, and what the argument is for."""
        default = "none" if self.default in (None, ()) else f"{self.default!r}"
        kind = _plain(self.type) + ("" if self.required else f" ({default})")
        return f"{kind}: {self.words}".removesuffix(": ")


@dataclass(frozen=True, kw_only=True)
class Kind(Answer):
    r"""A kind of order, or a function that helps to make one: what it does, and its arguments.

    Examples
    --------
    >>> import indexplan as ip
    >>> print(Kind.of(ip.Sequential))
    Sequential: Every epoch reads samples 0, 1, 2, ... in turn.
    <BLANKLINE>
    For evaluation, and for datasets that are shuffled already.
    <BLANKLINE>
    write it as:
      Sequential(num_samples)
    <BLANKLINE>
    arguments:
      num_samples  integer: Samples in the dataset, 1 <= num_samples < 2**63.
    <BLANKLINE>
    You can leave out num_samples if --num-samples, --dataset or --shards says it.
    <BLANKLINE>
    example:
      indexplan build run.plan --batch-size 4 \
        --num-samples 1e6 --order 'Sequential()'
    >>> [argument.name for argument in Kind.of(ip.BlockShuffle).arguments]
    ['num_samples', 'block_size', 'window', 'seed']
    """

    name: str
    algorithm: str  # empty for what is no kind, such as curriculum
    words: str
    arguments: tuple[Argument, ...]
    purpose: tuple[str, ...] = ()  # a paragraph each
    example: str = ""

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
            purpose=_paragraphs(text),
            example=example_of(make.__name__),
            arguments=tuple(
                _argument(each, described) for each in signature(make).parameters.values()
            ),
        )

    def __str__(self) -> str:
        """Return its page."""
        room = max((len(each.name) for each in self.arguments), default=0)
        listed = [f"  {each.name:{room}}  {each.in_words}".rstrip() for each in self.arguments]
        parts = [f"{self.name}: {self.words}".rstrip(": "), *self.purpose]
        parts.append(f"write it as:\n  {self.text_form}")
        if listed:
            parts.append("\n".join(["arguments:", *listed]))
        parts += self._notes()
        if self.example:
            parts.append(f"example:\n  {self.example}")
        return "\n\n".join(parts)

    @property
    def text_form(self) -> str:
        """How it is written, with its defaults."""
        named = [
            each.name if each.required else f"{each.name}={each.default!r}"
            for each in self.arguments
        ]
        return f"{self.name}({', '.join(named)})"

    def _notes(self) -> list[str]:
        """Return what somebody who writes text has to know."""
        filled = [each.name for each in self.arguments if each.required and each.name in FILLED]
        notes = [f"You can leave out {name} if {FILLED[name]}." for name in filled]
        if any(_plain(each.type) == "column" for each in self.arguments):
            notes.append("A column is the path of a .npy file, or a short list of numbers.")
        return [*notes, IN_TEXT[self.name]] if self.name in IN_TEXT else notes


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


def _plain(annotation: str) -> str:
    """Return a type in words."""
    return next((words for known, words in PLAIN if re.search(known, annotation)), annotation)


def _paragraphs(text: str) -> tuple[str, ...]:
    """Return what a docstring says between its first line and its sections."""
    said = re.split(r"\n\S.*\n-+(?:\n|$)", text)[0].partition("\n")[2]
    return tuple(" ".join(each.split()) for each in said.split("\n\n") if each.strip())


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
