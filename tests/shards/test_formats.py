"""Sizes of shards that each format's own library has written, in the order that it reads them.

A file that was cut off anywhere, or damaged, is refused, and never by another kind of error.
"""

from __future__ import annotations

import contextlib
import io
import json
import multiprocessing
import os
import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import indexplan as ip
from indexplan.shards.by_file import FORMATS, File
from indexplan.shards.location import Local
from indexplan_fetch import ShardFile, ShardLoader, open_array_record
from tests.errors.catalogue.shard_sizes import headed, shaped
from tests.shards import test_tars as tars
from tests.support.forging import Trap

ROWS = 250


pytestmark = pytest.mark.usefixtures("here")


def table(start: int, stop: int) -> pa.Table:
    """Samples that are their own numbers."""
    return pa.table(
        {"id": np.arange(start, stop), "text": ["x" * (i % 7) for i in range(start, stop)]}
    )


def sizes(path: str, **options: Any) -> list[int]:
    """How many samples each shard holds, by way of the JSON that is saved."""
    found = ip.shard_sizes(path, **options)
    assert found == ip.Shards.from_json(found.to_json())
    return found.sizes.array.tolist()


def folder_of(write: Any, suffix: str) -> list[str]:
    """Write samples 0 to 250 into files whose names sort in another way than their paths."""
    names = [f"data/{name}{suffix}" for name in ("10", "9", "a-b", "a/0", "a/1")]
    for number, name in enumerate(names):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        write(table(50 * number, 50 * number + 50), name)
    return names


def test_parquet() -> None:
    """Row groups or files, in pyarrow's own order of a folder; others' files are no shards."""
    folder_of(lambda rows, name: pq.write_table(rows, name, row_group_size=30), ".parquet")
    for other in ("data/_SUCCESS", "data/_metadata.parquet", "data/.x.parquet", "data/README.md"):
        Path(other).write_text("x")
    assert [30, 20] * 5 == sizes("data")
    assert [50] * 5 == sizes("data", whole_files=True)
    found = ip.shard_sizes("data", whole_files=True)
    Path("data/README.md").unlink()
    read = pyarrow.dataset.dataset("data", format="parquet")
    assert [Path("data", name).as_posix() for name in found.files] == read.files
    ids = read.to_table()["id"].to_numpy()
    indices = np.arange(ROWS)
    which, rows = found.locate(indices)
    for index in indices[::17]:
        file = pq.read_table(Path("data", found.files[which[index]]))
        assert ids[index] == file["id"][int(rows[index])].as_py()
    assert [30, 20] == sizes("data/a/1.parquet")
    assert [30, 20] * 2 == sizes("data/a/*.parquet")
    assert [30, 20] * 5 == sizes(str(Path("data").absolute() / "**/[!._]*.parquet"))


@pytest.mark.parametrize("compression", [None, "zstd"])
@pytest.mark.parametrize("stream", [False, True])
def test_arrow(stream: bool, compression: str | None) -> None:
    """Record batches of files and streams, with dictionaries, compressed or not."""
    make = pa.ipc.new_stream if stream else pa.ipc.new_file
    words = pa.array(["a", "b"] * 100 + ["c"]).dictionary_encode()
    rows = pa.table({"id": np.arange(201), "word": words})
    with make(
        "a.arrow", rows.schema, options=pa.ipc.IpcWriteOptions(compression=compression)
    ) as to:
        to.write_table(rows, max_chunksize=80)
        to.write_table(rows.slice(0, 0))
        to.write_table(rows.slice(5, 3))
    opened = (pa.ipc.open_stream if stream else pa.ipc.open_file)("a.arrow")
    if stream:
        batches = list(opened)
    else:
        batches = [opened.get_batch(each) for each in range(opened.num_record_batches)]
    assert [batch.num_rows for batch in batches] == sizes("a.arrow")
    assert [204] == sizes("a.arrow", whole_files=True)


def write_stream(name: str, rows: pa.Table, *, legacy: bool = False) -> None:
    """Write an Arrow stream, perhaps as before Arrow 0.15."""
    options = pa.ipc.IpcWriteOptions(use_legacy_format=legacy)
    with pa.ipc.new_stream(name, rows.schema, options=options) as to:
        to.write_table(rows)


WIDE = pa.table({f"column {number}": [1, 2] for number in range(800)})  # a long footer or header
ODD: dict[str, tuple[str, Any, dict[str, Any], list[int]]] = {
    "long footer": ("a.parquet", lambda n: pq.write_table(WIDE, n, row_group_size=1), {}, [1, 1]),
    "no row group": (
        "a.parquet",
        lambda n: (pq.write_table(table(0, 0), n), pq.write_table(table(0, 9), f"b{n}")),
        {"whole_files": True},
        [0, 9],
    ),
    "feather": ("a.feather", lambda n: pa.feather.write_feather(WIDE, n, chunksize=1), {}, [1, 1]),
    "wide stream": ("b", lambda n: write_stream(n, WIDE), {"kind": "arrow"}, [2]),
    "legacy": ("a.arrow", lambda n: write_stream(n, table(0, 7), legacy=True), {}, [7]),
    "float32": ("0.npy", lambda n: np.save(n, np.zeros((7, 3), np.float32)), {}, [7]),
    "Fortran": ("0.npy", lambda n: np.save(n, np.asfortranarray(np.zeros((5, 2)))), {}, [5]),
    "objects": ("0.npy", lambda n: np.save(n, np.array([{}, []], dtype=object)), {}, [2]),
    "fields": ("0.npy", lambda n: np.save(n, np.zeros(4, [("a", "<i4"), ("b", "<f8")])), {}, [4]),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_files(name: str) -> None:
    """Longer than what is read first, empty, old, of other types; as others write them."""
    path, write, options, expected = ODD[name]
    write(path)
    assert expected == sizes(f"*{Path(path).suffix}" if Path(path).suffix else path, **options)


def test_a_changed_footer() -> None:
    """A Parquet file of other numbers, as long as the one before, is another."""
    found = []
    for start in (1000, 2000):
        rows = pa.table({"id": np.arange(start, start + 50)})
        pq.write_table(rows, "a.parquet", compression="none")
        found.append((ip.shard_sizes("a.parquet"), Path("a.parquet").stat().st_size))
    assert found[0][0] != found[1][0]
    assert found[0][1] == found[1][1]


@pytest.mark.parametrize(("times", "right"), [(3, True), (10**6, False)])
def test_threads_that_meet_in_the_parser(
    times: int, right: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python 3.11 raises SystemError then, for a right header: it is parsed again."""
    np.save("0.npy", np.zeros((7, 3), np.float32))
    parse, met = np.lib.format.read_array_header_1_0, iter(range(times))

    def meets(stream: io.BytesIO) -> Any:
        stream.read(5)
        if next(met, None) is not None:
            raise SystemError("AST constructor recursion depth mismatch (before=30, after=27)")
        stream.seek(-5, io.SEEK_CUR)
        return parse(stream)

    monkeypatch.setattr(np.lib.format, "read_array_header_1_0", meets)
    if right:
        assert [7] == sizes("*.npy")
    else:
        with pytest.raises(ip.PlanFileError, match=r"must be a \.npy file; got 'AST constructor"):
            sizes("*.npy")


@pytest.mark.parametrize("dtype", ["uint16", np.uint32, ">i8"])
def test_raw_numbers(dtype: Any) -> None:
    """Tokens without a header, as Dolma, OLMo and Megatron write them, are counted and read."""
    tokens = [np.arange(each).astype(dtype) for each in (700, 0, 500)]
    for number, each in enumerate(tokens):
        each.tofile(f"{number}.npy")
    assert [700, 0, 500] == sizes("*.npy", dtype=dtype)
    Path("1.npy").unlink()  # which no byte could be fetched of
    for name in ("0", "2"):
        Path(f"{name}.npy").rename(f"{name}.bin")
    found = ip.shard_sizes("*.bin", dtype=dtype)
    windows = ip.DocumentWindows(found.sizes, length=100)
    assert 11 == windows.num_units(0)

    def rows_of(file: ShardFile) -> Any:
        return np.memmap(file.path, dtype, "r")

    plan = ip.Plan(ip.ShardShuffle(found, lanes=1), world_size=1, batch_size=100)
    with ShardLoader(found, rows_of, plan, rank=0, num_epochs=1, cache_dir="cache") as loader:
        read = np.concatenate(list(loader))
    assert sorted(np.concatenate(tokens).tolist()) == sorted(read.tolist())


@pytest.mark.slow
def test_array_record() -> None:
    """By names as TFDS and others end them, fetched whole, and read by array_record itself."""
    from array_record.python.array_record_module import ArrayRecordWriter

    names = [f"c4.array_record-{number:05}-of-00002" for number in (0, 1)]
    for name, num in zip(names, (300, 120), strict=True):
        writer = ArrayRecordWriter(name, "group_size:1")
        for number in range(num):
            writer.write(b"%d %d" % (num, number))
        writer.close()
    assert [300, 120] == sizes(".") == sizes("c4.array_record-*")
    assert [300] == sizes(names[0])
    found = ip.shard_sizes(".")
    plan = ip.Plan(ip.ShardShuffle(found, lanes=1), world_size=1, batch_size=42)
    options = {"num_epochs": 1, "cache_dir": "cache"}
    with ShardLoader(found, open_array_record, plan, rank=0, **options) as loader:
        read = [each for batch in loader for each in batch]
    expected = [b"%d %d" % (num, number) for num in (300, 120) for number in range(num)]
    assert sorted(expected) == sorted(read)
    rows = open_array_record(ShardFile(names[1], 0, None))
    assert b"120 7" == rows[7]
    context = multiprocessing.get_context("fork")  # as torch's workers: they open it anew
    queue = context.SimpleQueue()
    child = context.Process(target=lambda: queue.put(rows.__getitems__([7, 9])))
    child.start()
    child.join(60)
    assert [b"120 7", b"120 9"] == queue.get()
    data = Path(names[1]).read_bytes()
    for stop in (0, 100, len(data) - 1):
        Path("b.array_record").write_bytes(data[:stop])
        with pytest.raises(ip.PlanFileError, match="must be a whole ArrayRecord file"):
            ip.shard_sizes("b.array_record")


SHARD = {"raw_data": {"basename": "a.mds", "bytes": 9}, "samples": 5, "format": "mds"}


def index(*shards: dict[str, Any]) -> str:
    """Write an MDS index of shards, and the file of SHARD."""
    Path("a.mds").write_bytes(bytes(9))
    Path("index.json").write_text(json.dumps({"shards": shards, "version": 2}))
    return "index.json"


def test_mds() -> None:
    """The index's order; raw or zipped. Indexes by the library itself: test_library.py."""
    raw = {"raw_data": {"basename": "b.mds", "bytes": 104}, "zip_data": None, "samples": 7}
    zipped = {"raw_data": {"basename": "0.mds", "bytes": 390}, "samples": 18}
    zipped["zip_data"] = {"basename": "0.mds.zstd", "bytes": 25}
    Path("mds").mkdir()
    with contextlib.chdir("mds"):
        index({"format": "mds", **raw}, SHARD, {"format": "mds", "compression": "zstd", **zipped})
        Path("b.mds").write_bytes(bytes(104))
        Path("0.mds.zstd").write_bytes(bytes(25))
    found = ip.shard_sizes("mds")
    assert (("b.mds", "a.mds", "0.mds"), (104, 9, 390)) == (found.files, found.num_bytes)
    assert [7, 5, 18] == sizes("mds") == sizes("mds/index.json")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of its open files
def test_wids(monkeypatch: pytest.MonkeyPatch) -> None:
    """An index that wids has made of tars, in its order."""
    from wids import wids_index

    for name, num in (("b", 5), ("a", 7)):
        tars.write(Path(f"{name}.tar"), tars.SAMPLES[: 2 * num])
    words = ["widsindex", "create", "b.tar", "a.tar", "--output", "index.json", "--name", "x"]
    monkeypatch.setattr(sys, "argv", words)
    wids_index.main()
    listed = json.loads(Path("index.json").read_text())["shardlist"]
    found = ip.shard_sizes("index.json")
    assert [each["url"] for each in listed] == list(found.files)
    assert [each["nsamples"] for each in listed] == found.sizes.array.tolist() == [7, 5]
    assert [each["filesize"] for each in listed] == list(found.num_bytes)


@pytest.mark.parametrize("start", ["s3://bucket/data/", "/data/", ""])
def test_wids_elsewhere(start: str) -> None:
    """Shards elsewhere are named; where they are fetched from is for the user to say."""
    listed = [{"url": f"{start}{each}.tar", "nsamples": 3, "filesize": 9} for each in ("a", "x/b")]
    index = {"wids_version": 1, "shardlist": listed, **({} if start else {"base": "s3://b/data"})}
    Path("index.json").write_text(json.dumps(index))
    found = ip.shard_sizes("index.json")
    assert (("a.tar", "x/b.tar"), "") == (found.files, found.path)
    there = ip.Shards.from_json(found.to_json(), path="s3://mine/data")
    assert "s3://mine/data" == there.path


def test_progress() -> None:
    """It is told how many files were read, up to all of them, in order."""
    folder_of(pq.write_table, ".parquet")
    calls: list[tuple[int, int]] = []
    ip.shard_sizes("data", num_threads=2, progress=lambda *call: calls.append(call))
    assert [(done, 5) for done in range(6)] == calls


def test_a_store() -> None:
    """A glob and a folder at a URL; only ends of files are asked for."""
    import fsspec

    folder_of(lambda rows, name: pq.write_table(rows, name, row_group_size=30), ".parquet")
    store = fsspec.filesystem("memory")
    store.put("data", "/bucket/data", recursive=True)
    try:
        here = ip.shard_sizes("data")
        assert here == ip.shard_sizes("memory://bucket/data")
        assert here.files[-2:] == tuple(
            f"a/{name}" for name in ip.shard_sizes("memory://bucket/data/a/*.parquet").files
        )
        assert [30, 20] == sizes("memory://bucket/data/9.parquet")
    finally:
        store.rm("/bucket", recursive=True)


NINE = pa.table({"id": np.arange(9)})


def write_nine(kind: str, path: Path) -> None:
    """Write a small file."""
    if kind == "npy":
        np.save(path, np.arange(9))
    elif kind == "parquet":
        pq.write_table(NINE, path)
    else:
        with (pa.ipc.new_stream if kind == "stream" else pa.ipc.new_file)(path, NINE.schema) as to:
            to.write_table(NINE, max_chunksize=5)


def read_sizes(kind: str, path: Path) -> list[int]:
    """Read the sizes in it."""
    reader = FORMATS.get(kind, FORMATS["arrow"]).read
    return reader(File(Local(path.parent), path.name, path.stat().st_size)).sizes


@pytest.mark.parametrize("kind", ["npy", "parquet", "stream", "file"])
def test_cut_off_anywhere(kind: str, tmp_path: Path) -> None:
    """No beginning of a file is taken for a whole one."""
    path = tmp_path / f"a.{'npy' if kind == 'npy' else 'x'}"
    write_nine(kind, path)
    assert 9 == sum(read_sizes(kind, path))
    whole = path.read_bytes()
    for stop in range(len(whole)):
        path.write_bytes(whole[:stop])
        with pytest.raises(ip.PlanFileError):
            read_sizes(kind, path)


@pytest.mark.parametrize("kind", ["stream", "file"])
def test_damaged_anywhere(kind: str, tmp_path: Path) -> None:
    """An Arrow file with another byte is read or refused, and the reader comes to an end."""
    path = tmp_path / "a.arrow"
    write_nine(kind, path)
    whole = path.read_bytes()
    for at in range(len(whole)):
        flipped = whole[at] ^ (0xFF, 0x80)[at // 4 % 2]  # of every other number of four bytes
        path.write_bytes(whole[:at] + bytes([flipped]) + whole[at + 1 :])
        with contextlib.suppress(ip.PlanFileError):
            read_sizes(kind, path)


# What an index of shards or a table may do to its reader: claim things, but no more than that.


def test_huge_counts() -> None:
    """A count below 2**63 is believed, and costs no more than another."""
    shards = ip.shard_sizes(index({**SHARD, "samples": 2**62}))
    assert 2**62 == shards.num_samples
    plan = ip.Plan(ip.ShardShuffle(shards), world_size=1, batch_size=3)
    assert 3 == len({*plan.batch(epoch=0, step=0, rank=0).tolist()})


@pytest.mark.parametrize("shape", [(2**62,), (-5, -8), (2**62, 2**62)])
def test_columns_of_other_shapes(shape: tuple[int, ...]) -> None:
    """A shape has to be that of the file."""
    with pytest.raises(ip.IndexPlanError):
        headed(shaped(shape), bytes(320))
    with pytest.raises(ip.IndexPlanError, match="a column's path must be"):
        ip.Column("a.npy")


def test_sparse_files() -> None:
    """A file that takes no room costs nothing, as only its header is read."""
    np.save("x.npy", np.zeros(1))
    head = Path("x.npy").read_bytes()[:128].replace(b"(1,), }           ", b"(137438953472,), }")
    Path("x.npy").write_bytes(head)
    os.truncate("x.npy", 128 + 8 * 2**37)
    assert 2**37 == ip.shard_sizes("x.npy").num_samples


def test_nothing_is_unpickled() -> None:
    """Not by counting objects, and not of a file that is a pickle."""
    np.save("o.npy", np.array([Trap()], object), allow_pickle=True)
    assert 1 == ip.shard_sizes("o.npy").num_samples
    Path("p.npy").write_bytes(pickle.dumps(Trap()))
    for name in ("o.npy", "p.npy"):
        for call in (ip.Column, ip.Weighted, ip.ShardShuffle):
            with pytest.raises(ip.IndexPlanError, match="a column's path must be"):
                call(name)
    with pytest.raises(ip.IndexPlanError):
        ip.shard_sizes("p.npy")
    with pytest.raises(ip.IndexPlanError, match=r"must be a \.npy file"):
        ip.Dataset.scan("p.npy")
    assert not Path("sprung").exists()
    np.load("o.npy", allow_pickle=True)
    assert Path("sprung").exists()  # so that it could have been


def test_links(here: Path) -> None:
    """Links among shards are followed, as caches of downloads have them."""
    path = index(SHARD)
    Path("a.mds").rename(here.parent / "elsewhere")
    Path("a.mds").symlink_to(here.parent / "elsewhere")
    assert 5 == ip.shard_sizes(path).num_samples
