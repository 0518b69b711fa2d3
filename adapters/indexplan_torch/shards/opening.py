"""A shard on this machine, and a ready way to read one that is Parquet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ShardFile:
    """A whole shard on this machine.

    Parameters
    ----------
    path : str
        Its file. Of a row group, a Parquet file of which the other row groups are not there.
    number : int
        Its number in the `Shards`.
    part : int or None
        Its row group; None where the file is the shard.

    Examples
    --------
    >>> import numpy as np
    >>> from indexplan_torch import ShardFile
    >>> np.save("rows.npy", np.arange(3))
    >>> file = ShardFile("rows.npy", number=0, part=None)
    >>> np.load(file.path, mmap_mode="r").tolist()
    [0, 1, 2]
    """

    path: str
    number: int
    part: int | None


class Rows(Sequence[Any]):
    """The rows of a pyarrow table, each a dict."""

    def __init__(self, table: Any) -> None:
        self.table = table

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __getitem__(self, row: Any) -> Any:
        """Return a row."""
        return self.table.slice(range(len(self))[row], 1).to_pylist()[0]

    def __getitems__(self, rows: list[int]) -> list[Any]:
        """Return some rows at once."""
        found: list[Any] = self.table.take(rows).to_pylist()
        return found


def open_parquet(shard: ShardFile, columns: Sequence[str] | None = None) -> Rows:
    """Read a row group, or a whole file, of Parquet: what `ShardedDataset` opens shards with.

    It is decoded once, and held in memory.

    Parameters
    ----------
    shard : ShardFile
    columns : sequence of str, optional
        Those to read, by default all: `functools.partial(open_parquet, columns=["text"])`.

    Returns
    -------
    sequence of dict
        A row's values by the names of its columns.

    Examples
    --------
    >>> import pyarrow as pa, pyarrow.parquet as pq
    >>> from indexplan_torch import ShardFile, open_parquet
    >>> pq.write_table(pa.table({"id": [7, 8, 9]}), "a.parquet", row_group_size=2)
    >>> list(open_parquet(ShardFile("a.parquet", number=1, part=1)))
    [{'id': 9}]
    """
    import pyarrow.parquet as pq

    names = None if columns is None else list(columns)
    with pq.ParquetFile(shard.path) as file:
        if shard.part is None:
            return Rows(file.read(columns=names))
        return Rows(file.read_row_group(shard.part, columns=names))
