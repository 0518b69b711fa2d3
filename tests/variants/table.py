"""Reads laws.txt: a room, a file of the library, and its laws, each with a wrong variant.

A line that begins with # names the room of what follows, and one that is not indented the file in
which variants are planted. Then come laws, a sentence each, and below it the lines of its variant:

- `-`: code that stands in the file once, in one or more lines
- `+`: what is planted in its place
- `:`: the tests that must fail with it
- `needs`: what has to be importable, if it is more than what the tests' group installs
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

TOP = Path(__file__).parents[2]


@dataclass
class Law:
    """A law, the file that holds it, and a variant that breaks it."""

    room: str
    file: str
    says: str
    code: list[str] = field(default_factory=list)
    planted: list[str] = field(default_factory=list)
    tests: list[str] = field(default_factory=list)
    needs: list[str] = field(default_factory=list)

    def plant(self, text: str) -> str:
        """Return a file's text with the variant in it; ValueError if its code isn't there once."""
        code = "\n".join(self.code)
        if not code or text.count(code) != 1:
            raise ValueError(f"{self.file} has {text.count(code)} times, not once: {code!r}")
        return text.replace(code, "\n".join(self.planted))


def laws() -> list[Law]:
    """Return all laws, in the order of the file."""
    found: list[Law] = []
    room = file = ""
    for line in Path(__file__).with_name("laws.txt").read_text().splitlines():
        mark, _, rest = line.strip().partition(" ")
        depth = len(line) - len(line.lstrip())
        if not line.strip():
            continue
        if depth == 0 and mark == "#":
            room = rest
        elif depth == 0:
            file = line
        elif depth == 2:
            found.append(Law(room, file, line.strip()))
        elif mark in ("-", "+"):
            (found[-1].code if mark == "-" else found[-1].planted).append(rest)
        elif mark in (":", "needs"):
            named = re.findall(r"\S+\[[^]]*\]|\S+", rest)  # ids of cases may have blanks
            (found[-1].tests if mark == ":" else found[-1].needs).extend(named)
        else:
            raise ValueError(f"laws.txt has a line that says nothing: {line!r}")
    return found
