"""Plan directories in object stores: built, read, kept and refused, against a real S3 server."""

import hashlib
import json
import os
import pickle
import re
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest

import indexplan as ip
from indexplan.cli import main
from indexplan.files.stores.cache import cache_folder
from indexplan.files.stores.open import store_of
from tests.support.listed import Listed, Wrapped
from tests.support.s3_server import KEY
from tests.support.trees import PLAN, tree

SECRET = "SecretOfTheTests/+wJalrXUtnFEMIK7MDENG"  # noqa: S105 (nobody asks for it)
ROOT = Path(__file__).parents[2]
CHUNK = "epoch-00000/chunk-00001.npy"


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The URL of an S3 server with a bucket, named in the environment with its credentials."""
    command = [sys.executable, "-W", "ignore", "-m", "tests.support.s3_server"]
    with (
        subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process,
        pytest.MonkeyPatch.context() as patch,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        for name in [name for name in os.environ if name.startswith(("AWS_", "FSSPEC_"))]:
            patch.delenv(name)
        patch.setenv("AWS_ENDPOINT_URL", url)
        patch.setenv("AWS_ACCESS_KEY_ID", KEY)
        patch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        patch.setenv("AWS_CONFIG_FILE", os.devnull)
        patch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)
        store().mkdir("bucket")
        yield url
        forget()
        process.stdin.close()
        process.wait(10)


def store() -> Any:
    """The S3 store, to look at what lies in it and to change it."""
    import s3fs

    return s3fs.S3FileSystem(use_listings_cache=False)


def forget() -> None:
    """Close all connections, as a process does at its end."""
    import s3fs

    for one in s3fs.S3FileSystem._cache.values():
        if one._s3 is not None:
            s3fs.S3FileSystem.close_session(one.loop, one._s3)
    s3fs.S3FileSystem.clear_instance_cache()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder for what is fetched."""
    monkeypatch.setenv("INDEXPLAN_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def url(server: str, cache: Path, request: pytest.FixtureRequest) -> str:
    """A URL for each test, with nothing there yet."""
    assert server.startswith("http://127.0.0.1:")
    assert not cache.exists()
    return f"s3://bucket/{re.sub('[^a-z0-9_]', '-', request.node.name)}.plan"


@pytest.fixture
def saved(url: str) -> str:
    """A plan directory of 2 epochs in 8 chunks, in the store."""
    ip.save(PLAN, url, epochs=range(2), units_per_chunk=256)
    return url


@pytest.fixture(params=["s3", "memory"])
def anywhere(request: pytest.FixtureRequest, url: str) -> Iterator[str]:
    """A URL of each store."""
    yield url if request.param == "s3" else url.replace("s3://", "memory://")
    if request.param == "memory":
        import fsspec

        fsspec.filesystem("memory").store.clear()


def noted(server: str, what: str) -> int:
    """How many of these requests the server has seen."""
    with urllib.request.urlopen(f"{server}/noted") as answer:  # noqa: S310 (our own server)
        return int(json.load(answer).count(what))


def refused(function: Any, *arguments: Any, **options: Any) -> str:
    """The message of the error with which a call is refused."""
    with pytest.raises(ip.IndexPlanError) as error:
        function(*arguments, **options)
    assert SECRET not in repr(error.value)
    return str(error.value)


def run(code: str, *arguments: str, **environment: str) -> str:
    """The output of a fresh process, which says nothing on stderr."""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        check=False,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, **environment},
    )
    assert (0, "") == (done.returncode, done.stderr)
    return done.stdout


def test_place_holds_what_a_folder_holds(anywhere: str, tmp_path: Path) -> None:
    """A store gets the files of a local plan directory, byte for byte, and nothing else."""
    from fsspec.core import url_to_fs

    ip.save(PLAN, tmp_path / "a.plan", epochs=range(2), units_per_chunk=256)
    first = ip.save(PLAN, anywhere, epochs=range(2), units_per_chunk=256)
    again = ip.save(PLAN, anywhere + "/", epochs=range(2), units_per_chunk=256)
    assert (anywhere, 8, 0) == (first.path, first.num_written, first.num_kept)
    assert (anywhere, 0, 8) == (again.path, again.num_written, again.num_kept)
    fs, root = url_to_fs(anywhere)
    found = {path.removeprefix(f"{root}/"): fs.cat_file(path) for path in fs.find(root)}
    assert tree(tmp_path / "a.plan") == found


def test_loaded_plan_is_the_plan(anywhere: str) -> None:
    """A plan that is read from a store answers as the one that was saved, and verifies."""
    ip.save(PLAN, anywhere, epochs=range(2), units_per_chunk=256)
    plan = ip.load(anywhere)
    assert (PLAN, anywhere) == (plan, plan.order.path)
    for epoch in range(3):  # the last one is computed
        expected = PLAN.indices(epoch, 1, rank=2).tolist()
        assert expected == plan.indices(epoch, 1, rank=2).tolist()
    assert PLAN.locate(5, 1) == plan.locate(5, 1)
    report = ip.verify(plan)
    assert report.ok, str(report)


def test_export(anywhere: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An export to a store holds what one to a folder does, and is compared as strictly."""
    fs, root = fsspec.core.url_to_fs(anywhere)
    done = ip.export(PLAN, anywhere)
    assert (anywhere, 12, 0) == (done.path, done.num_written, done.num_kept)
    ip.export(PLAN, tmp_path / "a")
    found = {path.removeprefix(f"{root}/"): fs.cat_file(path) for path in fs.find(root)}
    assert tree(tmp_path / "a") == found
    (tmp_path / "plan.json").write_text(PLAN.to_json())
    assert 0 == main(["export", str(tmp_path / "plan.json"), anywhere])
    assert f"{anywhere}: 6,112 bytes; 0 files written, 12 were there already\n" == (
        capsys.readouterr().out
    )
    name = "epoch-00000/sub-epoch-00001/rank-00002.npy"
    fs.pipe_file(f"{root}/{name}", found[name][:-1] + b"x")
    cure = "delete the file and run the same export again"
    assert f"{anywhere}/{name} must hold what the plan deals; got other bytes; {cure}" == (
        refused(ip.export, PLAN, anywhere)
    )
    fs.rm_file(f"{root}/{name}")
    assert (1, 11) == ((again := ip.export(PLAN, anywhere)).num_written, again.num_kept)
    assert found[name] == fs.cat_file(f"{root}/{name}")
    rule = f"{anywhere} must be new, empty or an export of the same plan"
    other = PLAN.replace(batch_size=5)
    got = f"one of the plan {PLAN.fingerprint}, not {other.fingerprint}"
    assert f"{rule}; got {got}; choose another path" == refused(ip.export, other, anywhere)
    assert f"{anywhere} must be new, empty or a plan directory; got a folder that holds " in (
        refused(ip.save, PLAN, anywhere)
    )


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_export_of_tables(anywhere: str, tmp_path: Path, kind: str) -> None:
    """A table in a store has the bytes of one in a folder, and is compared row by row."""
    from fsspec.core import url_to_fs

    done = ip.export(PLAN, anywhere, format=kind)
    ip.export(PLAN, tmp_path / "a", format=kind)
    name = f"epoch-00000.{kind}"
    right = (tmp_path / "a" / name).read_bytes()
    fs, root = url_to_fs(anywhere)
    assert right == fs.cat_file(f"{root}/{name}")
    again = ip.export(PLAN, anywhere, format=kind)
    assert (0, 1, done.num_bytes) == (again.num_written, again.num_kept, len(right))


def test_bins_and_parts(url: str) -> None:
    """Bins go through a store, built part by part, and the records of the parts are swept up."""
    from tests.support.bins import Bins

    plan = ip.Plan(Bins(500), world_size=3, batch_size=7)
    each = [ip.save(plan, url, units_per_chunk=50, part=(i, 3)).finished for i in (3, 1, 2)]
    assert [False, False, True] == each
    assert 2 * 6 == ip.finish(url).num_kept
    read = ip.load(url)
    assert plan.batch(0, step=3, rank=1).tolist() == read.batch(0, step=3, rank=1).tolist()
    assert ip.verify(read).ok
    assert [] == [name for name in store().find(url) if "part-" in name]


def test_columns(anywhere: str, cache: Path) -> None:
    """Columns go through a store, are fetched once, and are refused if they are damaged there."""
    order = Wrapped(Listed(np.arange(600)[::-1], 1000, np.arange(700_000) * 0.5))
    plan = ip.Plan(order, world_size=3, batch_size=16)
    ip.save(plan, anywhere, units_per_chunk=256)
    assert 0 == ip.save(plan, anywhere, units_per_chunk=256).num_written
    read = ip.load(anywhere)
    assert plan == read
    assert order.take(7, 0, 600).tolist() == read.order.take(7, 0, 600).tolist()
    assert plan.locate(5, 7) == read.locate(5, 7)
    found = read.order.columns
    assert order.columns == found
    kept = [Path(each.path or "") for each in found.values()]
    assert all(path.is_relative_to(cache) and path.is_file() for path in kept)
    assert plan == pickle.loads(pickle.dumps(read))  # noqa: S301 (our own)
    assert ip.verify(read).ok
    fs, root = fsspec.core.url_to_fs(anywhere)
    for path in kept:
        name = f"columns/{path.name}"
        data = fs.cat_file(f"{root}/{name}")
        assert path.read_bytes() == data
        said = f"{anywhere}/{name} must hold {found[path.stem].identity['length']} numbers of the"
        for wrong in (data[:-1] + b"\x01", b"\x92" + data[1:]):
            fs.pipe_file(f"{root}/{name}", wrong)
            assert plan.locate(5, 7) == ip.load(anywhere).locate(5, 7)  # by what was kept
            path.unlink()
            assert said in refused(ip.load(anywhere).locate, 5, 7)
            assert [] == [left.name for left in path.parent.iterdir() if path.stem in left.name]
            report = ip.verify(ip.load(anywhere))
            assert not report.ok
            assert said in str(report)
            assert said in refused(ip.save, plan, anywhere, units_per_chunk=256)
            path.write_bytes(data)
        fs.pipe_file(f"{root}/{name}", data[:-1])
        assert f"must hold {len(data)} bytes; got {len(data) - 1}" in refused(ip.load, anywhere)
        fs.rm_file(f"{root}/{name}")
        assert "must be there" in refused(ip.load, anywhere)
        ip.save(plan, anywhere, units_per_chunk=256)
        assert data == fs.cat_file(f"{root}/{name}")
    out = anywhere.replace(".plan", ".out")
    assert 2 + 6 == ip.export(plan, out).num_written
    assert 2 + 6 == ip.export(ip.load(anywhere), out).num_kept


def test_unfinished_parts(url: str) -> None:
    """What parts of a build have left to do is named, and cannot be read."""
    ip.save(PLAN, url, units_per_chunk=256, part=(2, 2))
    expected = f"{url} must have all of its chunks; got no record of chunks 0 and 1 of epoch 0; "
    assert refused(ip.finish, url).startswith(expected)
    rule = "must be finished; got a half-built one; run the same build again to finish it"
    assert f"{url} {rule}" == refused(ip.load, url)


def test_verbs(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The verbs of the command line take URLs, and say them."""
    spec = ["--num-samples", "1000", "--batch-size", "16", "--world-size", "3"]
    assert 0 == main(["build", url, *spec])
    assert capsys.readouterr().out.startswith(f"{url}: 4,128 bytes; 1 chunk written")
    assert 0 == main(["show", url, "--epoch", "0", "--step", "1", "--rank", "2", "--json"])
    expected = ip.Plan(ip.Shuffle(1000), world_size=3, batch_size=16).batch(0, step=1, rank=2)
    assert str(expected.tolist()[:3])[1:-1] in re.sub(r"\s+", " ", capsys.readouterr().out)
    assert 0 == main(["verify", url])
    assert 0 == main(["locate", url, "--index", "7", "--epoch", "0"])
    assert 1 == main(["show", url + "x"])
    said = "check the path, or build it with `indexplan build`\n"
    assert f"indexplan: {url}x must be a plan directory; got nothing there; {said}" == (
        capsys.readouterr().err
    )


def test_process_ends_quietly(saved: str) -> None:
    """A process that has read from a store ends without a word on stderr."""
    code = "import sys, indexplan as ip; print(ip.load(sys.argv[1]).batch(0, 1, step=0, rank=0)[0])"
    assert f"{PLAN.batch(0, 1, step=0, rank=0)[0]}\n" == run(code, saved)


# processes that do the same at once, forked from one that has imported what they need
AT_ONCE = (
    "import multiprocessing, sys, s3fs, indexplan as ip, indexplan.files.build\n"
    "from tests.support.trees import PLAN\n"
    "PLAN.order.take(0, 0)\n"
    "from indexplan.kernels.xxh64 import xxh64; xxh64(b'')\n"
    "url, context = sys.argv[1], multiprocessing.get_context('fork')\n"
    "all_here = context.Barrier(3)\n"
    "def work(_): all_here.wait(); return {}\n"
    "with context.Pool(3) as pool: print(pool.map(work, range(3), chunksize=1))\n"
)


def test_builders_at_once(url: str, tmp_path: Path) -> None:
    """Processes that build the same plan at once all succeed, and the bytes are those of one."""
    work = "ip.save(PLAN, url, units_per_chunk=64).finished"
    assert "[True, True, True]\n" == run(AT_ONCE.format(work), url)
    ip.save(PLAN, tmp_path / "one.plan", units_per_chunk=64)
    root = url.removeprefix("s3://")
    found = {p.removeprefix(f"{root}/"): store().cat_file(p) for p in store().find(root)}
    assert tree(tmp_path / "one.plan") == found


def test_other_builders_at_once(url: str) -> None:
    """Of processes that build different plans at one URL at once, one succeeds."""
    code = AT_ONCE.format("save(_)").replace(
        "def work(_)",
        "def save(seed):\n"
        "    plan = PLAN.replace(order=ip.Shuffle(1000, seed=seed))\n"
        "    try: return ip.save(plan, url, units_per_chunk=256).finished\n"
        "    except ip.PlanFileError as error: return 'got one with order' in str(error) and seed\n"
        "def work(_)",
    )
    done = eval(run(code, url))  # noqa: S307 (a list of our own)
    (winner,) = [seed for seed, said in enumerate(done) if said is True]
    assert [True if seed == winner else seed for seed in range(3)] == done
    plan = PLAN.replace(order=ip.Shuffle(1000, seed=winner))
    assert plan == ip.load(url)
    assert ip.verify(ip.load(url)).ok


def test_temporary_folder_without_room(url: str, tmp_path: Path) -> None:
    """A chunk for which there is no room on the way to the store is a clear error."""
    code = (
        "import resource, sys, indexplan as ip\n"
        "from tests.support.trees import PLAN\n"
        "ip.save(PLAN, 'memory://a.plan')\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))\n"
        "try: ip.save(PLAN, sys.argv[1])\n"
        "except ip.PlanFileError as error: print(error)\n"
    )
    assert (
        f"{url}/epoch-00000/chunk-00000.npy must be written to a temporary file in $TMPDIR first; "
        "got 'File too large'; raise the limit on file sizes, then run the same build again\n"
    ) == run(code, url, TMPDIR=str(tmp_path))
    assert {} == tree(tmp_path)
    assert [f"{url}/build.json"] == [f"s3://{path}" for path in store().find(url)]


def test_build_of_something_else(saved: str) -> None:
    """A plan in a store is never turned into another one; other things are left alone."""
    before = store().find(saved, detail=True)
    other = PLAN.replace(order=ip.Shuffle(1000, seed=6))
    message = refused(ip.save, other, saved, epochs=range(2), units_per_chunk=256)
    assert message.startswith(f"{saved} must be a build of the same order and epochs; got one with")
    rule = "must be new, empty or a plan directory; got"
    folder = saved + "/epoch-00000"
    expected = f"{folder} {rule} a folder that holds chunk-00000.npy; choose another path"
    assert expected == refused(ip.save, PLAN, folder)
    file = f"{saved}/blocks.npy"
    assert f"{file} {rule} a file; choose another path" == refused(ip.save, PLAN, file)
    assert before == store().find(saved, detail=True)


@pytest.mark.parametrize("size", [100, 20 * 2**20])
def test_file_that_is_there_stays(anywhere: str, size: int) -> None:
    """A file is never replaced, whether it is sent at once or in pieces."""
    from fsspec.core import url_to_fs

    place = store_of(anywhere)
    assert place.publish("a/b", [b"a" * size])
    fs, root = url_to_fs(anywhere, use_listings_cache=False)
    before = fs.info(f"{root}/a/b")
    assert not place.publish("a/b", [b"b" * size])
    assert before == fs.info(f"{root}/a/b")
    with place.open("a/b") as stream:
        assert b"a" * size == stream.read()


def test_stores_that_write_in_place(tmp_path: Path) -> None:
    """In a store that would replace files, they are looked for first."""
    url = f"local://{tmp_path}/a.plan"
    saved = ip.save(PLAN, url, units_per_chunk=256)
    assert (4, True) == (saved.num_written, saved.finished)
    ip.save(PLAN, tmp_path / "b.plan", units_per_chunk=256)
    assert tree(tmp_path / "b.plan") == tree(tmp_path / "a.plan")
    assert not store_of(url).publish("build.json", [b"another"])
    other = PLAN.replace(order=ip.Shuffle(1000, seed=6))
    message = refused(ip.save, other, url, units_per_chunk=256)
    assert message.startswith(f"{url} must be a build of the same order and epochs; got one with")
    assert tree(tmp_path / "b.plan") == tree(tmp_path / "a.plan")


class Breaking(fsspec.get_filesystem_class("local")):  # type: ignore[misc]
    """A store that writes in place, and breaks off in the middle, or when it is done."""

    protocol = ("breaking", "late")
    cachable = False

    def put_file(self, path1: str, path2: str, **options: Any) -> None:
        data = Path(path1).read_bytes()
        if "late" in path2:
            Path(path2).write_bytes(data)
        elif "half" in path2:
            Path(path2).write_bytes(data[: len(data) // 2])
        raise OSError(5, f"connection lost, {SECRET}")


def test_uploads_that_break_off(tmp_path: Path) -> None:
    """What an upload has left by half is not taken for somebody else's file."""
    fsspec.register_implementation("breaking", f"{__name__}.Breaking", clobber=True)
    place = store_of(f"breaking://{tmp_path}")
    cure = "check the bucket, the credentials and the network"
    for name in ("half", "none"):
        expected = f"{place.path}/{name} must be written; got OSError (Input/output error); {cure}"
        assert expected == refused(place.publish, name, [b"abcd"])
    assert not place.publish("late", [b"abcd"])  # it is there whole, whoever wrote it
    assert {"half": b"ab", "late": b"abcd"} == tree(tmp_path)


def test_uploads_that_collide(url: str) -> None:
    """An upload that S3 refuses since another one is under way is tried again."""
    assert "collide" in url
    assert store_of(url).publish("a", [b"a"])
    with store_of(url).open("a") as stream:
        assert b"a" == stream.read()


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


def test_chunks_are_fetched_when_touched(saved: str, server: str, cache: Path) -> None:
    """Opening fetches no chunk; the first touch fetches one, whole; later ones find it."""
    chunk = f"GET /{saved.removeprefix('s3://')}/{CHUNK}"
    before = noted(server, chunk)
    plan = ip.load(saved)
    assert not cache.exists()
    assert PLAN.order.take(0, 300).tolist() == plan.order.take(0, 300).tolist()
    (folder,) = cache.glob("indexplan-*/*")
    assert [CHUNK] == list(tree(folder))
    assert store().cat_file(f"{saved}/{CHUNK}") == (folder / CHUNK).read_bytes()
    assert before + 2 == noted(server, chunk)  # theirs and ours
    del plan
    assert PLAN.order.take(0, 300).tolist() == ip.load(saved).order.take(0, 300).tolist()
    assert before + 2 == noted(server, chunk)


def test_processes_share_a_fetch(saved: str, server: str) -> None:
    """Of processes that touch a chunk at the same time, one fetches it for all."""
    expected = PLAN.order.take(0, 300).tolist()
    work = "ip.Stored(url).take(0, 300).tolist()"
    assert f"{[expected] * 3}\n" == run(AT_ONCE.format(work), saved)
    assert 1 == noted(server, f"GET /{saved.removeprefix('s3://')}/{CHUNK}")


@pytest.mark.parametrize("found", [b"", b"x" * 2000])
def test_cached_chunk_of_another_size(saved: str, found: bytes) -> None:
    """A kept chunk that is too short or too long is fetched again, as is what a kill has left."""
    order = ip.Stored(saved)
    folder = cache_folder(saved, order.manifest.sha256)
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
    expected = f"{url}/{CHUNK} must be what blocks.npy says; got other bytes in block 0; {cure}"
    order = ip.Stored(url)
    for _ in range(2):
        assert expected == refused(order.take, 0, 300)
        assert {} == tree(cache)


def test_chunk_that_vanishes(saved: str, cache: Path) -> None:
    """A chunk that is gone is named when the plan is opened, or when it is touched."""
    order = ip.Stored(saved)
    store().rm_file(f"{saved}/{CHUNK}")
    cure = "check the bucket and the path"
    expected = f"{saved}/{CHUNK} must be readable; got nothing there; {cure}"
    assert expected == refused(order.take, 0, 300)
    assert {} == tree(cache)
    assert refused(ip.load, saved).startswith(f"{saved}/{CHUNK} must be there; got ")


def test_chunk_of_another_size(saved: str) -> None:
    """A chunk that is longer than it was is named, likewise."""
    order = ip.Stored(saved)
    store().pipe_file(f"{saved}/{CHUNK}", b"x" * 2000)
    assert f"{saved}/{CHUNK} must hold 1152 bytes; got 2000; " in refused(ip.load, saved)
    assert "must be what blocks.npy says; got 2000 bytes instead of 1152" in (
        refused(order.take, 0, 300)
    )


def test_edited_manifest(saved: str) -> None:
    """A manifest that was edited is refused, in its URL's name, whatever was kept."""
    ip.load(saved).order.take(0, 300)
    text = store().cat_file(f"{saved}/manifest.json").replace(b'"world_size":3', b'"world_size":4')
    store().pipe_file(f"{saved}/manifest.json", text)
    expected = f"{saved}: manifest.json must be as it was written; it was edited; "
    assert refused(ip.load, saved).startswith(expected)


def test_another_plan_at_the_same_url(saved: str, cache: Path) -> None:
    """What was kept of a plan is not taken for its successor's at the same URL."""
    ip.load(saved).order.take(0, 300)
    store().rm(saved, recursive=True)
    plan = PLAN.replace(order=ip.Shuffle(1000, seed=6))
    ip.save(plan, saved, epochs=range(2), units_per_chunk=256)
    assert plan.order.take(0, 300).tolist() == ip.load(saved).order.take(0, 300).tolist()
    assert 2 == len(list(cache.glob("indexplan-*/*")))


def test_cache_without_room(saved: str, tmp_path: Path) -> None:
    """A chunk that cannot be kept whole is a clear error, and nothing of it is kept."""
    code = (
        "import resource, sys, indexplan as ip\n"
        "order = ip.Stored(sys.argv[1])\n"
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
    message = refused(ip.Stored(saved).take, 0, 300)
    assert message.startswith(f"{tmp_path}/file/")
    assert f"must be written, to read {saved}; got 'File exists'; " in message


def test_where_the_cache_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """INDEXPLAN_CACHE comes before XDG_CACHE_HOME, and that before the home folder."""
    key = hashlib.sha256(b"s3://b/a.plan\nid").hexdigest()[:32]
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("INDEXPLAN_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert tmp_path / "home/.cache/indexplan" / key == cache_folder("s3://b/a.plan", "id")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert tmp_path / "xdg/indexplan" / key == cache_folder("s3://b/a.plan", "id")
    monkeypatch.setenv("INDEXPLAN_CACHE", str(tmp_path / "own"))
    assert tmp_path / f"own/indexplan-{os.geteuid()}" / key == cache_folder("s3://b/a.plan", "id")


def test_pickles_to_its_url(saved: str) -> None:
    """A loaded order travels to workers as its URL, and works in a forked one."""
    order = ip.Stored(saved)
    text = pickle.dumps(order)
    assert len(text) < 1000
    assert SECRET.encode() not in text
    assert pickle.loads(text).take(0, 300) == order.take(0, 300)  # noqa: S301 (our own)


def test_forked_workers(saved: str) -> None:
    """Workers that are forked after the plan was opened and read fetch what they need."""
    code = (
        "import multiprocessing, sys, warnings, indexplan as ip\n"
        "warnings.simplefilter('ignore')  # of forks, in processes with threads\n"
        "order = ip.Stored(sys.argv[1])\n"
        "order.take(0, 0)\n"
        "def work(position): return order.take(0, position).tolist()\n"
        "with multiprocessing.get_context('fork').Pool(2) as pool:\n"
        "    print(sum(pool.map(work, [300, 900]), []))\n"
    )
    expected = PLAN.order.take(0, np.array([300, 900])).tolist()
    assert f"{expected}\n" == run(code, saved)


def test_no_such_bucket(url: str) -> None:
    """A bucket that is not there is named with what is looked for in it."""
    url = url.replace("bucket", "nobody")
    expected = f"{url}/build.json must be written; got nothing there; check the bucket and the path"
    assert expected == refused(ip.save, PLAN, url)
    assert refused(ip.load, url).startswith(f"{url} must be a plan directory; got nothing there; ")


def test_wrong_credentials(saved: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Credentials that the store does not know are an error that does not show them."""
    forget()
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIASOMEBODYELSE0000")
    said = "got no permission; check the credentials, and what they are allowed to do"
    try:
        assert f"{saved}/manifest.json must be readable; {said}" == refused(ip.load, saved)
        assert f"{saved}/build.json must be readable; {said}" == refused(ip.save, PLAN, saved)
    finally:
        forget()


class Web(SimpleHTTPRequestHandler):
    """A web server that serves files, and no listings; it knows ranges unless it is told not to."""

    ranges = True
    length = True

    def list_directory(self, path: Any) -> None:
        self.send_error(404)

    def do_GET(self) -> None:
        span = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if not (self.ranges and span):
            super().do_GET()
            return
        data = Path(self.translate_path(self.path)).read_bytes()
        data = data[int(span[1]) : int(span[2]) + 1]
        self.send_response(206)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def send_header(self, keyword: str, value: str) -> None:
        if self.length or keyword != "Content-Length":
            super().send_header(keyword, value)

    def log_message(self, *_: Any) -> None: ...


class Simple(Web):
    """A web server that answers every request with the whole file."""

    ranges = False


class Sizeless(Simple):
    """A web server that does not say how long its files are."""

    length = False


@pytest.fixture
def web(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of a web server for the folder `web`."""
    handler = partial(request.param, directory=str(tmp_path / "web"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


READ = (
    "import sys, indexplan as ip\n"
    "try:\n"
    "    plan = ip.load(sys.argv[1])\n"
    "    print(plan.batch(0, step=3, rank=0).tolist(), ip.verify(plan).ok)\n"
    "except ip.PlanFileError as error: print(error)\n"
)


@pytest.mark.parametrize("web", [Web, Simple], indirect=True)
def test_web_servers(web: str, tmp_path: Path) -> None:
    """A plan that lies on a plain web server is read and verified; nothing needs a listing."""
    plan = ip.Plan(ip.Shuffle(1000, seed=5), world_size=1, batch_size=4)
    (tmp_path / "web").mkdir()
    ip.save(plan, tmp_path / "web/a.plan", units_per_chunk=256)
    cache = str(tmp_path / "cache")
    expected = f"{plan.batch(0, step=3, rank=0).tolist()} True\n"
    assert expected == run(READ, f"{web}/a.plan", INDEXPLAN_CACHE=cache)
    (tmp_path / "web/a.plan" / CHUNK).unlink()
    said = run(READ, f"{web}/a.plan", INDEXPLAN_CACHE=cache)
    assert said.startswith(f"{web}/a.plan/{CHUNK} must be there; got 'No such file or directory'; ")


@pytest.mark.parametrize("web", [Web, Simple, Sizeless], indirect=True)
def test_web_servers_and_long_chunks(web: str, tmp_path: Path, request: Any) -> None:
    """Chunks of several requests need a server that serves pieces, and says how long files are."""
    plan = ip.Plan(ip.Sequential(2_200_000), world_size=1, batch_size=4)
    (tmp_path / "web").mkdir()
    ip.save(plan, tmp_path / "web/a.plan")
    said = run(READ, f"{web}/a.plan", INDEXPLAN_CACHE=str(tmp_path / "cache"))
    handler = request.node.callspec.params["web"]
    assert (
        said
        == {
            Web: "[12, 13, 14, 15] True\n",
            Simple: f"{web}/a.plan/epoch-00000/chunk-00000.npy must be served in pieces; got "
            "8800128 bytes instead of the 8388608 from 0 on; choose a server that answers requests "
            "for a Range, or copy the plan to a folder\n",
            Sizeless: f"{web}/a.plan/manifest.json must be served with its size, as "
            "Content-Length; got none; choose another server\n",
        }[handler]
    )


def test_no_server(saved: str) -> None:
    """A store that cannot be reached is an error with its kind."""
    code = (
        "import sys, indexplan as ip\n"
        "try: ip.load(sys.argv[1])\n"
        "except ip.PlanFileError as error: print(error)\n"
    )
    out = run(code, saved, AWS_ENDPOINT_URL="http://127.0.0.1:9", AWS_MAX_ATTEMPTS="1")
    cure = "check the bucket, the credentials and the network"
    expected = f"{saved}/manifest.json must be readable; got EndpointConnectionError; {cure}\n"
    assert expected == out


def test_no_credentials(saved: str) -> None:
    """Without credentials, the store's package says that it has none."""
    code = (
        "import os, sys, indexplan as ip\n"
        "del os.environ['AWS_ACCESS_KEY_ID'], os.environ['AWS_SECRET_ACCESS_KEY']\n"
        "try: ip.load(sys.argv[1])\n"
        "except ip.PlanFileError as error: print(error)\n"
    )
    cure = "check the bucket, the credentials and the network"
    expected = f"{saved}/manifest.json must be readable; got NoCredentialsError; {cure}\n"
    assert expected == run(code, saved)


@pytest.mark.parametrize(
    "url",
    [
        f"s3://{KEY}:{SECRET}@bucket/a.plan",
        f"s3://{SECRET}@bucket/a.plan",
        f"sftp://me:{SECRET}@host/a.plan",
        f"abfs://me:{SECRET}@account.dfs.core.windows.net/a.plan",
        f"https://host/a.plan?X-Amz-Signature={SECRET}",
        f"simplecache::s3://{SECRET}@bucket/a.plan",
    ],
)
def test_urls_with_credentials(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A URL that carries credentials is refused at once, and never repeated."""
    for function in (ip.load, ip.Stored, ip.finish):
        message = refused(function, url)
        assert KEY not in message
    assert message == refused(ip.save, PLAN, url)
    assert 2 == main(["show", url])
    assert f"indexplan: {message}\n" == capsys.readouterr().err
    if "::" not in url:
        assert message.startswith("path must be a URL without credentials, @, ? and #; got one of ")


def test_azure_containers_are_no_credentials() -> None:
    """Azure's way to name a container is not taken for a user."""
    url = "abfs://container@account.dfs.core.windows.net/a.plan"
    assert url == store_of(url + "/").path


@pytest.mark.parametrize(
    ("url", "message"),
    [
        (
            "zz://b/a.plan",
            "path must be a folder, or a URL of a kind that fsspec knows; got 'zz://...'; check "
            "the letters before ://",
        ),
        (
            "zip::s3://b/a.plan",
            "path must be one URL, not a chain of them; got 'zip::...'; pass the folder's own URL",
        ),
    ],
)
def test_urls_of_no_store(url: str, message: str) -> None:
    """A URL that nobody knows, or of more than one place, is refused."""
    assert message == refused(ip.load, url)
    assert message == refused(ip.save, PLAN, url)


def test_secrets_stay_where_they_are(saved: str, tmp_path: Path) -> None:
    """No secret reaches a file, a pickle, an output or an error, wherever it was configured."""
    code = (
        "import pickle, sys, traceback, indexplan as ip\n"
        "from indexplan.cli import main\n"
        "url, folder = sys.argv[1:]\n"
        "plan = ip.load(url)\n"
        "plan.order.take(0, 300)\n"
        "open(folder + '/pickled', 'wb').write(pickle.dumps(plan))\n"
        "ip.save(plan, folder + '/a.plan')\n"
        "ip.save(plan, url + '2')\n"
        "print(repr(plan), main(['show', url]), main(['verify', url]), main(['show', url + '3']))\n"
        "import fsspec\n"
        "fsspec.filesystem('s3', use_listings_cache=False).rm_file(url + '2/manifest.json')\n"
        "fsspec.config.conf['s3']['secret'] += 'wrong'\n"
        "fsspec.config.conf['s3']['endpoint_url'] = 'http://127.0.0.1:9/' + sys.stdin.read()\n"
        "try: ip.load(url)\n"
        "except ip.PlanFileError: traceback.print_exc()\n"
    )
    environment = {k: v for k, v in os.environ.items() if k != "AWS_SECRET_ACCESS_KEY"}
    environment["AWS_MAX_ATTEMPTS"] = "1"
    environment["FSSPEC_S3_SECRET"] = SECRET
    environment["FSSPEC_S3_KEY"] = environment.pop("AWS_ACCESS_KEY_ID")
    command = [sys.executable, "-c", code, saved, str(tmp_path)]
    done = subprocess.run(
        command, check=False, capture_output=True, cwd=ROOT, env=environment, input=SECRET.encode()
    )
    assert b"must be readable; got EndpointConnectionError" in done.stderr, done.stderr.decode()
    assert 0 == done.returncode, done.stderr.decode()
    places = [f"s3://{name}" for name in store().find("bucket")]
    everything = [done.stdout, done.stderr, *map(store().cat_file, places)]
    everything += [*tree(tmp_path).values()]
    assert "pickled" in tree(tmp_path)
    assert [] == [text for text in everything if SECRET.encode() in text or KEY.encode() in text]


@pytest.mark.parametrize(
    ("missing", "said"),
    [("fsspec", "s3:// needs fsspec"), ("s3fs", "s3:// needs a package that is not installed")],
)
def test_missing_packages(missing: str, said: str, tmp_path: Path) -> None:
    """Without fsspec or its package for a store, the error names the extra; folders still work."""
    code = (
        f"import sys; sys.modules[{missing!r}] = None\n"
        "import indexplan as ip\n"
        "from tests.support.trees import PLAN\n"
        "ip.save(PLAN, sys.argv[1]); ip.load('file://' + sys.argv[1]).batch(0, 0, step=0, rank=0)\n"
        "try: ip.load('s3://bucket/a.plan')\n"
        "except ip.IndexPlanError as error: print(error)\n"
    )
    cure = "pip install 'indexplan[remote]', or the package that fsspec names for this store"
    assert f"{said}; {cure}\n" == run(code, str(tmp_path / "a.plan"))


def test_memory_is_bounded(url: str) -> None:
    """Building and reading a chunk of 120 MB takes less than half of it in memory."""
    code = (
        "import resource, sys, indexplan as ip\n"
        "def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024\n"
        "small = ip.Plan(ip.Shuffle(5_000_000), world_size=1, batch_size=8)\n"
        "ip.save(small, 'memory://a.plan'); ip.verify(ip.load('memory://a.plan'))\n"
        "import s3fs; s3fs.S3FileSystem().exists(sys.argv[1])\n"
        "before = peak()\n"
        "plan = ip.Plan(ip.Shuffle(30_000_000), world_size=1, batch_size=8)\n"
        "ip.save(plan, sys.argv[1])\n"
        "built = peak()\n"
        "order = ip.Stored(sys.argv[1])\n"
        "order.take(0, 5)\n"
        "print(built - before, peak() - before)\n"
    )
    built, read = map(int, run(code, url).split())
    assert built < 60
    assert read < 60


@pytest.mark.usefixtures("server", "cache")
def test_page_runs() -> None:
    """The code of the page on remote plans runs."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs/remote.md").read_text(), re.DOTALL)
    assert blocks
    names: dict[str, Any] = {}
    for block in blocks:
        exec(block, names)  # noqa: S102 (our own page)
    assert names["report"].ok
