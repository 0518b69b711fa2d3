"""Who else reads the shards of a ShardedDataset, or its folder: other data, loaders and runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import indexplan as ip
from indexplan_torch import ShardedDataset, ShardFile

ROWS = 50


def rows_of(file: ShardFile) -> Any:
    """Return the rows of a file."""
    return np.load(file.path)


def write(folder: Path, num: int = 40, first: int = 0) -> ip.Shards:
    """Write arrays of as many rows whose values count through them all."""
    folder.mkdir()
    for number in range(num):
        start = first + number * ROWS
        np.save(folder / f"{number:03}.npy", np.arange(start, start + ROWS))
    return ip.shard_sizes(folder / "*.npy")


class Opened:
    """Makes datasets, and ends the threads that fetch for them."""

    def __init__(self, cache_dir: Path) -> None:
        self.cache_dir = cache_dir
        self.made: list[ShardedDataset] = []

    def __call__(self, shards: ip.Shards, **changes: Any) -> ShardedDataset:
        """Make a dataset."""
        options: dict[str, Any] = {"cache_dir": self.cache_dir, "cache_bytes": 10**7, **changes}
        self.made.append(ShardedDataset(shards, rows_of, **options))
        return self.made[-1]

    def end(self) -> None:
        """End what fetches."""
        for each in self.made:
            if each._fetcher is not None:
                each._fetcher.stop()


@pytest.fixture
def dataset_of(tmp_path: Path) -> Iterator[Opened]:
    """Datasets that share a folder."""
    opened = Opened(tmp_path / "cache")
    yield opened
    opened.end()


def test_files_that_say_the_same(dataset_of: Opened, tmp_path: Path) -> None:
    """Files of one shape and name in two folders share a cache, but none of their samples."""
    ids, others = write(tmp_path / "ids"), write(tmp_path / "others", first=10**6)
    assert ids == others
    assert (3, 10**6 + 3) == (dataset_of(ids)[3], dataset_of(others)[3])


def test_working_directory(
    dataset_of: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A relative path stays what it was when the dataset was made."""
    for name, first in (("a", 0), ("b", 10**6)):
        (tmp_path / name).mkdir()
        write(tmp_path / name / "data", first=first)
    monkeypatch.chdir(tmp_path / "a")
    data = dataset_of(ip.shard_sizes("data/*.npy"))
    monkeypatch.chdir(tmp_path / "b")
    assert 3 == data[3]
