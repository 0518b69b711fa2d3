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
from indexplan.files.stores.open import store_of
from tests.errors.catalogue.made import (
    CHUNK,
    Case,
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
        order = ip.Stored(url)
        if content is None:
            fsspec.filesystem("memory").rm_file(f"{url}/{CHUNK}")
        elif content:
            fsspec.filesystem("memory").pipe_file(f"{url}/{CHUNK}", content)
        order.take(0, 300)


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
    """Open a manifest that is longer than any."""
    saved()
    with Path("a.plan/manifest.json").open("r+b") as stream:
        stream.truncate(2**30 + 1)
    ip.load(local())


def of_locked(ask: Callable[[Any], Any], mode: int = 0, name: str = "a.plan") -> None:
    """Ask a place for something as somebody who may not enter it."""
    saved()
    locked({name: mode}, lambda: ask(store_of(local())))


CASES: list[Case] = [
    (
        "no file locks",
        lambda: without("fcntl", lambda: read(b"", "unlocked")),
        "reading from an object store needs POSIX file locks, which this system lacks; copy the "
        "plan to a folder, and read it there",
    ),
    (
        "a file that ends too soon",
        lambda: store_of(store("short")).piece("build.json", 0, 9999),
        "memory://short.plan/build.json must be served in pieces; got 205 bytes instead of the "
        "9999 from 0 on; choose a server that answers requests for a Range, or copy the plan to "
        "a folder",
    ),
    (
        "a URL of no store",
        lambda: ip.load("zz://bucket/a.plan"),
        "path must be a folder, or a URL of a kind that fsspec knows; got 'zz://...'; check the "
        "letters before ://",
    ),
    (
        "a URL of more than one place",
        lambda: ip.load("zip::s3://bucket/a.plan"),
        "path must be one URL, not a chain of them; got 'zip::...'; pass the folder's own URL",
    ),
    (
        "a URL with a password",
        lambda: ip.load("sftp://me:secret@host/a.plan"),
        "path must be a URL without credentials, @, ? and #; got one of sftp:// with them; put "
        "credentials where the store's own tools look for them: its environment variables or "
        "its configuration file",
    ),
    (
        "no fsspec",
        lambda: without("fsspec", lambda: ip.load("s3://bucket/a.plan")),
        "s3:// needs fsspec; pip install 'indexplan[remote]', or the package that fsspec names "
        "for this store",
    ),
    (
        "no package for the store",
        lambda: without("s3fs", lambda: ip.load("s3://bucket/a.plan")),
        "s3:// needs a package that is not installed; pip install 'indexplan[remote]', or the "
        "package that fsspec names for this store",
    ),
    (
        "nothing there",
        lambda: (stores(), ip.load(URL)),
        "memory://a.plan must be a plan directory; got nothing there; check the path, or build "
        "it with `indexplan build`",
    ),
    (
        "a file at the URL",
        lambda: saved(f"{store()}/blocks.npy"),
        "memory://a.plan/blocks.npy must be new, empty or a plan directory; got a file; choose "
        "another path",
    ),
    (
        "a folder of something else",
        lambda: saved(f"{store()}/epoch-00000"),
        "memory://a.plan/epoch-00000 must be new, empty or a plan directory; got a folder that "
        "holds chunk-00000.npy; choose another path",
    ),
    (
        "no temporary folder",
        no_temporary_folder,
        "memory://a.plan/build.json must be written to a temporary file in $TMPDIR first; got "
        "'No such file or directory'; check the path",
    ),
    (
        "a manifest that is huge",
        huge,
        "local://{here}/a.plan/manifest.json must hold at most 1073741824 bytes; got "
        "1073741825; restore it, or build the plan again at another path",
    ),
    (
        "a manifest that is gone",
        lambda: (stores(), store_of(URL).open("manifest.json")),
        "memory://a.plan/manifest.json must be readable; got nothing there; check the bucket "
        "and the path",
    ),
    (
        "no home folder for what is kept",
        homeless,
        "the home folder must be known, to keep chunks of memory://homeless.plan; it is not; "
        "set INDEXPLAN_CACHE to a folder",
    ),
    (
        "a file for what is kept",
        lambda: read(b"", str(written("file"))),
        f"{{here}}/file/{USER}/55f2b75ebf624b646658c152f8d769e3/epoch-00000/chunk-00001.npy must "
        "be written, to read memory://file-0.plan; got 'File exists'; free some space, or set "
        "INDEXPLAN_CACHE to a folder on a disk of this machine with space",
    ),
    (
        "a folder of others for what is kept",
        lambda: (
            Path("shared", USER).mkdir(parents=True),
            Path("shared", USER).chmod(0o777),
            read(b"", "shared"),
        ),
        f"{{here}}/shared/{USER} must be a folder that only you, user {os.geteuid()}, can write "
        "to; got one of mode 777; delete it, or set INDEXPLAN_CACHE to a folder of your own",
    ),
    (
        "a chunk that is gone",
        lambda: read(None),
        "memory://cache.plan/epoch-00000/chunk-00001.npy must be readable; got nothing there; "
        "check the bucket and the path",
    ),
    (
        "a chunk of another size",
        lambda: read(b"x"),
        "memory://cache-1.plan/epoch-00000/chunk-00001.npy must be what blocks.npy says; got 1 "
        "instead of 1152 bytes; read it again; if that does not help, verify the plan, and "
        "restore the file",
    ),
    (
        "a chunk of other bytes",
        lambda: read(b"x" * 1152),
        "memory://cache-1152.plan/epoch-00000/chunk-00001.npy must be what blocks.npy says; got "
        "other bytes in block 0; read it again; if that does not help, verify the plan, and "
        "restore the file",
    ),
    (
        "a folder that is locked",
        lambda: of_locked(lambda place: place.has("build.json")),
        "local://{here}/a.plan/build.json must be readable; got no permission; check the "
        "credentials, and what they are allowed to do",
    ),
    (
        "a locked folder's kind",
        lambda: of_locked(lambda place: place.kind(), name="."),
        "local://{here}/a.plan must be readable; got no permission; check the credentials, and "
        "what they are allowed to do",
    ),
    (
        "a locked folder's names",
        lambda: of_locked(lambda place: place.names()),
        "local://{here}/a.plan must be readable; got no permission; check the credentials, and "
        "what they are allowed to do",
    ),
    (
        "a locked file",
        lambda: of_locked(lambda place: place.piece("build.json", 0, 1), name="a.plan/build.json"),
        "local://{here}/a.plan/build.json must be readable; got no permission; check the "
        "credentials, and what they are allowed to do",
    ),
    (
        "a locked folder's file",
        lambda: of_locked(lambda place: place.remove("build.json"), mode=0o555),
        "local://{here}/a.plan/build.json must be removed; got no permission; check the "
        "credentials, and what they are allowed to do",
    ),
    (
        "a file in a locked folder",
        lambda: of_locked(lambda place: place.publish("new", [b""]), mode=0o555),
        "local://{here}/a.plan/new must be written; got no permission; check the credentials, "
        "and what they are allowed to do",
    ),
]
