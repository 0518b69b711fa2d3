"""The warning about a long wait for a shard: which process fetches it, and how far it is."""

from __future__ import annotations

import time
from typing import NamedTuple

from indexplan import Shards
from indexplan.errors import printable
from indexplan_fetch.folder import Folder
from indexplan_fetch.locks import is_held, read_note

BEAT = 1.0  # seconds between notes of the process that fetches
GONE = 10.0  # seconds without a note after which the process counts as not running
NOTE = 8192  # bytes of a note
TOLD = 64  # fetches in a note, at most


class Coming(NamedTuple):
    """How far a fetch is."""

    shard: int
    num_bytes: int
    idle: float
    """Seconds since the last byte came."""
    num_tries: int


class Beat(NamedTuple):
    """What the process that fetches for a node notes each second."""

    pid: int
    rank: int | None
    time: float
    """By the machine's monotonic clock."""
    full: bool
    """Whether the next shard has to wait for room."""
    coming: list[Coming]


def warning(folder: Folder, shards: Shards, shard: int, waited: float) -> str:
    """Return the warning about a shard that was waited for for `waited` seconds."""
    name, _ = shards.part(shard)
    text = f"a batch has waited {waited:.0f} seconds for shard {shard}, {shards.path}/{name}: "
    return printable(text + _why(folder, shards, shard))  # one line, whatever the names


def _why(folder: Folder, shards: Shards, shard: int) -> str:
    note = read_note(folder.fetcher) if is_held(folder.fetcher) else None
    if note is None:
        cure = f"if `fuser {folder.fetcher}` shows one, end it, and another process fetches"
        return f"no process says that it fetches; {cure}"
    pid, rank, noted, full, coming = Beat(*note)
    who = f"process {pid}" if rank is None else f"rank {rank} (process {pid})"
    gone = time.monotonic() - noted
    if gone > GONE:
        return (
            f"{who}, which fetches for this node, has not run for {gone:.0f} seconds; if it is "
            f"stopped, continue it (kill -CONT {pid}), or end it, and another process fetches"
        )
    idle = 0.0
    for each in (Coming(*fields) for fields in coming):
        if each.shard == shard:
            return f"{who} fetches it: {_how_far(folder, shards, each)}"
        idle = max(idle, each.idle)
    if full:
        return (
            f"{who} has no room for it beside shards that are needed earlier; pass more "
            "cache_bytes, or a cache_dir of its own to each run"
        )
    if not coming:
        return f"{who} has not begun to fetch it; check whether {folder.wanted} can be written to"
    return (
        f"{who} fetches {len(coming)} others before it, and no byte of one of them has come in the "
        f"last {idle:.0f} seconds; check the store and the network, or pass more num_threads"
    )


def _how_far(folder: Folder, shards: Shards, fetch: Coming) -> str:
    come, check = f"{fetch.num_bytes} bytes", "the store and the network"
    if shards.whole_files and folder.columns is None:
        most = shards.num_bytes[fetch.shard]
        come = f"{fetch.num_bytes} of {most} bytes"
        check = check if fetch.num_bytes < most else "the disk of cache_dir"
    return (
        f"{come} have come in attempt {fetch.num_tries}, none of them in the last "
        f"{fetch.idle:.0f} seconds; check {check}"
    )
