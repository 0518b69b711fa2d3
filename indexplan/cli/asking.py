"""Before a verb fills a disk: it needs --force."""

from __future__ import annotations

import argparse
from typing import Any

import indexplan as ip
from indexplan.errors import invalid

LIMIT = 10**11  # bytes that are written without --force


def add_force(command: argparse.ArgumentParser) -> None:
    """Add the option that lets a verb write any number of bytes."""
    words = "write it even if it takes more than 100 GB"
    command.add_argument("--force", action="store_true", help=words)


def check_size(options: Any, path: str, num_bytes: int) -> None:
    """Raise `IndexPlanError` if more than 100 GB are to be written without --force."""
    if options.force or num_bytes <= LIMIT:
        return
    size = f"{num_bytes / 1e12:,.1f} TB" if num_bytes >= 1e12 else f"{num_bytes / 1e9:,.0f} GB"
    cure = "add --force, or keep the plan as JSON, which Plan.to_json writes"
    raise invalid("--force", "given to write more than 100 GB", f"{size} for {path}", cure)


def size_of(order: ip.Order, epoch: int) -> int:
    """Return about how many bytes the indices of an epoch take."""
    units, each = order.num_units(epoch), 4 if order.num_samples <= 2**32 else 8
    return 8 * units + each * order.num_samples if order.deals_bins else each * units
