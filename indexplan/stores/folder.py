"""Plan directories and exports on a file system."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from io import BufferedReader
from pathlib import Path

from indexplan.stores.plain import check_kind, open_file, read_small
from indexplan.stores.publish import explained, publish, sync_folder
from indexplan.stores.temporary import sweep


class Folder:
    """A plan directory or an export on a file system."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.path = str(root)

    def kind(self) -> str:
        """Return "a folder", "a file" or "nothing there"."""
        with explained("readable", self.root):
            if self.root.is_dir():
                return "a folder"
            return "a file" if os.path.lexists(self.root) else "nothing there"

    def make(self) -> None:
        """Make the folder unless it is there, but not those above it."""
        with explained("a folder that can be made", self.root):
            with suppress(FileExistsError):
                self.root.mkdir()
            with suppress(PermissionError):  # the parent may be one to enter, but not to read
                sync_folder(self.root.parent)

    def names(self) -> list[str]:
        """Return the names of what is in the folder itself."""
        with explained("readable", self.root):
            return [path.name for path in self.root.iterdir()]

    def publish(self, name: str, blocks: Iterable[bytes | memoryview]) -> bool:
        """Write a file, and make the folders that it is in."""
        folder = self.root  # which may be a link, and is not made again if it vanished
        for part in name.split("/")[:-1]:
            folder /= part
            with explained("a folder that can be made", folder):
                with suppress(FileExistsError):  # lstat says what is there
                    folder.mkdir()
                check_kind(folder, os.lstat(folder).st_mode, folder=True)
        return publish(self.root / name, blocks)

    def has(self, name: str) -> bool:
        """Return whether a file is there."""
        return next(self.sizes([name])) is not None

    def sizes(self, names: Iterable[str]) -> Iterator[int | None]:
        """Yield the bytes of each file, which must be a plain one; None if it is missing."""
        folder = root = str(self.root)
        for name in names:
            path = f"{root}/{name}"  # not a Path: half of the time for a plan of 30,000 files
            try:
                if (parent := path.rpartition("/")[0]) != folder:
                    folder = parent
                    check_kind(Path(folder), os.lstat(folder).st_mode, folder=True)
                found = os.lstat(path)
            except (FileNotFoundError, NotADirectoryError):
                yield None
                continue
            except OSError:
                with explained("readable", path):
                    raise
            if not stat.S_ISREG(found.st_mode):
                check_kind(Path(path), found.st_mode)
            yield found.st_size

    def read(self, name: str) -> bytes:
        """Return the bytes of a small file: any but a chunk."""
        with explained("readable", self.root / name), self.open(name) as stream:
            return read_small(stream, self.root / name)

    def open(self, name: str) -> BufferedReader:
        """Open a file for reading."""
        return open_file(self.root, name)

    def absolute(self) -> str:
        """Return the absolute path of the folder."""
        return str(self.root.absolute())

    def tidy(self, names: Iterable[str]) -> None:
        """Remove what dead builders left in the folders of these files, and sync the folders.

        A killed builder may have named files, which are kept, without having synced their folder.
        """
        for folder in dict.fromkeys((self.root / name).parent for name in names):
            with explained("cleared of temporary files", folder):
                if folder == self.root or not folder.is_symlink():
                    sweep(folder)
                    sync_folder(folder)
