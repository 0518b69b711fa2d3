"""Errors of plan directories in object stores: `memory://`, and a folder as fsspec reads it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import fsspec

import indexplan as ip
from indexplan.stores.open import store_of
from tests.errors.catalogue.made import (
    CHUNK,
    Case,
    damaged,
    locked,
    saved,
    stores,
    without,
    written,
)

URL = "memory://a.plan"
USER = f"indexplan-{os.geteuid()}"


def store(name: str = "a") -> str:
    """Build a plan directory in an empty store; what a process has read, it has for good."""
    stores()
    saved(f"memory://{name}.plan")
    return f"memory://{name}.plan"


def local(name: str = "a.plan") -> str:
    """Name a folder as a store."""
    return f"local://{Path(name).absolute()}"


def read(content: bytes | None, cache: str = "cache") -> None:
    """Open a plan in a store, replace or remove a chunk, and read."""
    url = store(cache if content is None else f"{cache}-{len(content)}")
    with patch.dict("os.environ", INDEXPLAN_CACHE=str(Path(cache).absolute())):
        order = ip.types.Stored(url)
        if content is None:
            fsspec.filesystem("memory").rm_file(f"{url}/{CHUNK}")
        elif content:
            fsspec.filesystem("memory").pipe_file(f"{url}/{CHUNK}", content)
        order.take(0, 300)


def unlocked() -> None:
    """Read a plan in a store on a system without fcntl, which is looked for at the import."""
    with patch("indexplan.stores.cache.LOCKS", new=False):
        read(b"", "unlocked")


def kept(at: int) -> None:
    """Read a plan in a store whose kept chunk has another byte now."""
    url = store(f"kept-{at}")
    with patch.dict("os.environ", INDEXPLAN_CACHE=str(Path("kept").absolute())):
        ip.load(url).order.take(0, 300)
        (path,) = Path("kept").glob(f"{USER}/*/{CHUNK}")
        damaged(path, at)
        ip.load(url).order.take(0, 300)


def homeless() -> None:
    """Read a plan in a store where nobody knows the home folder."""
    url = store("homeless")
    with patch.dict("os.environ", HOME="~"):
        for name in ("INDEXPLAN_CACHE", "XDG_CACHE_HOME"):
            os.environ.pop(name, None)
        ip.load(url)


def no_temporary_folder() -> None:
    """Build a plan in a store where there is no room for temporary files."""
    stores()
    with patch.object(tempfile, "tempdir", str(Path("no").absolute())):
        saved(URL)


def huge() -> None:
    """Open a plan.json that is longer than any."""
    saved()
    with Path("a.plan/plan.json").open("r+b") as stream:
        stream.truncate(2**30 + 1)
    ip.load(local())


def of_locked(ask: Callable[[Any], Any], mode: int = 0, name: str = "a.plan") -> None:
    """Ask a place for something as somebody who may not enter it."""
    saved()
    locked({name: mode}, lambda: ask(store_of(local())))


CASES: list[Case] = [
    ("no file locks", unlocked),
    ("a file that ends too soon", lambda: store_of(store("short")).piece("plan.json", 0, 9999)),
    ("a URL of no store", lambda: ip.load("zz://bucket/a.plan")),
    ("a URL of more than one place", lambda: ip.load("zip::s3://bucket/a.plan")),
    ("a URL with a password", lambda: ip.load("sftp://me:secret@host/a.plan")),
    ("no fsspec", lambda: without("fsspec", lambda: ip.load("s3://bucket/a.plan"))),
    ("no package for the store", lambda: without("s3fs", lambda: ip.load("s3://bucket/a.plan"))),
    ("nothing there", lambda: (stores(), ip.load(URL))),
    ("a file at the URL", lambda: saved(f"{store()}/plan.json")),
    ("a folder of something else", lambda: saved(f"{store()}/epoch-00000")),
    ("no temporary folder", no_temporary_folder),
    ("a plan.json that is huge", huge),
    ("a plan.json that is gone", lambda: (stores(), store_of(URL).open("plan.json"))),
    ("no home folder for what is kept", homeless),
    ("a file for what is kept", lambda: read(b"", str(written("file")))),
    (
        "a folder of others for what is kept",
        lambda: (
            Path("shared", USER).mkdir(parents=True),
            Path("shared", USER).chmod(0o777),
            read(b"", "shared"),
        ),
    ),
    ("a chunk that is gone", lambda: read(None)),
    ("a chunk of another size", lambda: read(b"x")),
    ("a chunk of other bytes", lambda: read(b"x" * 1152)),
    ("a kept chunk that was edited", lambda: kept(200)),
    ("a folder that is locked", lambda: of_locked(lambda place: place.has("plan.json"))),
    ("a locked folder's kind", lambda: of_locked(lambda place: place.kind(), name=".")),
    ("a locked folder's names", lambda: of_locked(lambda place: place.names())),
    (
        "a locked file",
        lambda: of_locked(lambda place: place.piece("plan.json", 0, 1), name="a.plan/plan.json"),
    ),
    (
        "a file in a locked folder",
        lambda: of_locked(lambda place: place.publish("new", [b""]), mode=0o555),
    ),
]
