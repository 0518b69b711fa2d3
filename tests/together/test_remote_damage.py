"""Plan directories in object stores: damaged there, on the way, or where they are kept."""

from pathlib import Path
from typing import Any

import pytest

import indexplan as ip
from indexplan.stores.cache import cache_folder
from tests.support.remote import CHUNK, cache, refused, run, saved, server, store, url
from tests.support.trees import PLAN, tree

__all__ = ["cache", "saved", "server", "url"]  # fixtures


def test_edited_chunk(saved: str) -> None:
    """A build finds, and verify names, a chunk with other bytes; verify reads the store's."""
    plan = ip.load(saved)
    read = plan.order.take(0, 300)
    name = f"{saved}/{CHUNK}"
    data = bytearray(store().cat_file(name))
    data[128 + 4 * 44] ^= 1
    store().pipe_file(name, bytes(data))
    assert read.tolist() == plan.order.take(0, 300).tolist()
    report = ip.verify(plan)
    assert not report.ok
    assert f"{CHUNK}, block 0: position 300 of epoch 0 holds" in str(report)
    cure = "delete the file and run the same build again"
    assert f"{name} must hold what its order generates; got other bytes in block 0; {cure}" == (
        refused(ip.save, PLAN, saved, epochs=range(2), units_per_chunk=256)
    )


@pytest.mark.parametrize("found", [b"", b"x" * 2000])
def test_cached_chunk_of_another_size(saved: str, found: bytes) -> None:
    """A kept chunk that is too short or too long is fetched again, as is what a kill has left."""
    order = ip.types.Stored(saved)
    folder = cache_folder(saved, order.build.sha256)
    (folder / CHUNK).parent.mkdir(parents=True)
    (folder / CHUNK).write_bytes(found)
    (folder / "epoch-00000/.chunk-00001.npy.part").write_bytes(b"left by a killed reader")
    assert PLAN.order.take(0, 300).tolist() == order.take(0, 300).tolist()
    assert [CHUNK] == list(tree(folder))


def test_damaged_download(url: str, cache: Path) -> None:
    """A chunk that does not arrive as it was written is an error, and is not kept."""
    assert "damaged" in url
    ip.save(PLAN, url, units_per_chunk=256)
    cure = "read it again; if that does not help, verify the plan, and restore the file"
    expected = f"{url}/{CHUNK} must be what its hashes say; got other bytes in block 0; {cure}"
    order = ip.types.Stored(url)
    for _ in range(2):
        assert expected == refused(order.take, 0, 300)
        assert {} == tree(cache)


def test_chunk_that_vanishes(saved: str, cache: Path) -> None:
    """A chunk that is gone is named when the plan is opened, or when it is touched."""
    order = ip.types.Stored(saved)
    store().rm_file(f"{saved}/{CHUNK}")
    cure = "check the bucket and the path"
    expected = f"{saved}/{CHUNK} must be readable; got nothing there; {cure}"
    assert expected == refused(order.take, 0, 300)
    assert {} == tree(cache)
    assert f"got none named {CHUNK}; " in refused(ip.load, saved)


def test_chunk_of_another_size(saved: str) -> None:
    """A chunk that is longer than it was is named, likewise."""
    order = ip.types.Stored(saved)
    store().pipe_file(f"{saved}/{CHUNK}", b"x" * 2000)
    assert f"{saved}/{CHUNK} must hold 1152 bytes; got 2000; " in refused(ip.load, saved)
    assert "must be what its hashes say; got 2000 instead of 1152 bytes" in (
        refused(order.take, 0, 300)
    )


def test_edited_plan_json(saved: str) -> None:
    """A plan.json that was edited is refused, in its URL's name, whatever was kept."""
    ip.load(saved).order.take(0, 300)
    text = store().cat_file(f"{saved}/plan.json").replace(b'"world_size":3', b'"world_size":4')
    store().pipe_file(f"{saved}/plan.json", text)
    expected = f"{saved}: plan.json must be as it was written; got an edited one; "
    assert refused(ip.load, saved).startswith(expected)


def test_cache_without_room(saved: str, tmp_path: Path) -> None:
    """A chunk that cannot be kept whole is a clear error, and nothing of it is kept."""
    code = (
        "import resource, sys, indexplan as ip\n"
        "order = ip.types.Stored(sys.argv[1])\n"
        "from indexplan.kernels.xxh64 import xxh64; xxh64(b'')\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500))\n"
        "try: order.take(0, 300)\n"
        "except ip.PlanFileError as error: print(error)\n"
    )
    out = run(code, saved, INDEXPLAN_CACHE=str(tmp_path / "small"))
    path = next((tmp_path / "small").glob("indexplan-*/*")) / CHUNK
    assert (
        f"{path} must be written, to read {saved}; got 'File too large'; free some space, or set "
        "INDEXPLAN_CACHE to a folder on a disk of this machine with space\n"
    ) == out
    assert {} == tree(tmp_path / "small")


def test_cache_that_is_no_folder(saved: str, tmp_path: Path, monkeypatch: Any) -> None:
    """A file in the cache's place is named."""
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("INDEXPLAN_CACHE", str(tmp_path / "file"))
    message = refused(ip.types.Stored(saved).take, 0, 300)
    assert message.startswith(f"{tmp_path}/file/")
    assert f"must be written, to read {saved}; got 'File exists'; " in message
