"""Where plan directories lie: folders here, object stores in `remote`; what they have in common."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from io import BufferedReader
from pathlib import Path
from typing import Protocol

from indexplan.errors import PlanFileError, path_text
from indexplan.files.format import BUILD
from indexplan.files.stores.opening import check_kind, open_file, read_small
from indexplan.files.stores.publish import explained, publish, sync_folder
from indexplan.files.stores.temporary import sweep


class Place(Protocol):
    """A plan directory, wherever it lies; its files go by their names below it.

    Every method raises `PlanFileError` if the place or the file cannot be reached.
    """

    path: str
    """What messages call it: a path, or a URL."""

    def kind(self) -> str:
        """Return "a folder", "a file" or "nothing there"."""

    def claim(self) -> None:
        """Make the place, unless it is there; refuse one that holds anything but a build."""

    def publish(self, name: str, blocks: Iterable[bytes | memoryview]) -> bool:
        """Write a file that appears whole or not at all; False, and no change, if it is there."""

    def names(self) -> list[str]:
        """Return the names of what lies in the place, not below it."""

    def has(self, name: str) -> bool:
        """Return whether a file is there."""

    def sizes(self, names: Iterable[str]) -> list[int | None]:
        """Return how many bytes each file has; None where there is none."""

    def read(self, name: str) -> bytes:
        """Return the bytes of a manifest or block table."""

    def open(self, name: str) -> BufferedReader:
        """Open a file for reading, as it is in the place now; `OSError` if that fails."""

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""

    def settle(self, names: Iterable[str]) -> None:
        """Make sure that files which are there survive a power cut, whoever wrote them."""

    def sweep(self, names: Iterable[str]) -> None:
        """Remove what dead builders left beside these files."""

    def absolute(self) -> str:
        """Return the path that names this place in every folder."""


def place_of(path: str | os.PathLike[str]) -> Place:
    """Return the place that a path or a URL names.

    Raises
    ------
    IndexPlanError
        If it is no path, or a URL that carries credentials or that nobody here can read.
    """
    folder = folder_of(path)
    if folder is None:
        from indexplan.files.stores.remote import Remote

        return Remote(os.fspath(path))
    return Folder(folder)


def folder_of(path: str | os.PathLike[str], what: str = "path") -> Path | None:
    """Return the folder that a path or a file:// URL names; None where it is another URL.

    Raises
    ------
    IndexPlanError
        If it is neither.
    """
    text = path_text(what, path, "pass where the directory is, such as run.plan")
    if re.match(r"(?!file://)[A-Za-z][\w+.-]*(::.*)?://", text):
        return None
    return Path(text.removeprefix("file://"))


def shown(names: Iterable[str]) -> Iterator[str]:
    """Yield the names that are not hidden, as temporary files are, and what file managers leave."""
    return (name for name in names if not name.startswith("."))


class Folder:
    """A plan directory on a file system."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.path = str(root)

    def kind(self) -> str:
        """Return "a folder", "a file" or "nothing there"."""
        with explained("readable", self.root):
            if self.root.is_dir():
                return "a folder"
            return "a file" if self.root.exists() else "nothing there"

    def claim(self) -> None:
        """Make the folder, but not those above it."""
        rule = f"{self.path} must be new, empty or a plan directory"
        with explained("a folder that can be made", self.root):
            try:
                self.root.mkdir()
            except FileExistsError:
                if not self.root.is_dir():
                    raise PlanFileError(f"{rule}; got a file; choose another path") from None
                names = set(shown(file.name for file in self.root.iterdir()))
                # looked up after the listing, which other builders' files may come into meanwhile
                if names and not (self.root / BUILD).exists():
                    got = f"a folder that holds {min(names)}"
                    raise PlanFileError(f"{rule}; got {got}; choose another path") from None
            with suppress(PermissionError):  # of a parent that may be entered, but not read
                sync_folder(self.root.parent)

    def publish(self, name: str, blocks: Iterable[bytes | memoryview]) -> bool:
        """Write a file, and the folder that it lies in."""
        path = self.root / name
        if path.parent != self.root:  # which may be a link, and is not made again if it vanished
            with explained("a folder that can be made", path.parent):
                path.parent.mkdir(exist_ok=True)
                check_kind(path.parent, os.lstat(path.parent).st_mode, folder=True)
        return publish(path, blocks)

    def names(self) -> list[str]:
        """Return the names of what lies in the folder, not below it."""
        with explained("readable", self.root):
            return [path.name for path in self.root.iterdir()]

    def has(self, name: str) -> bool:
        """Return whether a file, or anything else, is there."""
        with explained("readable", self.root / name):
            try:
                os.lstat(self.root / name)
            except (FileNotFoundError, NotADirectoryError):
                return False
        return True

    def sizes(self, names: Iterable[str]) -> list[int | None]:
        """Return how many bytes each file has, which must be a plain one; None where none is."""
        sizes: list[int | None] = []
        folder = self.root
        for name in names:
            path = self.root / name
            with explained("readable", path):
                try:
                    if path.parent != folder:
                        folder = path.parent
                        check_kind(folder, os.lstat(folder).st_mode, folder=True)
                    found = os.lstat(path)
                except (FileNotFoundError, NotADirectoryError):
                    sizes.append(None)
                    continue
            check_kind(path, found.st_mode)
            sizes.append(found.st_size)
        return sizes

    def read(self, name: str) -> bytes:
        """Return the bytes of a manifest or block table."""
        return read_small(self.root / name)

    def open(self, name: str) -> BufferedReader:
        """Open a file for reading."""
        return open_file(self.root, name)

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        with explained("removed", self.root / name):
            (self.root / name).unlink(missing_ok=True)

    def absolute(self) -> str:
        """Return the absolute path of the folder."""
        return str(self.root.absolute())

    def settle(self, names: Iterable[str]) -> None:
        """Sync the folders of these files: a killed builder may have named them, and no more."""
        for folder in dict.fromkeys((self.root / name).parent for name in names):
            with explained("synced", folder):
                sync_folder(folder)

    def sweep(self, names: Iterable[str]) -> None:
        """Remove what dead builders left in the folders of these files."""
        with explained("cleared of temporary files", self.root):
            for folder in {(self.root / name).parent for name in names}:
                if folder == self.root or not folder.is_symlink():
                    sweep(folder)
