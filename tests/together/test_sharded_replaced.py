"""Files that are replaced while shards of them are fetched, and answers that are too short."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import json
import os
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import indexplan as ip
from indexplan_fetch import ShardFile
from tests.support.remote import store
from tests.together.sharded_runs import Opened, at, refused, write_numbers

RESTORE = "restore it, or read the sizes again with shard_sizes and build a new plan"
SINCE = f"must be the file that shards was made from; got one that was written since; {RESTORE}"


def write(path: Path, first: int) -> None:
    """Write 1,000 rows in ten row groups; the footer is the same whatever the rows are."""
    rows = pa.table({"id": np.arange(first, first + 1000)})
    options: dict[str, Any] = {"compression": "none", "write_statistics": False}
    pq.write_table(rows, path, row_group_size=100, use_dictionary=False, **options)


@pytest.mark.parametrize("stamped", [True, False])
@pytest.mark.parametrize("whole_files", [True, False])
def test_rewritten_file(
    dataset_of: Opened, tmp_path: Path, stamped: bool, whole_files: bool
) -> None:
    """A file written again with the same footer is refused, until its sizes are read again."""
    for name in ("a", "b"):
        write(tmp_path / f"{name}.parquet", 0)
    options: dict[str, Any] = {"whole_files": whole_files}
    shards = ip.shard_sizes(tmp_path / "*.parquet", **options)
    if not stamped:
        fields = {**shards.to_dict()}
        shards = ip.Shards.from_dict({k: fields[k] for k in fields if "stamp" not in k}, tmp_path)
    data = dataset_of(shards)
    assert (5, 7) == (data[5]["id"], data[1007]["id"])
    write(tmp_path / "a.parquet", 10**6)
    os.utime(tmp_path / "a.parquet", ns=(0, 123456789))
    assert 7 == data[1007]["id"]
    if whole_files:  # that is here already, as it was
        assert 555 == data[555]["id"]
    else:
        assert f"shard 5, {tmp_path}/a.parquet, {SINCE}" == refused(data, 555)
    dataset_of.end()
    now = ip.shard_sizes(tmp_path / "*.parquet", **options)
    assert shards == now
    assert 10**6 + 555 == dataset_of(now)[555]["id"]


def test_other_shards(dataset_of: Opened, tmp_path: Path) -> None:
    """Of what was fetched for other shards nothing is taken, where they only look alike."""
    write(tmp_path / "a.parquet", 0)
    shards = ip.shard_sizes(tmp_path / "*.parquet")
    assert 5 == dataset_of(shards)[5]["id"]
    dataset_of.end()
    other = ip.Shards.from_dict({**shards.to_dict(), "digests": ["0" * 32]}, shards.path)
    assert "must be the file that shards was made from" in refused(dataset_of(other), 5)


def counted(folder: Path, by: str) -> ip.Shards:
    """Return the shards of a folder whose only one is a.npy, or a.tar, as somebody counted it."""
    if by in {"npy", "tar"}:
        return ip.shard_sizes(folder / f"a.{by}")
    data = (folder / "a.tar").read_bytes()
    with tarfile.open(folder / "a.tar") as tar:
        size = len(tar.getnames())
    entry = {"url": "a.tar", "nsamples": size, "filesize": len(data)}
    hashed = {**entry, "md5sum": hashlib.md5(data, usedforsecurity=False).hexdigest()}
    name, said = {
        "sizes.json": ("sizes.json", {"a.tar": size}),
        "img2dataset": ("a_stats.json", {"successes": size}),
        "Energon": (".nv-meta/.info.json", {"shard_counts": {"a.tar": size}}),
        "wids": ("index.json", {"wids_version": 1, "shardlist": [entry]}),
        "wids with md5": ("index.json", {"wids_version": 1, "shardlist": [hashed]}),
    }[by]
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(json.dumps(said))
    found = ip.shard_sizes(folder)
    return ip.Shards.from_json(found.to_json(), path=found.path)  # counted once, and kept


INDEXED = ["sizes.json", "img2dataset", "Energon", "wids", "wids with md5"]
NUMBERS = np.arange(105)  # with one sample more or less, their tar has as many bytes
MD5 = f"must have the md5 that its index says; got another; {RESTORE}"


@pytest.mark.parametrize("by", ["npy", "tar", *INDEXED])
@pytest.mark.parametrize("fetched", [False, True])
def test_replaced_since_it_was_counted(
    dataset_of: Opened, tmp_path: Path, by: str, fetched: bool
) -> None:
    """Other numbers in as many bytes are refused by whoever counted before, and read by who counts.

    One that was fetched before is read as it was counted for as long as the run goes on, and not
    by later ones, though all that was counted is the same.
    """
    path = tmp_path / f"a.{'npy' if by == 'npy' else 'tar'}"
    write_numbers(path, NUMBERS)
    shards, data = counted(tmp_path, by), None
    if fetched:
        data = dataset_of(shards)
        assert 3 == data[3]
    write_numbers(path, NUMBERS[::-1])
    os.utime(path, ns=(0, 123456789))
    if data is not None:
        assert 96 == data[96]
        dataset_of.end()
    cure = MD5 if "md5" in by else SINCE
    if not fetched:  # in an empty folder
        assert f"{path} {cure}" == refused(dataset_of(shards), 3)
        assert [] == [*tmp_path.glob("cache/*/shards/*")]
        dataset_of.end()
    now = counted(tmp_path, by)
    assert (len(shards), shards.num_bytes) == (len(now), now.num_bytes)
    assert 101 == dataset_of(now)[3]


@pytest.mark.parametrize("change", [-1, 1, -60, 60])
@pytest.mark.parametrize("by", ["tar", *INDEXED])
def test_more_or_fewer_since(dataset_of: Opened, tmp_path: Path, by: str, change: int) -> None:
    """A tar with a sample more or less is refused, where it has as many bytes, too."""
    path = tmp_path / "a.tar"
    write_numbers(path, NUMBERS)
    shards, num_bytes = counted(tmp_path, by), path.stat().st_size
    write_numbers(path, range(105 + change))
    got, same = path.stat().st_size, abs(change) == 1
    assert same == (num_bytes == got)
    rule = f"must hold {num_bytes} bytes, as shards says; got {'more' if change > 1 else got}"
    rule = f"{rule}; {RESTORE}"
    if same:
        held = f"must hold 105 samples in 1 shard, as shards says; got {105 + change} in 1"
        rule = {"tar": f"{held}; {RESTORE}", "wids with md5": MD5}.get(by, SINCE)
    assert f"{path} {rule}" == refused(dataset_of(shards), 3)
    assert [] == [*tmp_path.glob("cache/*/shards/*")]


@pytest.mark.parametrize("change", [-1, 1])
@pytest.mark.parametrize("by", INDEXED[:-1])
def test_stale_index(dataset_of: Opened, tmp_path: Path, by: str, change: int) -> None:
    """An index that was stale before anybody read it is noticed when the tar is opened."""
    path = tmp_path / "a.tar"
    write_numbers(path, NUMBERS)
    (tmp_path / "old").mkdir()
    write_numbers(tmp_path / "old/a.tar", range(105 + change))
    counted(tmp_path / "old", by)
    (tmp_path / "old/a.tar").unlink()
    for each in (tmp_path / "old").iterdir():
        each.rename(tmp_path / each.name)
    shards = ip.shard_sizes(tmp_path)
    assert 105 + change == shards.num_samples
    said = refused(dataset_of(shards), 3)
    assert said.startswith(f"open_shard must return the {105 + change} rows of shard 0, a.tar; ")
    assert "; got 105; " in said


@pytest.mark.parametrize("by", ["kept", *INDEXED])
def test_cut_index(tmp_path: Path, by: str) -> None:
    """An index that was cut short, as by a kill of its writer, is refused wherever it ends."""
    write_numbers(tmp_path / "a.tar", range(10))
    kept = counted(tmp_path, "tar" if by == "kept" else by).to_json()
    if by == "kept":  # as `indexplan shards --json > shards.json` writes it
        (tmp_path / "shards.json").write_text(kept)
    (path,) = (each for each in tmp_path.rglob("*") if each.is_file() and each.suffix != ".tar")
    whole = path.read_text()
    for stop in range(len(whole.rstrip())):
        path.write_text(whole[:stop])
        with pytest.raises(ip.IndexPlanError, match=r"must be JSON|must be valid JSON"):
            ip.shard_sizes(path)


def test_rewritten_in_a_store(server: str, dataset_of: Opened, tmp_path: Path) -> None:
    """A store's tags are noted with the sizes, and tell that a file was written again."""
    assert server
    for number, place in ((0, "before"), (10**6, "after")):
        (tmp_path / place).mkdir()
        write(tmp_path / place / "a.parquet", number)
    before, after = ((tmp_path / each / "a.parquet").read_bytes() for each in ("before", "after"))
    assert len(before) == len(after)
    url = "s3://bucket/rewritten/a.parquet"
    store().pipe_file(url, before)
    shards = at(ip.shard_sizes(url), "s3://bucket/rewritten")
    data = dataset_of(shards)
    assert 5 == data[5]["id"]
    store().pipe_file(url, after)
    assert f"shard 5, {url}, {SINCE}" == refused(data, 555)
    dataset_of.end()
    assert f"shard 5, {url}, {SINCE}" == refused(dataset_of(shards), 555)
    store().pipe_file(url, before)
    assert 555 == dataset_of(shards)[555]["id"]


@pytest.mark.parametrize("batch", [False, True])
def test_table(dataset_of: Opened, tmp_path: Path, batch: bool) -> None:
    """Rows of a table, or batch, are dicts, though as many columns as rows would be a length."""

    def open_shard(file: ShardFile) -> Any:
        table = pq.read_table(file.path)
        return table.to_batches()[0] if batch else table

    columns = {str(number): [10 * number, 10 * number + 1] for number in range(2)}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    shards = ip.shard_sizes(tmp_path / "a.parquet", whole_files=True)
    assert {"0": 1, "1": 11} == dataset_of(shards, open_shard)[1]


def test_page_checksums(dataset_of: Opened, tmp_path: Path) -> None:
    """A value that was changed in the store is found by its page's checksum, if it has one."""
    path = tmp_path / "a.parquet"
    rows = pa.table({"id": np.arange(1000)})
    options: dict[str, Any] = {"compression": "none", "use_dictionary": False}
    pq.write_table(rows, path, write_page_checksum=True, **options)
    data = path.read_bytes()
    at = data.index(np.int64(555).tobytes())
    path.write_bytes(data[:at] + b"\0" + data[at + 1 :])
    message = refused(dataset_of(ip.shard_sizes(path)), 3)
    assert message.startswith(f"shard 0, {path}, must be a file that open_shard opens; got OSError")
    assert "CRC checksum verification failed" in message


# Shards that an index of MDS lists, compressed or not.

ROWS = 100
ZIPS = {
    "zstd": lambda data: pa.compress(data, "zstd", asbytes=True),
    "br": lambda data: pa.compress(data, "brotli", asbytes=True),
    "snappy": lambda data: pa.compress(data, "snappy", asbytes=True),
    "gz": gzip.compress,
    "bz2": bz2.compress,
}


def raw_rows(file: ShardFile) -> Any:
    """Return the numbers in a file."""
    return np.fromfile(file.path, "<i8")


def part(name: str, data: bytes, kind: str) -> dict[str, Any]:
    """Return what MDS's index says of a file."""
    return {
        "basename": name,
        "bytes": len(data),
        "hashes": {kind: hashlib.new(kind, data).hexdigest()} if kind else {},
    }


def write_mds(folder: Path, ending: str = "", kind: str = "sha1") -> Path:
    """Write a shard of numbers, and an index; return the file."""
    data = np.arange(ROWS, dtype="<i8").tobytes()
    zipped = ZIPS[ending](data) if ending else b""
    name = f"a.mds.{ending}" if ending else "a.mds"
    entry = {"raw_data": part("a.mds", data, kind), "samples": ROWS, "format": "mds"}
    if ending:
        entry["zip_data"] = part(name, zipped, kind)
    folder.mkdir()
    (folder / "index.json").write_text(json.dumps({"version": 2, "shards": [entry]}))
    (folder / name).write_bytes(zipped or data)
    return folder / name


@pytest.mark.parametrize("ending", ZIPS)
def test_compressed(dataset_of: Opened, tmp_path: Path, ending: str) -> None:
    """A compressed shard is fetched, compared with its hash, and opened as the file in it."""
    file = write_mds(tmp_path / "data", ending)
    shards = ip.shard_sizes(tmp_path / "data")
    again = ip.Shards.from_json(shards.to_json(), shards.path)
    assert shards.stored == again.stored
    data = dataset_of(again, raw_rows)
    assert (99, file.stat().st_size) == (data[99], data.report().num_bytes)


@pytest.mark.parametrize("kind", ["sha1", "md5", "blake2b"])
@pytest.mark.parametrize("ending", ["", "zstd"])
def test_swapped(dataset_of: Opened, tmp_path: Path, ending: str, kind: str) -> None:
    """A shard that was swapped for another one of the same length is refused."""
    file = write_mds(tmp_path / "data", ending, kind)
    data = file.read_bytes()
    file.write_bytes(data[:-9] + bytes([data[-9] ^ 1]) + data[-8:])
    rule = f"{file} must have the {kind} that its index says; got another; {RESTORE}"
    assert rule == refused(dataset_of(ip.shard_sizes(tmp_path / "data"), raw_rows), 99)


@pytest.mark.parametrize("ending", ZIPS)
def test_damaged_without_hashes(dataset_of: Opened, tmp_path: Path, ending: str) -> None:
    """What cannot be decompressed to the bytes of the index is refused."""
    file = write_mds(tmp_path / "data", ending, "")
    file.write_bytes(bytes(file.stat().st_size))
    rule = f"{file} must hold 800 bytes in compressed form, as shards says; got others; {RESTORE}"
    assert rule == refused(dataset_of(ip.shard_sizes(tmp_path / "data"), raw_rows), 99)
