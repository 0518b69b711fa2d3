"""A ratchet: no room has more lines than CONTRIBUTING.md grants it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TOP = Path(__file__).parents[1]
SECTION = (TOP / "CONTRIBUTING.md").read_text().partition("## How large a room may be\n")[2]
ROOMS = dict(
    re.findall(r"^\| ([a-z_/, ]+) \| (\d+) \|$", SECTION.partition("\n## ")[0], re.MULTILINE)
)


def lines_of(room: str) -> int:
    """Return the lines of all Python files of the folders of a room."""
    folders = [room] if room.startswith(("indexplan", "adapters")) else []
    folders = folders or [f"indexplan/{name}" for name in room.split(", ")]
    files = [path for folder in folders for path in (TOP / folder).rglob("*.py")]
    assert files, f"{room} is no room"
    return sum(len(path.read_text().splitlines()) for path in files)


@pytest.mark.parametrize("room", ROOMS)
def test_no_room_outgrows_its_number(room: str) -> None:
    """What grows past it either lets something go, or says in its commit what the lines buy."""
    assert lines_of(room) <= int(ROOMS[room])


def test_every_folder_is_in_a_room() -> None:
    """A new folder of the library needs a number too."""
    folders = {path.parent.name for path in (TOP / "indexplan").glob("*/__init__.py")}
    assert folders <= {name for room in ROOMS for name in room.split(", ")}
