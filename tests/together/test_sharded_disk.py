"""The disk that shards are kept on: full, failing or small; what is dropped, and what stays."""

from __future__ import annotations

import errno
import resource
import shutil
from collections import OrderedDict
from pathlib import Path

import pytest

import indexplan as ip
from indexplan_torch import PlanLoader, ShardedDataset, open_parquet
from tests.support.children import become_nobody
from tests.support.forked import results
from tests.support.refused_calls import refuse
from tests.together.sharded_runs import BLOCK, forks, live_bytes, on_disk, plan_of, write_shards

FREE = "free some space, or pass a smaller cache_bytes; whole shards are kept"
CHECK = "check its permissions and its file system"


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> ip.Shards:
    """Thirty files of Parquet, in a folder."""
    return write_shards(tmp_path_factory.mktemp("shards") / "data")


def dataset_of(shards: ip.Shards, cache: Path, cache_bytes: int = 10**9) -> ShardedDataset:
    """Make a dataset that tries a fetch twice, at once."""
    made = ShardedDataset(
        shards, open_parquet, cache_dir=cache, cache_bytes=cache_bytes, tries=2, ahead=4
    )
    made.settings = made.settings._replace(pause=0.01)
    return made


def read_refused(data: str, whole_files: bool, cache: str, call: str, error: int) -> str:
    """Read a sample, while the kernel refuses a call, or files of more bytes; return the error."""
    shards = ip.shard_sizes(f"{data}/*.parquet", whole_files=whole_files)
    dataset = dataset_of(shards, Path(cache))
    dataset[0]
    if call == "limit":
        resource.setrlimit(resource.RLIMIT_FSIZE, (error, error))
    else:
        refuse(call, error)
    try:
        dataset[len(dataset) - 1]
    except ip.IndexPlanError as raised:
        return str(raised)
    return "read"


@pytest.mark.parametrize(
    ("whole_files", "call", "error", "got", "cure"),
    [
        (False, "write", errno.ENOSPC, "No space left on device", FREE),
        (False, "write", errno.EDQUOT, "Disk quota exceeded", FREE),
        (False, "fsync", errno.EIO, "Input/output error", CHECK),
        (True, "fsync", errno.EIO, "Input/output error", CHECK),
        (True, "limit", 1000, "File too large", FREE),  # in the middle of a file
    ],
)
def test_full_disk(
    shards: ip.Shards,
    tmp_path: Path,
    whole_files: bool,
    call: str,
    error: int,
    got: str,
    cure: str,
) -> None:
    """A disk that takes no more is named, no half shard gets its name, and what is whole stays."""
    name, cache = "tests.together.test_sharded_disk:read_refused", tmp_path / "cache"
    arguments = shards.path, whole_files, str(cache), call, error
    (said,) = results([forks().start(name, tmp_path / "log", *arguments)])
    (folder,) = cache.iterdir()
    assert f"cache_dir must be writable: {folder}; got '{got}'; {cure}" == said
    left = [path.name for path in (folder / "shards").iterdir()]
    assert ["00000000.parquet"] == left
    again = dataset_of(ip.shard_sizes(f"{shards.path}/*.parquet", whole_files=whole_files), cache)
    assert len(again) - 1 == again[len(again) - 1]["id"]
    again.stop()


def read_in_vain(data: str, cache: str) -> str:
    """Read as a user who may not write to the folder; return the error."""
    become_nobody()
    dataset = dataset_of(ip.shard_sizes(f"{data}/*.parquet", whole_files=True), Path(cache))
    try:
        dataset[0]
    except ip.IndexPlanError as raised:
        return str(raised).replace(str(dataset.folder.path), "{folder}")
    return "read"


def test_folder_that_cannot_be_written(shards: ip.Shards, place: Path, tmp_path: Path) -> None:
    """Who may not write hears that, as nothing that others have fetched is read."""
    cache, data = place / "cache", shutil.copytree(shards.path, place / "data")
    first = dataset_of(shards, cache)
    assert 0 == first[0]["id"]
    first.stop()
    cache.chmod(0o555)
    name = "tests.together.test_sharded_disk:read_in_vain"
    said = results([forks().start(name, tmp_path / "log", str(data), str(cache))])
    cache.chmod(0o755)
    assert [f"cache_dir must be writable: {{folder}}; got 'Permission denied'; {CHECK}"] == said


def by_lru(plan: ip.Plan, shards: ip.Shards, room: int, epochs: int) -> int:
    """How many shards are fetched by a cache that drops what was used longest ago."""
    kept: OrderedDict[int, int] = OrderedDict()
    fetched = 0
    for epoch in range(epochs):
        for step in range(plan.steps(epoch).stop):
            for shard in dict.fromkeys(shards.locate(plan.batch(epoch, step=step, rank=0))[0]):
                if shard not in kept:
                    fetched += 1
                    kept[shard] = -(-shards.num_bytes[shard] // BLOCK) * BLOCK
                    while sum(kept.values()) > room:
                        kept.popitem(last=False)
                kept.move_to_end(shard)
    return fetched


def test_what_is_dropped(shards: ip.Shards, tmp_path: Path) -> None:
    """Where an epoch does not fit, what the next one needs last is dropped: fewer come again."""
    plan = plan_of(shards, 1)
    room = live_bytes(plan, shards, range(1)) + 8 * BLOCK
    dataset = dataset_of(shards, tmp_path, room)
    loader = PlanLoader(dataset, plan)
    for epoch in range(4):
        loader.set_epoch(epoch)
        for _ in loader:
            assert on_disk(tmp_path) <= room
    dataset.stop()
    assert 30 < dataset.report().num_fetches < 0.9 * by_lru(plan, shards, room, 4)


def test_less_room_than_is_live(shards: ip.Shards, tmp_path: Path) -> None:
    """With room for a few steps only, shards come again and again, and batches are the plan's."""
    plan = plan_of(shards, 1)
    room = live_bytes(plan, shards, range(1)) // 2
    dataset = dataset_of(shards, tmp_path, room)
    found = []

    def read() -> None:
        for batch in PlanLoader(dataset, plan):
            found.append(batch["id"].tolist())
            assert on_disk(tmp_path) <= room

    with pytest.warns(UserWarning, match="^cache_bytes must be at least"):
        read()
    dataset.stop()
    assert [plan.batch(0, step=i, rank=0).tolist() for i in range(len(found))] == found
    assert plan.steps(0).stop == len(found)
    assert dataset.report().num_fetches > 30


def test_smaller_cache(shards: ip.Shards, tmp_path: Path) -> None:
    """A run with a smaller cache drops what the run before it had, and uses what is left."""
    plan = plan_of(shards, 1)
    first = dataset_of(shards, tmp_path)
    list(PlanLoader(first, plan))
    first.stop()
    room = max(on_disk(tmp_path) // 2, live_bytes(plan, shards, range(1)))
    second = dataset_of(shards, tmp_path, room)
    found = [batch["id"].tolist() for batch in PlanLoader(second, plan)]
    second.stop()
    assert [plan.batch(0, step=i, rank=0).tolist() for i in range(len(found))] == found
    assert on_disk(tmp_path) <= room
    assert second.report().num_fetches < 30


def test_other_shards(shards: ip.Shards, tmp_path: Path) -> None:
    """Of what was fetched for other shards nothing is taken, where they only look alike."""
    first = dataset_of(shards, tmp_path)
    assert 0 == first[0]["id"]
    first.stop()
    fields = {**shards.to_dict(), "digests": ["0" * 32, *shards.digests[1:]]}
    other = dataset_of(ip.Shards.from_dict(fields, shards.path), tmp_path)
    with pytest.raises(ip.IndexPlanError, match="must be the file that shards was made from"):
        other[0]
    other.stop()
