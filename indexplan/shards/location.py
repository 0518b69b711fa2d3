"""Where shards are: a folder, whose links are followed, or a location in an object store."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from indexplan.errors import PlanFileError, path_text
from indexplan.stores.folder import Folder
from indexplan.stores.open import folder_of
from indexplan.stores.publish import explained
from indexplan.stores.remote import Remote

MOST_BYTES = 2**28  # of an index, footer or header; those of a million shards have less
WILD = re.compile(r"[*?\[]")
# what stores say of a file's content, and of the time when it was written
TAGS = ("ETag", "etag", "blob_id", "sha")
TIMES = (
    "mtime",
    "LastModified",
    "last_modified",
    "Last-Modified",
    "updated",
    "modified",
    "created",
)


class Found(NamedTuple):
    """A file: its bytes, and what its location says of its content, or "" if it says nothing."""

    num_bytes: int
    stamp: str


def stamp_of(said: Mapping[str, Any]) -> str:
    """Return the stamp of a file by what a store says about it."""
    for kind, names in (("tag", TAGS), ("time", TIMES)):
        for name in names:
            if said.get(name):
                return f"{kind}:{said[name]}"
    return ""


class Local(Folder):
    """A folder on this machine; unlike in plan directories, links in it are followed."""

    def find(self, pattern: str | None = None) -> dict[str, Found]:
        """Return all files below, or those that match, by their names."""
        with explained("readable", self.root):
            return {name: self._look(name) for name in self._names(pattern)}

    def _look(self, name: str) -> Found:
        found = (self.root / name).stat()
        return Found(found.st_size, f"time:{found.st_mtime_ns}")

    def stamp(self, name: str) -> str:
        """Return the stamp of a file as it is now."""
        with explained("readable", self.root / name):
            return self._look(name).stamp

    def _names(self, pattern: str | None) -> Iterator[str]:
        if pattern is not None:
            # unlike Path.glob, it accepts .., follows links, and leaves hidden files out
            found = glob.glob(pattern, root_dir=self.root, recursive=True)  # noqa: PTH207
            yield from (Path(name).as_posix() for name in found if (self.root / name).is_file())
            return
        for folder, _, names in os.walk(self.root, onerror=_raise):
            inside = Path(folder).relative_to(self.root)
            yield from ((inside / name).as_posix() for name in names)

    def read(self, name: str) -> bytes:
        """Return the bytes of a small file."""
        data = self.piece(name, 0, MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise too_long(self.root / name)
        return data

    def piece(self, name: str, start: int, stop: int) -> bytes:
        """Return the bytes [start, stop) of a file, or fewer at its end."""
        path = self.root / name
        with explained("readable", path):
            if path.exists() and not path.is_file():  # which would block its reader
                got = "a folder, pipe, device or socket"
                raise PlanFileError(path, "must be a file", got, "put the file itself in its place")
            with path.open("rb") as stream:
                stream.seek(start)
                return stream.read(stop - start)


class Bucket(Remote):
    """A location in an object store."""

    def find(self, pattern: str | None = None) -> dict[str, Found]:
        """Return all files below, or those that match, by their names."""
        with self._explained("readable") as (store, root):
            try:
                if pattern is None:
                    found = store.find(root, detail=True)
                else:
                    found = store.glob(f"{root}/{pattern}", detail=True)
            except FileNotFoundError:
                return {}
            return {
                path[len(root) :].strip("/"): Found(int(file["size"] or 0), stamp_of(file))
                for path, file in found.items()
                if file["type"] == "file"
            }

    def stamp(self, name: str) -> str:
        """Return the stamp of a file as it is now."""
        with self._explained("readable", name) as (store, path):
            return stamp_of(store.info(path))


Location = Local | Bucket


def too_long(path: str | Path) -> PlanFileError:
    """Return the error for an index, footer or header that is longer than any."""
    rule = f"must have an index, footer or header of at most {MOST_BYTES:,} bytes"
    return PlanFileError(path, rule, "a longer one", "restore it, or divide it into several")


def location_of(path: str | os.PathLike[str]) -> tuple[Location, str | None]:
    """Return the location that a path names, and its pattern, from the first part with a * on."""
    text = path_text("path", path, "pass where the shards are")
    scheme, mark, rest = text.rpartition("://")
    root, *pattern = rest.split("/")
    parts = [root, *pattern]
    wild = next((at for at, part in enumerate(parts) if WILD.search(part)), None)
    if wild is None:
        return location_at(text), None
    before = scheme + mark + ("/".join(parts[:wild]) or ("/" if rest.startswith("/") else "."))
    return location_at(before), "/".join(parts[wild:])


def within(location: Location) -> tuple[Location, str]:
    """Return the location that a file is in, and its name there."""
    folder, _, name = location.path.rstrip("/").rpartition("/")
    return location_at(folder or ("/" if location.path.startswith("/") else ".")), name


def location_at(path: str) -> Location:
    """Return the location of a folder or URL."""
    folder = folder_of(path)
    return Bucket(path) if folder is None else Local(folder)


def _raise(error: OSError) -> None:
    raise error
