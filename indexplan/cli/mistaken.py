"""What a path holds, for verbs that take plans, ledgers or shards."""

from __future__ import annotations

import os
from pathlib import Path

from indexplan.files.format import PLAN

BEGIN = b'{"check":"'  # of a ledger


def is_ledger(path: str) -> bool:
    """Return whether a path holds the ledger of a run, as far as its first bytes tell."""
    try:
        with Path(path).open("rb") as file:
            return file.read(len(BEGIN)) == BEGIN
    except (OSError, ValueError):
        return False


def is_plan_directory(path: str) -> bool:
    """Return whether a path holds a plan directory."""
    return os.path.isfile(os.path.join(path, PLAN))  # noqa: PTH113, PTH118 (raises nothing)
