"""What every store can do with a plan directory or an export, on a disk or in an object store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from io import BufferedReader
from typing import Protocol

BLOCK_BYTES = 2**22  # what is read, hashed and fetched at a time


class Store(Protocol):
    """A plan directory or an export; its files go by their names below it.

    Every method raises `PlanFileError` if the place or the file cannot be reached.
    """

    path: str
    """What messages call it: a path, or a URL."""

    def kind(self) -> str:
        """Return "a folder", "a file" or "nothing there"."""

    def make(self) -> None:
        """Make the place unless it is there."""

    def names(self) -> list[str]:
        """Return the names of what is in the place itself."""

    def publish(self, name: str, blocks: Iterable[bytes | memoryview]) -> bool:
        """Write a file whole or not at all; return False, and change nothing, if it is there."""

    def has(self, name: str) -> bool:
        """Return whether a file is there."""

    def sizes(self, names: Iterable[str]) -> Iterator[int | None]:
        """Yield how many bytes each file has; None if it is missing."""

    def read(self, name: str) -> bytes:
        """Return the bytes of a small file: any but a chunk."""

    def open(self, name: str) -> BufferedReader:
        """Open a file for reading, as it is in the place now; `OSError` if that fails."""

    def tidy(self, names: Iterable[str]) -> None:
        """Remove what dead builders left next to these files, and let these survive a power cut."""

    def absolute(self) -> str:
        """Return the path that names this place from any working directory."""
