"""Sizes of shards written by libraries that are not installed with the others: see .ci/run.

Hugging Face's datasets, MosaicML Streaming, Lance, and what WebDataset reads of tars.
"""

from __future__ import annotations

import json
import re
import sys
from importlib.metadata import distribution
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

import indexplan as ip
from indexplan_torch import ShardedDataset
from tests.shards.test_tars import FORMATS, MEMBERS, opened, write
from tests.test_docs import ROOT

# `import streaming` also imports its vision datasets, and with them torchvision
_package = ModuleType("streaming")
_package.__path__ = [str(distribution("mosaicml-streaming").locate_file("streaming"))]
sys.modules["streaming"] = _package

pytestmark = [
    pytest.mark.writers,
    pytest.mark.filterwarnings("default"),  # these libraries' own
    pytest.mark.usefixtures("here"),
]


def check_samples(shards: ip.Shards, read: Any) -> None:
    """Check that sample i of the library's own reader is the one at the shard and row of i."""
    of_shards = np.concatenate([read(shard) for shard in range(len(shards))])
    which, rows = shards.locate(np.arange(shards.num_samples))
    assert list(range(shards.num_samples)) == of_shards.tolist()
    assert np.bincount(which, minlength=len(shards)).tolist() == shards.sizes.array.tolist()
    assert (np.diff(rows)[np.diff(which) == 0] == 1).all()


def test_hugging_face() -> None:
    """A saved dataset: its files in the order of its state, and their record batches."""
    import datasets

    saved = datasets.Dataset.from_dict({"id": list(range(2500))})
    saved.save_to_disk("hf", num_shards=2)
    found = ip.shard_sizes("hf")
    assert [1000, 250, 1000, 250] == found.sizes.array.tolist()
    assert [1250, 1250] == ip.shard_sizes("hf", whole_files=True).sizes.array.tolist()
    ids = np.array(datasets.load_from_disk("hf")["id"])
    batches = [
        batch["id"].to_numpy()
        for name in found.files
        for batch in pa.ipc.open_stream(Path("hf", name))
    ]
    assert list(range(2500)) == ids.tolist()
    check_samples(found, lambda shard: batches[shard])
    datasets.DatasetDict({"train": saved}).save_to_disk("dict")
    with pytest.raises(ip.IndexPlanError, match=r"several \(dataset_dict\.json\)'; pass one of"):
        ip.shard_sizes("dict")
    assert [1000, 1000, 500] == ip.shard_sizes("dict/train").sizes.array.tolist()


def check_fetched(shards: ip.Shards, reader: Any, listed: Any) -> None:
    """Check that compressed shards are fetched, and decompressed for the library's own reader."""

    def open_shard(file: Any) -> Any:
        raw = {**listed[file.number], "zip_data": None, "compression": None}
        raw["raw_data"] = {**raw["raw_data"], "basename": Path(file.path).name}
        rows = reader(Path(file.path), raw)
        return [rows[row]["id"] for row in range(len(rows))]

    data = ShardedDataset(shards, open_shard, cache_dir="cache", cache_bytes=10**7)
    assert list(range(shards.num_samples)) == [data[index] for index in range(len(data))]
    assert data._fetcher is not None
    data._fetcher.stop()


@pytest.mark.parametrize("compression", [None, "zstd", "br", "gz", "bz2", "snappy"])
def test_mds(compression: str | None) -> None:
    """Raw and zipped shards, in the order of the index; a zipped one that was cut is noticed."""
    from streaming.base.format import MDSWriter, reader_from_json

    with MDSWriter(
        out="mds", columns={"id": "int"}, compression=compression, hashes=["sha1"], size_limit=400
    ) as writer:
        for number in range(50):
            writer.write({"id": number})
    found = ip.shard_sizes("mds")
    listed = json.loads(Path("mds/index.json").read_text())["shards"]
    assert len(listed) > 1
    readers = [reader_from_json("mds", None, each) for each in listed]
    assert [reader.samples for reader in readers] == found.sizes.array.tolist()
    if compression is None:
        check_samples(found, lambda shard: [each["id"] for each in readers[shard]])
    if compression is not None:
        check_fetched(
            found, lambda path, each: reader_from_json(str(path.parent), None, each), listed
        )
    file = max(Path("mds").glob("shard.*"))
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(ip.PlanFileError, match=r"index\.json must list shard\."):
        ip.shard_sizes("mds")


def test_lance() -> None:
    """The page's recipe: fragments, without the rows that were deleted, in the order of take."""
    import lance

    written = lance.write_dataset(pa.table({"id": np.arange(100)}), "d.lance", max_rows_per_file=30)
    written.delete("id < 5")
    (recipe,) = re.findall(r"`(\[.*lance\.dataset.*?)`", Path(ROOT, "docs/shards.md").read_text())
    sizes = eval(recipe, {"lance": lance})  # noqa: S307 (our own page)
    assert [25, 30, 30, 10] == sizes
    order = ip.ShardShuffle(sizes, lanes=2, window=1)
    first = lance.dataset("d.lance").take(order.take(0, 0, 95).tolist())["id"].to_pylist()
    assert list(range(5, 100)) == sorted(first)


@given(members=MEMBERS, kind=FORMATS)
def test_webdataset(members: Any, kind: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    """It gives the samples of drawn tars that open_tar gives, in their order, or refuses both."""
    from webdataset import tariterators

    path = tmp_path_factory.getbasetemp() / "drawn.tar"
    write(path, members, kind)
    try:
        read = [
            {
                name: value
                for name, value in each.items()
                if name not in ("__url__", "__local_path__")
            }
            for each in tariterators.tarfile_samples([{"url": str(path)}])
        ]
    except ValueError:  # of a duplicate file name
        with pytest.raises(ip.PlanFileError, match="must have one member of a name"):
            opened(path)
        return
    assert read == list(opened(path))
