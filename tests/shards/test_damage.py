"""Files that were cut off anywhere, or damaged: refused, and never another kind of error."""

from __future__ import annotations

import contextlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import indexplan as ip
from indexplan.shards.by_file import FORMATS, File
from indexplan.shards.location import Local

ROWS = pa.table({"id": np.arange(9)})


def write(kind: str, path: Path) -> None:
    """Write a small file."""
    if kind == "npy":
        np.save(path, np.arange(9))
    elif kind == "parquet":
        pq.write_table(ROWS, path)
    else:
        with (pa.ipc.new_stream if kind == "stream" else pa.ipc.new_file)(path, ROWS.schema) as to:
            to.write_table(ROWS, max_chunksize=5)


def read(kind: str, path: Path) -> list[int]:
    """Read the sizes in it."""
    reader = FORMATS.get(kind, FORMATS["arrow"]).read
    return reader(File(Local(path.parent), path.name, path.stat().st_size)).sizes


@pytest.mark.parametrize("kind", ["npy", "parquet", "stream", "file"])
def test_cut_off_anywhere(kind: str, tmp_path: Path) -> None:
    """No beginning of a file is taken for a whole one."""
    path = tmp_path / f"a.{'npy' if kind == 'npy' else 'x'}"
    write(kind, path)
    assert 9 == sum(read(kind, path))
    whole = path.read_bytes()
    for stop in range(len(whole)):
        path.write_bytes(whole[:stop])
        with pytest.raises(ip.PlanFileError):
            read(kind, path)


@pytest.mark.parametrize("kind", ["stream", "file"])
@pytest.mark.parametrize("flip", [0x80, 0xFF])
def test_damaged_anywhere(kind: str, flip: int, tmp_path: Path) -> None:
    """An Arrow file with another byte is read or refused, and the reader comes to an end."""
    path = tmp_path / "a.arrow"
    write(kind, path)
    whole = path.read_bytes()
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ flip]) + whole[at + 1 :])
        with contextlib.suppress(ip.PlanFileError):
            read(kind, path)
