"""Answers: what a plan's questions return, in one shape for programs, people and notebooks."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from indexplan.errors import printable

LONGEST = 300  # characters of a field in a notebook


class Answer(abc.ABC):
    """A frozen dataclass that a command prints: as JSON for programs, as text for people.

    Notebooks show the text. What an answer quotes, such as a file's name, is neither markup to them
    nor a command to a terminal.

    Examples
    --------
    >>> import indexplan as ip
    >>> account = ip.Plan(ip.Shuffle(1000), world_size=8, batch_size=16).account(epoch=0)
    >>> print(account)
    1,000 units: 1,000 read, 0 dropped, 0 finished; 8 steps of 15 to 16 units per rank, 0 padded
    >>> account.to_dict()["num_steps"]
    8
    """

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as JSON types: its fields, by their names."""
        names = [field.name for field in fields(self)]  # type: ignore[arg-type]  # of a dataclass
        return {name: as_json(getattr(self, name)) for name in names}

    @abc.abstractmethod
    def __str__(self) -> str:
        """Return what the command prints."""

    def _repr_html_(self) -> str:
        """Return the text for notebooks, with everything escaped."""
        return html_of_text(str(self))


@dataclass(frozen=True)
class Shown(Answer):
    """An answer that has no class of its own: its data, and its words."""

    data: Mapping[str, Any]
    words: str

    def to_dict(self) -> dict[str, Any]:
        """Return the data as JSON types."""
        return {name: as_json(value) for name, value in self.data.items()}

    def __str__(self) -> str:
        return self.words


def as_json(value: Any) -> Any:
    """Return a value as JSON types: records as objects, tuples as arrays."""
    if isinstance(value, Answer):
        return value.to_dict()
    if is_dataclass(value):
        return {field.name: as_json(getattr(value, field.name)) for field in fields(value)}
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, Mapping):
        return {name: as_json(each) for name, each in value.items()}
    return [as_json(each) for each in value] if isinstance(value, list | tuple) else value


def html_of_text(text: str) -> str:
    """Return a text for notebooks, with everything escaped, in the colours of the page."""
    import html  # which only a notebook needs

    return f"<pre>{html.escape(printable_lines(text))}</pre>"


def html_of_fields(value: Any) -> str:
    """Return a dataclass or a named tuple for notebooks: what its `repr` holds, a line a field."""
    names = [field.name for field in fields(value) if field.repr] if is_dataclass(value) else []
    names = list(getattr(value, "_fields", names))
    if not names:
        return html_of_text(repr(value))
    room = max(map(len, names))
    lines = [f"{name:{room}}  {_on_one_line(getattr(value, name))}" for name in names]
    return html_of_text("\n".join([type(value).__name__, *(f"  {line}" for line in lines)]))


def _on_one_line(value: Any) -> str:
    text = " ".join(repr(value).split())  # arrays have line ends
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def printable_lines(text: str) -> str:
    """Return a text of any number of lines, with escapes for what else is not printable."""
    return "\n".join(printable(line) for line in text.split("\n"))
