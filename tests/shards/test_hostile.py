"""What an index of shards or a table may do to its reader: claim things, but no more than that."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import indexplan as ip
from tests.errors.catalogue.shard_sizes import headed, shaped
from tests.support.forging import Trap

SHARD = {"raw_data": {"basename": "a.mds", "bytes": 9}, "samples": 5, "format": "mds"}


@pytest.fixture(autouse=True)
def _shard(here: Path) -> None:
    """Stand in a folder with one shard."""
    (here / "a.mds").write_bytes(bytes(9))


def index(shard: dict[str, Any]) -> str:
    """Write an MDS index of one shard."""
    Path("index.json").write_text(json.dumps({"shards": [shard], "version": 2}))
    return "index.json"


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
    (here.parent / "elsewhere").write_bytes(bytes(9))
    Path("a.mds").unlink()
    Path("a.mds").symlink_to(here.parent / "elsewhere")
    assert 5 == ip.shard_sizes(index(SHARD)).num_samples
