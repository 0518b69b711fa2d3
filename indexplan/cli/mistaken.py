"""What a path holds, for verbs that take plans, ledgers or shards."""

from __future__ import annotations

import json
from pathlib import Path

from indexplan.files.format import FORMAT, PLAN

BEGIN = b'{"check":"'  # of a ledger


def is_ledger(path: str) -> bool:
    """Return whether a path holds the ledger of a run, as far as its first bytes tell."""
    try:
        with Path(path).open("rb") as file:
            return file.read(len(BEGIN)) == BEGIN
    except (OSError, ValueError):
        return False


def is_plan_directory(path: str) -> bool:
    """Return whether a path holds a plan directory, and not just a plan's JSON of that name."""
    try:
        found = json.loads(Path(path, PLAN).read_bytes())
        return isinstance(found, dict) and found.get("format") == FORMAT
    except (OSError, ValueError, RecursionError):
        return False
