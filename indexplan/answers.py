"""Answers: results that programs, people and notebooks can read."""

from __future__ import annotations

import abc
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from itertools import zip_longest
from typing import Any

import numpy as np

from indexplan.errors import printable


class Answer(abc.ABC):
    """The base of results that print for people and turn into JSON for programs.

    `str` is the text that a command prints, and `to_dict()` returns JSON types. Notebooks show the
    text. Quoted text, such as a file's name, is escaped for notebooks and terminals.

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
        """Return the answer as JSON types: its fields by name."""
        names = [field.name for field in fields(self)]  # type: ignore[arg-type]  # of a dataclass
        return {name: as_json(getattr(self, name)) for name in names}

    @abc.abstractmethod
    def __str__(self) -> str:
        """Return what the command prints."""

    def _repr_html_(self) -> str:
        """Return the text for notebooks, escaped."""
        return html_of_text(str(self))


@dataclass(frozen=True)
class Shown(Answer):
    """An answer without its own class: its data and its text."""

    data: Mapping[str, Any]
    words: str

    def to_dict(self) -> dict[str, Any]:
        """Return the data as JSON types."""
        return {name: as_json(value) for name, value in self.data.items()}

    def __str__(self) -> str:
        return self.words


def as_json(value: Any) -> Any:
    """Return a value as JSON types: records as objects, tuples and NumPy's arrays as arrays."""
    if isinstance(value, Answer):
        return value.to_dict()
    if is_dataclass(value):
        return {field.name: as_json(getattr(value, field.name)) for field in fields(value)}
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return {name: as_json(each) for name, each in value.items()}
    return [as_json(each) for each in value] if isinstance(value, list | tuple) else value


def html_of_text(text: str) -> str:
    """Return a text for notebooks, escaped, in the colours of the page."""
    import html  # which only a notebook needs

    return f"<pre>{html.escape(printable_lines(text))}</pre>"


def table(rows: Sequence[Sequence[str]], least: Sequence[int] = ()) -> list[str]:
    """Align cells in columns, the first one to the left; in several tables on a narrow terminal.

    Each table repeats the first column. Lines have at most 80 characters, so that the text is the
    same in a file and on a wide terminal.

    Parameters
    ----------
    rows : sequence of sequence of str
        The headings, then the cells of each row; all of equal lengths.
    least : sequence of int
        The minimum width of each column.

    Examples
    --------
    >>> for line in table([["epoch", "steps"], ["0", "1,024"], ["10", "64"]], least=(8, 8)):
    ...     print(line)
    epoch       steps
    0           1,024
    10             64
    """
    room = min(80, shutil.get_terminal_size((80, 24)).columns)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    widths = [max(pair) for pair in zip_longest(widths, least, fillvalue=0)]
    blocks: list[list[int]] = [[]]
    used = widths[0]
    for column in range(1, len(widths)):
        used += 1 + widths[column]
        if used > room and blocks[-1]:
            blocks.append([])
            used = widths[0] + 1 + widths[column]
        blocks[-1].append(column)
    return [
        f"{row[0]:<{widths[0]}}" + "".join(f" {row[i]:>{widths[i]}}" for i in block)
        for block in blocks
        for row in rows
    ]


def printable_lines(text: str) -> str:
    """Return a text with escapes for everything that is not printable, except line ends."""
    return "\n".join(printable(line) for line in text.split("\n"))
