"""Before a verb fills a disk: it asks at a terminal, and needs --force elsewhere."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from indexplan.errors import wrong

LIMIT = 10**11  # bytes that are written without a question


def add_force(command: argparse.ArgumentParser) -> None:
    """Add the option that lets a verb write any number of bytes."""
    words = "write more than 100 GB without asking"
    command.add_argument("--force", action="store_true", help=words)


def check_size(options: Any, path: str, num_bytes: int) -> None:
    """If more than 100 GB are to be written, ask at a terminal whether to.

    Raises
    ------
    IndexPlanError
        If the answer is no, or there is no terminal to ask at.
    """
    if options.force or num_bytes <= LIMIT:
        return
    size = f"{num_bytes / 1e12:,.1f} TB" if num_bytes >= 1e12 else f"{num_bytes / 1e9:,.0f} GB"
    if sys.stdin.isatty() and sys.stderr.isatty() and not options.json:
        sys.stderr.write(f"write {size} to {path}? [y/N] ")
        sys.stderr.flush()
        if sys.stdin.readline().strip().lower() in ("y", "yes"):
            return
    cure = "add --force, or keep the plan as JSON, which Plan.to_json writes"
    raise wrong("--force", "given to write more than 100 GB", f"{size} for {path}", cure)
