"""What errors of plan directories, exports and stores are provoked with."""

from __future__ import annotations

import json
import logging
import os
import pickle
import shutil
import tempfile
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

import fsspec
import numpy as np

import indexplan as ip
from indexplan.cli.common import open_either
from indexplan.files.format import Build
from indexplan.files.saving import write_chunk
from indexplan.orders import Traits
from indexplan.stores.open import store_of
from tests.errors.catalogue.made import (
    CHUNK,
    STORED,
    damaged,
    locked,
    saved,
    stores,
    without,
    written,
)
from tests.support.bins import Bins
from tests.support.forging import rehashed

HASHES = CHUNK.replace(".npy", ".xxh64")


def scan(pattern: str = "**/*") -> ip.Dataset:
    """Scan a folder of 2 files."""
    written("data/a.txt")
    written("data/b.txt")
    return ip.Dataset.scan("data", pattern)


def build_again(change: Callable[[Path], Any], **options: Any) -> None:
    """Build a plan, change something, and build it again."""
    change(saved())
    saved(**options)


def file_for_a_folder(root: Path) -> None:
    """Put a file where an epoch's folder belongs."""
    shutil.rmtree(root / "epoch-00000")
    written(f"{root}/epoch-00000")


def locked_again(root: Path, modes: dict[str, int]) -> None:
    """Build once more as somebody whom the modes of some paths keep from it."""
    locked({f"{root}/{name}".rstrip("/"): mode for name, mode in modes.items()}, saved)


def leftover(root: str | Path, name: str = "chunk-00000") -> None:
    """Leave what a killed builder leaves."""
    path = written(f"{root}/epoch-00000/.{name}.npy.indexplan-01234567-1-0123456789ab.tmp")
    os.utime(path, (0, 0))


def open_after(change: Callable[[Path], Any]) -> None:
    """Open a plan in which something was changed."""
    root = saved()
    change(root)
    ip.load(root)


def read_after(change: Callable[[Path], Any]) -> None:
    """Open a plan, change something, and read."""
    root = saved()
    order = ip.types.Stored(root)
    change(root)
    order.take(0, 300)


def another(root: Path) -> None:
    """Put another plan in a plan's place."""
    shutil.rmtree(root)
    saved(plan=STORED.replace(batch_size=5))


def wrong_offsets(change: Callable[[Any], Any], ask: Callable[[ip.types.Stored], Any]) -> None:
    """Change the offsets of bins, and read."""
    ip.save(ip.Plan(Bins(50), batch_size=2), "a.plan")
    path = Path("a.plan/epoch-00000/chunk-00000.offsets.npy")
    data = path.read_bytes()
    path.write_bytes(data[:128] + change(np.load(path)).tobytes())
    rehashed(path)
    ask(ip.types.Stored("a.plan"))


def cut(root: Path) -> None:
    """Cut the end of a chunk off."""
    written(f"{root}/{CHUNK}", (root / CHUNK).read_bytes()[:-1])


def link(path: Path) -> None:
    """Put a link in a file's place."""
    path.rename("moved")
    path.symlink_to(Path("moved").absolute())


def huge(path: Path) -> None:
    """Make a file longer than any plan.json."""
    os.truncate(path, 2**30 + 1)


def forged_bins(name: str) -> None:
    """Open a plan of bins with a file that is one byte longer."""
    root = saved(plan=ip.Plan(Bins(10), batch_size=2))
    with (root / "epoch-00000" / name).open("ab") as stream:
        stream.write(b"x")
    ip.load(root)


def touched_after(change: Callable[[Path], Any]) -> None:
    """Read a plan in which something was changed."""
    root = saved()
    change(root)
    ip.load(root).order.take(0, 300)


def export(plan: ip.Plan = STORED, out: str = "out", **options: Any) -> Path:
    """Export a plan."""
    ip.export(plan, out, **options)
    return Path(out)


def export_again(change: Callable[[Path], Any], plan: ip.Plan = STORED) -> None:
    """Export a plan, change something, and export it again."""
    change(export())
    export(plan)


URL = "memory://a.plan"


def in_memory(name: str = "a") -> str:
    """Build a plan directory in an empty store; what a process has read, it has for good."""
    stores()
    saved(f"memory://{name}.plan")
    return f"memory://{name}.plan"


def as_store(name: str = "a.plan") -> str:
    """Name a folder as a store."""
    return f"local://{Path(name).absolute()}"


def read_store(content: bytes | None, cache: str = "cache") -> None:
    """Open a plan in a store, replace or remove a chunk, and read."""
    url = in_memory(cache if content is None else f"{cache}-{len(content)}")
    with patch.dict("os.environ", INDEXPLAN_CACHE=str(Path(cache).absolute())):
        order = ip.types.Stored(url)
        if content is None:
            fsspec.filesystem("memory").rm_file(f"{url}/{CHUNK}")
        elif content:
            fsspec.filesystem("memory").pipe_file(f"{url}/{CHUNK}", content)
        order.take(0, 300)


def of_locked(ask: Callable[[Any], Any], mode: int = 0, name: str = "a.plan") -> None:
    """Ask a place for something as somebody who may not enter it."""
    saved()
    locked({name: mode}, lambda: ask(store_of(as_store())))
