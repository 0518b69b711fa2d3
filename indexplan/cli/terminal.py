"""Write for a terminal: break lines between words, and add a little colour.

Text that goes to a file or to another program gets neither, so that a line stays a line.
"""

from __future__ import annotations

import os
import re
import shutil
import textwrap
from typing import TextIO

GREEN, RED, BOLD = "32", "1;31", "1"
# what is coloured at the start of a line: results of checks, errors, and headings of tables
PAINTED = (
    (r"^ok(?=  )", GREEN),
    (r"^BAD(?= )", RED),
    (r"^indexplan:", RED),
    (r"^(?:epoch|group)  +\S.*$", BOLD),
)
# lines to be copied: Python of `show`, and commands, with what follows a backslash
CODE = re.compile(r"import |plan = |place = |  indexplan |    -")


def for_terminal(text: str, stream: TextIO) -> str:
    """Return a text as it is to be written to a stream: changed only for a terminal."""
    if not stream.isatty():
        return text
    columns = shutil.get_terminal_size((80, 24)).columns
    text = "\n".join(fitted(line, columns) for line in text.split("\n"))
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return text
    for pattern, colour in PAINTED:
        paint = f"\x1b[{colour}m\\g<0>\x1b[0m"
        text = re.sub(pattern, paint, text, flags=re.MULTILINE)
    return text


def fitted(line: str, columns: int) -> str:
    """Break a line between words where it is longer than a terminal is wide.

    The rest is indented: below the text after a label and two spaces, if the line has a label. A
    word that is longer than a line, such as a path, stays whole, and so does a line of code.
    """
    if CODE.match(line):
        return line
    label = re.match(r" *\S+(?: \S+)*? {2,}(?=\S)", line)
    if len(line) <= columns or (label and " " not in line[len(label[0]) :]):
        return line
    indent = len(line) - len(line.lstrip(" ")) + 4
    if label and len(label[0]) <= columns // 2:
        indent = len(label[0])
    parts = textwrap.wrap(
        line,
        max(columns, 20),
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
        replace_whitespace=False,
    )
    return "\n".join(parts)
