"""Folders of what is kept, chunks and shards, in a place that others can write to as well."""

import hashlib
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import fsspec
import numpy as np
import pytest

import indexplan as ip
from indexplan.stores.cache import cache_folder
from indexplan_fetch import ShardLoader
from indexplan_fetch.folder import Folder
from tests.support.children import NOBODY
from tests.support.refusals import refused
from tests.support.trees import PLAN

CHUNK = "epoch-00000/chunk-00001.npy"
RIGHT = PLAN.order.take(0, 300).tolist()


@pytest.fixture
def shared(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that anybody may write to, like /tmp, for what is kept."""
    (place / "shared").mkdir()
    (place / "shared").chmod(0o1777)
    monkeypatch.setenv("INDEXPLAN_CACHE", str(place / "shared"))
    return place / "shared"


@pytest.fixture
def order(shared: Path) -> Iterator[ip.types.Stored]:
    """A reader of a plan in a store, of which nothing is kept yet."""
    url = f"memory://{shared}/a.plan"
    ip.save(PLAN, url, units_per_chunk=256)
    yield ip.types.Stored(url)
    fsspec.filesystem("memory").store.clear()


@pytest.mark.parametrize("at", [9, 200, -1])
def test_a_kept_copy_that_was_edited(order: ip.types.Stored, at: int) -> None:
    """A kept chunk is hashed when it is read, and the cure works, also in the same process."""
    assert RIGHT == order.take(0, 300).tolist()
    path = cache_folder(order.path, order.build.sha256) / CHUNK
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)
    said = refused(lambda: ip.load(order.path).order.take(0, 300))
    assert said.startswith(
        f"{path}, block 0 must have the XXH64 in {CHUNK.replace('.npy', '.xxh64')}, "
    )
    assert said.endswith(f"; delete this copy of what {order.path} holds, to fetch it again")
    path.unlink()
    assert RIGHT == ip.load(order.path).order.take(0, 300).tolist()


class Kept(NamedTuple):
    """Something that is read by way of a cache."""

    read: Callable[[], Any]
    right: Any
    places: dict[str, Path]
    """What is made, from the outermost to the innermost."""
    another: str


@pytest.fixture
def kept(request: pytest.FixtureRequest, shared: Path) -> Kept:
    """A chunk of a plan, or a shard, of which nothing is kept yet."""
    if request.param == "chunks":
        order = request.getfixturevalue("order")
        path = cache_folder(order.path, order.build.sha256) / CHUNK
        paths = [*reversed(path.parents[:3]), path, path.with_name(f".{path.name}.part")]
        places = dict(zip(MADE["chunks"], paths, strict=True))
        another = "set INDEXPLAN_CACHE to a folder of your own"
        return Kept(lambda: order.take(0, 300).tolist(), RIGHT, places, another)
    (shared.parent / "data").mkdir()
    np.save(shared.parent / "data/a.npy", np.arange(144))
    shards = ip.shard_sizes(shared.parent / "data/a.npy")
    root = Folder(shared, shards).path
    plan = ip.Plan(ip.Sequential(144), world_size=1, batch_size=9)

    def read() -> Any:
        options: Any = {"num_epochs": 1, "cache_dir": shared, "tries": 1}
        with ShardLoader(shards, lambda at: np.load(at.path), plan, rank=0, **options) as loader:
            return [int(each) for each in next(loader)]

    return Kept(
        read, [*range(9)], {n: root / n[:-1] for n in MADE["shards"]}, "pass another cache_dir"
    )


MADE = {  # folders, and files
    "chunks": ["user/", "plan/", "epoch/", "chunk", "part"],
    "shards": ["/", "shards/", "sums/", "ranks/", "wanted/"],
}
OTHERS = ["one of mode 720", "one of mode 702", f"one of user {NOBODY}"]
LINKED = "one with other hard links"  # of a file of the user's
CASES = [(kind, at, each) for kind in MADE for at in MADE[kind] for each in ("a link", *OTHERS)]
CASES += [(kind, at, "a file") for kind in MADE for at in MADE[kind] if at.endswith("/")]
CASES += [("chunks", at, each) for at in ("chunk", "part") for each in ("a named pipe", LINKED)]


@pytest.mark.parametrize(("kept", "at", "planted"), CASES, indirect=["kept"])
def test_planted(
    kept: Kept, at: str, planted: str, precious: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What somebody else may have planted, at any level, is refused; deleting it is the cure."""
    path, folder = kept.places[at], at.endswith("/")
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if planted == "a link":
        path.symlink_to(precious.parent if folder else precious)
    elif planted == "a named pipe":
        os.mkfifo(path)
    elif planted == LINKED:
        path.hardlink_to(precious)
    else:
        path.mkdir() if folder and planted != "a file" else path.write_bytes(bytes(1152))
        path.chmod(int(planted[-3:], 8) if "mode" in planted else 0o700)
    if "user" in planted and os.geteuid() == 0:
        os.chown(path, NOBODY, NOBODY)
    elif "user" in planted:  # who cannot give files away: whoever asks is another one
        path, folder, planted = (
            next(iter(kept.places.values())),
            True,
            f"one of user {os.geteuid()}",
        )
        monkeypatch.setattr(os, "geteuid", lambda: NOBODY)
    rule = f"{'folder' if folder else 'file'} that only you, user {os.geteuid()}, can write to"
    for _ in range(2):
        assert f"{path} must be a {rule}; got {planted}; delete it, or {kept.another}" == refused(
            kept.read
        )
    if "user" not in planted:
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        assert kept.right == kept.read()


@pytest.mark.parametrize("kept", MADE, indirect=True)
def test_what_is_made(kept: Kept, shared: Path) -> None:
    """Folders and files are the user's alone, whatever the umask and the place are."""
    before = os.umask(0)
    try:
        assert kept.right == kept.read()
    finally:
        os.umask(before)
    made = {path: path.stat().st_mode for path in shared.rglob("*")}
    assert {path for path in kept.places.values() if path.suffix != ".part"} <= set(made)
    for mode in made.values():
        assert stat.S_IMODE(mode) == (0o700 if stat.S_ISDIR(mode) else 0o600)


def test_where_the_cache_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """INDEXPLAN_CACHE comes before XDG_CACHE_HOME, and that before the home folder.

    In the first, each user has a folder of their own.
    """
    key = hashlib.sha256(b"s3://b/a.plan\nid").hexdigest()[:32]
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("INDEXPLAN_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert tmp_path / "home/.cache/indexplan" / key == cache_folder("s3://b/a.plan", "id")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert tmp_path / "xdg/indexplan" / key == cache_folder("s3://b/a.plan", "id")
    monkeypatch.setenv("INDEXPLAN_CACHE", str(tmp_path / "own"))
    for user in (os.geteuid(), 4321):
        monkeypatch.setattr(os, "geteuid", lambda user=user: user)
        assert tmp_path / f"own/indexplan-{user}" / key == cache_folder("s3://b/a.plan", "id")


def test_the_place_itself_may_be_a_link(
    order: ip.types.Stored, shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where INDEXPLAN_CACHE leads is the user's choice."""
    (tmp_path / "link").symlink_to(shared)
    monkeypatch.setenv("INDEXPLAN_CACHE", str(tmp_path / "link"))
    assert RIGHT == ip.types.Stored(order.path).take(0, 300).tolist()
    assert (cache_folder(order.path, order.build.sha256) / CHUNK).exists()
