"""Plan directories and exports in object stores, through fsspec."""

from __future__ import annotations

import io
import os
import re
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from indexplan.errors import IndexPlanError, PlanFileError, install, invalid
from indexplan.stores.plain import read_small
from indexplan.stores.publish import explained, write_all
from indexplan.stores.store import BLOCK_BYTES

PIECE_BYTES = 2 * BLOCK_BYTES  # of a request; a core holds a few of them at a time
MOST_PIECES = 10_000  # of one file, on S3
WAITS = (0.2, 1.0, 5.0)  # seconds after an upload that collided with another one
# options that make a store hold only a few pieces of an upload; the others do so by default
FRUGAL = {"s3": {"max_concurrency": 4}, "gs": {}, "gcs": {}}
# stores that create a file whole, and only if there is none; others write in place, over it
CAREFUL = {"s3", "gs", "gcs", "abfs", "az", "memory"}


class Remote:
    """A plan directory or an export in an object store.

    It holds a URL and nothing else. Credentials and connections are fsspec's, looked up at each
    use, so that it can be pickled, and used in a forked process.
    """

    def __init__(self, url: str) -> None:
        self.path = _one_place(url)

    def kind(self) -> str:
        """Return "a folder", "a file" or "nothing there"."""
        with self._explained("readable") as (store, root):
            try:
                return "a file" if store.info(root)["type"] == "file" else "a folder"
            except FileNotFoundError:
                return "nothing there"

    def make(self) -> None:
        """Do nothing: stores need no folders."""

    def publish(self, name: str, blocks: Iterable[bytes | memoryview]) -> bool:
        """Write a file by way of a temporary one on this machine."""
        what, url = "written to a temporary file in $TMPDIR first", f"{self.path}/{name}"
        with ExitStack() as stack:
            with explained(what, url):
                file = stack.enter_context(
                    tempfile.NamedTemporaryFile(prefix="indexplan-", buffering=0)
                )
            for block in blocks:
                with explained(what, url):
                    write_all(file.fileno(), block)
            return self._upload(file.name, name, WAITS)

    def _upload(self, local: str, name: str, waits: tuple[float, ...]) -> bool:
        size = Path(local).stat().st_size
        # a multiple of 256 KiB, which Google Cloud Storage asks for
        piece = max(PIECE_BYTES, -(-size // MOST_PIECES // 2**18) * 2**18)
        with self._explained("written", name) as (store, path):
            kind = store.protocol if isinstance(store.protocol, str) else store.protocol[0]
            options = {"chunksize": piece, **FRUGAL[kind]} if kind in FRUGAL else {}
            careful = kind in CAREFUL
            if not careful:
                if self.has(name):
                    return False
                store.makedirs(path.rsplit("/", 1)[0], exist_ok=True)
            try:
                store.put_file(local, path, mode="create", **options)
            except FileExistsError:
                return False
            except Exception as error:
                # not every store has an error of its own for a file that exists; a store that
                # writes files in place may hold half of ours
                there = self._size(name)
                if there == size or (careful and there is not None):
                    return False
                if waits and _code(error) == "ConditionalRequestConflict":
                    time.sleep(waits[0])
                    return self._upload(local, name, waits[1:])
                raise
        return True

    def names(self) -> list[str]:
        """Return the names of what is in the place itself."""
        with self._explained("readable") as (store, root):
            try:
                paths = store.ls(root, detail=False)
            except FileNotFoundError:
                return []
        return [name for path in paths if (name := path.rstrip("/").rsplit("/", 1)[-1])]

    def has(self, name: str) -> bool:
        """Return whether a file is there."""
        return self._size(name) is not None

    def sizes(self, names: Iterable[str]) -> Iterator[int | None]:
        """Yield how many bytes each file has; None if it is missing."""
        with self._explained("readable") as (store, root):
            # a listing has a thousand files in one answer
            try:
                files = {path: file["size"] for path, file in store.find(root, detail=True).items()}
            except FileNotFoundError:  # a web server need not list its folders
                files = {}
        # if it lists them, it need not tell their sizes
        for name in names:
            size = files.get(f"{root}/{name}")
            yield self._size(name) if size is None else size

    def _size(self, name: str) -> int | None:
        with self._explained("readable", name) as (store, path):
            try:
                found = store.info(path)
            except FileNotFoundError:
                return None
        if found["type"] != "file":
            return None
        if found["size"] is None:
            raise PlanFileError(
                f"{self.path}/{name}",
                "must be served with its size, as Content-Length",
                "none",
                "choose another server",
            )
        return int(found["size"])

    def read(self, name: str) -> bytes:
        """Return the bytes of a small file: any but a chunk."""
        with self.open(name) as stream:
            return read_small(stream, f"{self.path}/{name}")

    def open(self, name: str) -> io.BufferedReader:
        """Open a file for reading, a piece at a time."""
        size = self._size(name)
        if size is None:
            raise _said(f"{self.path}/{name}", "readable", FileNotFoundError())
        return io.BufferedReader(_Pieces(self, name, size), PIECE_BYTES)

    def piece(self, name: str, start: int, stop: int) -> bytes:
        """Return the bytes [start, stop) of a file."""
        with self._explained("readable", name) as (store, path):
            data: bytes = store.cat_file(path, start=start, end=stop)
        if len(data) != stop - start:
            cure = "choose a server that answers requests for a Range, or copy the plan to a folder"
            raise PlanFileError(
                f"{self.path}/{name}",
                "must be served in pieces",
                f"{len(data)} bytes instead of the {stop - start} from {start} on",
                cure,
            )
        return data

    def absolute(self) -> str:
        """Return the URL."""
        return self.path

    def tidy(self, names: Iterable[str]) -> None:
        """Do nothing: what a store has accepted is safe, and it removes unfinished uploads."""

    @contextmanager
    def _explained(self, what: str, name: str = "") -> Iterator[tuple[Any, str]]:
        """Yield the store and a path in it; turn what the store raises into a PlanFileError."""
        url = f"{self.path}/{name}" if name else self.path
        try:
            store, root = _store(self.path)
            yield store, f"{root}/{name}" if name else root
        except IndexPlanError:
            raise
        except Exception as error:
            # its message may hold keys and signed URLs, so neither that nor its traceback is shown
            raise _said(url, what, error) from None


class _Pieces(io.RawIOBase):
    """A file in a store, read by separate requests, so that nothing has to be closed."""

    def __init__(self, store: Remote, name: str, size: int) -> None:
        super().__init__()
        self.store, self.name, self.size, self.position = store, name, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self.position, os.SEEK_END: self.size}[whence]
        self.position = max(0, start + offset)
        return self.position

    def readall(self) -> bytes:  # the inherited one asks for 8 KiB at a time
        start, self.position = self.position, self.size
        return self.store.piece(self.name, start, self.size)

    def readinto(self, buffer: Any) -> int:
        stop = min(self.size, self.position + len(buffer))
        if self.position >= stop:
            return 0
        data = self.store.piece(self.name, self.position, stop)
        buffer[: len(data)] = data
        self.position += len(data)
        return len(data)


def _store(url: str) -> tuple[Any, str]:
    """Return fsspec's file system for a URL, and what the URL is called in it."""
    scheme = url.split(":", 1)[0]
    cure = f"{install('remote')}, or the package that fsspec names for this store"
    try:
        import fsspec
    except ImportError:
        raise IndexPlanError(f"{scheme}://", "needs fsspec", None, cure) from None
    if scheme not in fsspec.available_protocols():
        rule = "a folder, or a URL of a kind that fsspec knows"
        raise invalid("path", rule, f"{scheme}://...", "check the letters before ://")
    try:
        fsspec.get_filesystem_class(scheme)
    except ImportError:
        raise IndexPlanError(
            f"{scheme}://", "needs a package that is not installed", None, cure
        ) from None
    # listings of other builders' places must not be remembered
    store, root = fsspec.core.url_to_fs(url, use_listings_cache=False)
    return store, root.rstrip("/")


def _one_place(url: str) -> str:
    """Return the URL without slashes at its end, if it is one place and holds no credentials."""
    scheme, _, rest = url.partition("://")
    if "::" in url:
        got = f"{scheme.split(':')[0]}::..."
        raise invalid("path", "one URL, not a chain of them", got, "pass the folder's own URL")
    # container@account, in Azure's URLs, is no secret
    allowed = scheme in {"abfs", "abfss"} and re.fullmatch(r"[^:@]*@[^:@]*", rest)
    if ("@" in rest and not allowed) or re.search(r"[?#]", rest):
        raise IndexPlanError(
            "path",
            "must be a URL without credentials, @, ? and #",
            f"one of {scheme}:// with them",
            "put credentials where the store's own tools look for them: its "
            "environment variables or its configuration file",
        )
    return url.rstrip("/")


def _said(url: str, what: str, error: Exception) -> PlanFileError:
    """Return an error about what a store refused, without the store's own words."""
    if isinstance(error, FileNotFoundError):
        got, cure = "nothing there", "check the bucket and the path"
    elif isinstance(error, PermissionError):
        got, cure = "no permission", "check the credentials, and what they are allowed to do"
    else:
        got = type(error).__name__
        if isinstance(error, OSError) and error.errno:
            got += f" ({os.strerror(error.errno)})"
        cure = "check the bucket, the credentials and the network"
    return PlanFileError(url, f"must be {what}", got, cure)


def _code(error: Exception) -> str:
    """Return the code of an S3 error, or ""."""
    response = getattr(error.__cause__, "response", None) or {}
    return str(response.get("Error", {}).get("Code", ""))
