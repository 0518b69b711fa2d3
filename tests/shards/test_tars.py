"""Tars of samples: counted and read as WebDataset groups them, or refused.

The oracle opens them by Python's tarfile and groups as webdataset 1.0.2 does. `test_library.py`
runs webdataset itself over the same drawn tars.
"""

from __future__ import annotations

import io
import json
import re
import tarfile
from pathlib import Path
from typing import Any

import fsspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import indexplan as ip
from indexplan_fetch import ShardFile, ShardLoader, open_tar

Sample = dict[str, Any]
STEMS = st.sampled_from(["a", "b", "0007", "x y", "é", "_a", "__a__", "n" * 120, "m" * 300])
FOLDERS = st.sampled_from(["", "", "d/", "d.e/", "./", "__d__/", "d/__e__/", "l" * 90 + "/"])
ENDS = st.sampled_from([".jpg", ".JPG", ".cls", ".seg.png", "", ".", ".__meta__", ".txt"])
NAMES = st.one_of(
    st.tuples(FOLDERS, STEMS, ENDS).map("".join),
    st.sampled_from([".hidden", ".hidden.jpg", "d/.h.jpg", "__x.jpg__", "no-dot"]),
)
KINDS = st.sampled_from([tarfile.REGTYPE] * 8 + [tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE])
MEMBERS = st.lists(st.tuples(NAMES, st.binary(max_size=1500), KINDS), max_size=12)
FORMATS = st.sampled_from([tarfile.GNU_FORMAT, tarfile.PAX_FORMAT, "ustar"])


def write(
    path: Path, members: list[tuple[str, bytes, bytes]], kind: Any = tarfile.GNU_FORMAT
) -> None:
    """Write a tar; ustar has no names of more than 100 bytes that it cannot divide."""
    as_ustar = kind == "ustar"
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT if as_ustar else kind) as tar:
        for name, data, of in members:
            member = tarfile.TarInfo(name)
            member.type, member.linkname = of, "elsewhere" if of in b"12" else ""
            member.size = len(data) if of == tarfile.REGTYPE else 0
            try:
                tar.addfile(member, io.BytesIO(data))
            except ValueError:
                assert as_ustar


def grouped(path: Path) -> list[Sample] | None:
    """Read a tar as webdataset does; None if it refuses it."""
    samples: list[Sample] = []
    with tarfile.open(path, "r|") as tar:
        for member in tar:
            if not member.isreg() or re.match(r"__[^/]*__($|/)", member.name):
                continue
            found = re.match(r"^((?:.*/|)[^.]+)[.]([^/]*)$", member.name)
            if found is None:
                continue
            extension = found[2].lower()
            if not samples or samples[-1]["__key__"] != found[1]:
                samples.append({"__key__": found[1]})
            if extension in samples[-1]:
                return None
            samples[-1][extension] = tar.extractfile(member).read()  # type: ignore[union-attr]
    return samples


def opened(path: Path) -> Any:
    """Open a tar as a loader does."""
    return open_tar(ShardFile(str(path), 0, None))


@given(members=MEMBERS, kind=FORMATS)
def test_samples_are_those_of_webdataset(
    members: list[Any], kind: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Their keys, extensions and bytes, and how many there are; or both refuse the tar."""
    path = tmp_path_factory.getbasetemp() / "drawn.tar"
    write(path, members, kind)
    expected = grouped(path)
    if expected is None:
        with pytest.raises(ip.PlanFileError, match="must have one member of a name"):
            opened(path)
        return
    assert expected == list(opened(path))
    extra = path.with_name("extra.tar")  # of one sample, as shards of nothing are refused
    write(extra, [("a.b", b"", tarfile.REGTYPE)])
    assert [len(expected), 1] == ip.shard_sizes(f"{path.parent}/[de]*.tar").sizes.array.tolist()


SAMPLES = [(f"{n:03}.{e}", bytes([n]) * 700, tarfile.REGTYPE) for n in range(9) for e in ("x", "y")]


def test_every_cut_is_refused(tmp_path: Path) -> None:
    """A tar cut off anywhere, at the end of a member, too, where tarfile sees no fault."""
    write(tmp_path / "a.tar", SAMPLES)
    whole = (tmp_path / "a.tar").read_bytes()
    end = len(whole.rstrip(b"\0"))
    end += -end % 512
    for stop in [0, 1, 511, 512, 513, *range(1024, end + 1, 512)]:
        (tmp_path / "b.tar").write_bytes(whole[:stop])
        with pytest.raises(ip.PlanFileError, match="must be a whole tar"):
            ip.shard_sizes(tmp_path / "b.tar")
    (tmp_path / "b.tar").write_bytes(whole[: end + 512])
    assert [9] == ip.shard_sizes(tmp_path / "b.tar").sizes.array.tolist()


def test_every_damaged_header_is_refused(tmp_path: Path) -> None:
    """One flipped bit in a header changes its sum; tarfile would end there in silence."""
    write(tmp_path / "a.tar", SAMPLES)
    whole = (tmp_path / "a.tar").read_bytes()
    for byte in [*range(1536, 2048, 37), 1536 + 124, 1536 + 150, 1536 + 156]:
        damaged = bytearray(whole)
        damaged[byte] ^= 1
        (tmp_path / "b.tar").write_bytes(damaged)
        with pytest.raises(ip.PlanFileError, match="must be a whole tar; got no valid header"):
            ip.shard_sizes(tmp_path / "b.tar")


def test_large_sizes(tmp_path: Path) -> None:
    """Of 8 GiB and more, which octal digits do not hold, in GNU's and PAX's way."""
    for number, kind in enumerate((tarfile.GNU_FORMAT, tarfile.PAX_FORMAT)):
        with (tmp_path / f"{number}.tar").open("wb") as file:
            for name, size in (("a.x", 2**33 + 5), ("b.x", 3)):
                member = tarfile.TarInfo(name)
                member.size = size
                file.write(member.tobuf(kind))
                file.seek(-(-size // 512) * 512, 1)
            file.write(bytes(10240))
    assert [2, 2] == ip.shard_sizes(tmp_path / "*.tar").sizes.array.tolist()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder of two tars, with 9 samples and 4."""
    folder = tmp_path / "data"
    (folder / "parts").mkdir(parents=True)
    write(folder / "0.tar", SAMPLES)
    write(folder / "1.tar", SAMPLES[:8])
    return folder


def counted(path: Path, kind: str) -> None:
    """Check that the two tars are counted as their headers say, and read."""
    found = ip.shard_sizes(path)
    assert (kind, ("0.tar", "1.tar"), [9, 4]) == (
        found.kind,
        found.files,
        found.sizes.array.tolist(),
    )
    assert found == ip.Shards.from_json(found.to_json())
    by_headers = ip.shard_sizes(f"{found.path}/*.tar")
    assert (by_headers.num_bytes, by_headers.stamps) == (found.num_bytes, found.stamps)
    plan = ip.Plan(ip.ShardShuffle(found, lanes=1), world_size=1, batch_size=4)
    cache = Path(found.path).parent / f"cache-{kind}"
    with ShardLoader(found, open_tar, plan, rank=0, num_epochs=1, cache_dir=cache) as loader:
        read = [(each["__key__"], each["x"], each["y"]) for batch in loader for each in batch]
    expected = [(f"{n:03}", bytes([n]) * 700, bytes([n]) * 700) for n in [*range(9), *range(4)]]
    assert sorted(expected) == sorted(read)


SIZES = {"0.tar": 9, "1.tar": 4}
SPLIT = ".nv-meta/split.yaml"
ENERGON = {".nv-meta/.info.json": {"energon_version": "7.4.1", "shard_counts": SIZES}}
SPLITS = [  # what megatron-energon 7.4.1 writes, where all shards are in one split
    {},
    {SPLIT: {"exclude": [], "split_parts": {"test": [], "train": ["0.tar", "1.tar"], "val": []}}},
    {SPLIT: {"split_parts": {"train": ["{0..1}.tar"]}}},
]
TRIED = {"count": 10, "failed_to_download": 1}  # by img2dataset; `successes` are in the tar
INDEXES: list[tuple[str, str, dict[str, Any]]] = [
    ("tar", "*.tar", {}),
    ("sizes", "sizes.json", {"sizes.json": SIZES}),  # by name, as open_clip and others write them
    (
        "img2dataset",
        "*_stats.json",
        {f"{n}_stats.json": {**TRIED, "successes": size} for n, size in ((0, 9), (1, 4))},
    ),
    *(("energon", ".nv-meta/.info.json", ENERGON | each) for each in SPLITS),
]


@pytest.mark.parametrize(("kind", "named", "files"), INDEXES)
def test_indexes(kind: str, named: str, files: dict[str, Any], data: Path) -> None:
    """Tars are counted as their index says, in a folder or by its path, or by their headers.

    Parquet files beside those of img2dataset do not matter; nor does where they lie.
    """
    for name, said in files.items():
        (data / name).parent.mkdir(exist_ok=True)
        (data / name).write_text(json.dumps(said))  # which is YAML too
    if kind == "img2dataset":
        (data / "0.parquet").write_bytes(b"")
    counted(data, kind)
    assert ip.shard_sizes(data) == ip.shard_sizes(data / named)
    store = fsspec.filesystem("memory")
    store.put(str(data), "/tars", recursive=True)
    try:
        assert ip.shard_sizes(data) == ip.shard_sizes("memory://tars")
    finally:
        store.rm("/tars", recursive=True)
