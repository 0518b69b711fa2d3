"""What an index of shards or a table may do to its reader: claim things, but no more than that."""

from __future__ import annotations

import json
import os
import pickle
import struct
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import indexplan as ip
from indexplan.shards.location import MOST_BYTES
from tests.support import refusals

SHARD = {"raw_data": {"basename": "a.mds", "bytes": 9}, "samples": 5, "format": "mds"}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with one shard."""
    (tmp_path / "a.mds").write_bytes(bytes(9))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def index(*shards: Any, name: str = "index.json") -> str:
    """Write an MDS index."""
    Path(name).write_text(json.dumps({"shards": shards, "version": 2}))
    return name


def sparse(name: str, size: int, head: bytes = b"", tail: bytes = b"") -> str:
    """Write a file that has its size, but only its ends on the disk."""
    with Path(name).open("wb") as stream:
        stream.write(head)
        stream.truncate(size - len(tail))
        stream.seek(0, 2)
        stream.write(tail)
    return name


def npy(header: str, body: bytes = b"", name: str = "x.npy") -> str:
    """Write an array with a header of one's own."""
    text = header.encode()
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    Path(name).write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + body)
    return name


refused = partial(refusals.refused, ip.shard_sizes)


def test_huge_counts() -> None:
    """A count below 2**63 is believed, and costs no more than another; sums past it are not."""
    shards = ip.shard_sizes(index({**SHARD, "samples": 2**62}))
    assert 2**62 == shards.num_samples
    plan = ip.Plan(ip.ShardShuffle(shards), world_size=1, batch_size=3)
    assert 3 == len({*plan.batch(epoch=0, step=0, rank=0).tolist()})
    for samples in (2**63, 2**64, -1, 1.5, True, None, "5", 10**400):
        refused(index({**SHARD, "samples": samples}))
    Path("b.mds").write_bytes(bytes(9))
    other = {**SHARD, "raw_data": {"basename": "b.mds", "bytes": 9}}
    said = refused(index({**SHARD, "samples": 2**62}, {**other, "samples": 2**62}))
    assert said.startswith("the sum of sizes must be from 1 to 2**63 - 1")


def test_deep_nesting() -> None:
    """JSON and the header of an array that nest without end are no crash."""
    for text in ("[" * 200_000, '{"shards":' + '{"a":' * 100_000):
        Path("index.json").write_text(text)
        assert "must be JSON" in refused("index.json")
    assert "must be a .npy file" in refused(npy("(" * 20_000))


def test_long_files() -> None:
    """Of an index or a footer, at most 256 MiB are read, however long it says it is."""
    rule = f"must have an index, footer or header of at most {MOST_BYTES:,} bytes"
    assert rule in refused(sparse("index.json", 40 * 2**30))
    size = 3 * 2**30
    end = struct.pack("<I", size - 16) + b"PAR1"
    assert rule in refused(sparse("a.parquet", size, b"PAR1", end))
    end = struct.pack("<i", 2**31 - 1) + b"ARROW1"
    hole = "must be a whole Arrow IPC file; got an end at byte 8"  # whatever its footer says
    assert hole in refused(sparse("a.arrow", size, b"ARROW1\0\0", end))
    assert rule in refused(sparse("a.arrow", size, b"\xff" * 4 + struct.pack("<i", 2**31 - 8)))


def test_headers_of_arrays() -> None:
    """A shape has to be that of the file; a sparse file costs nothing, as only headers are read."""
    head = "{{'descr': {!r}, 'fortran_order': False, 'shape': {}}}"
    for shape in ((2**62,), (-5, -8), (2**62, 2**62)):
        refused(npy(head.format("<f8", shape), bytes(320)))
        with pytest.raises(ip.IndexPlanError, match="a column's path must be"):
            ip.Column("x.npy")
    assert "objects" in refused(npy(head.format("|O", (2**62,))))
    name = npy(head.format("<f8", (2**37,)))
    os.truncate(name, Path(name).stat().st_size + 8 * 2**37)
    assert 2**37 == ip.shard_sizes(name).num_samples


class Trap:
    """Something that makes a folder when it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("sprung",)


def test_nothing_is_unpickled() -> None:
    """Not by counting objects, and not of a file that is a pickle."""
    np.save("o.npy", np.array([Trap()], object), allow_pickle=True)
    assert 1 == ip.shard_sizes("o.npy").num_samples
    Path("p.npy").write_bytes(pickle.dumps(Trap()))
    for name in ("o.npy", "p.npy"):
        for call in (ip.Column, ip.Weighted, ip.ShardShuffle):
            with pytest.raises(ip.IndexPlanError, match="a column's path must be"):
                call(name)
    refused("p.npy")
    with pytest.raises(ip.IndexPlanError, match=r"must be a \.npy file"):
        ip.Dataset.scan("p.npy")
    assert not Path("sprung").exists()
    np.load("o.npy", allow_pickle=True)
    assert Path("sprung").exists()  # so that it could have been


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "x/../../y", "s3://b/a"])
def test_names_that_lead_out(name: str, here: Path) -> None:
    """No index names a file elsewhere, whether it is there or not."""
    (here.parent / "x").write_bytes(bytes(9))
    refused(index({**SHARD, "raw_data": {"basename": name, "bytes": 9}}))
    Path("state.json").write_text(json.dumps({"_data_files": [{"filename": name}]}))
    refused("state.json")


def test_links_and_pipes(here: Path) -> None:
    """Links among shards are followed, as caches of downloads have them; pipes are not read."""
    (here.parent / "elsewhere").write_bytes(bytes(9))
    Path("a.mds").unlink()
    Path("a.mds").symlink_to(here.parent / "elsewhere")
    assert 5 == ip.shard_sizes(index(SHARD)).num_samples
    Path("index.json").unlink()
    os.mkfifo("index.json")
    assert "must be a file; got a folder, pipe, device or socket" in refused(".")
    os.mkfifo("p.npy")
    refused("*.npy")
    with pytest.raises(ip.IndexPlanError, match="a pipe, device or socket"):
        ip.Column("p.npy")
