"""A real S3 server for tests of remote plans, and what they ask of it."""

import json
import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import indexplan as ip
from tests.support.trees import PLAN

KEY = "AKIAINDEXPLANTESTS00"
SECRET = "SecretOfTheTests/+wJalrXUtnFEMIK7MDENG"  # noqa: S105 (nobody asks for it)
ROOT = Path(__file__).parents[2]
CHUNK = "epoch-00000/chunk-00001.npy"
# processes that do the same at once, forked from one that has imported what they need
AT_ONCE = (
    "import multiprocessing, sys, s3fs, indexplan as ip, indexplan.files.saving\n"
    "from tests.support.trees import PLAN\n"
    "PLAN.order.take(0, 0)\n"
    "from indexplan.kernels.xxh64 import xxh64; xxh64(b'')\n"
    "url, context = sys.argv[1], multiprocessing.get_context('fork')\n"
    "all_here = context.Barrier(3)\n"
    "def work(_): all_here.wait(); return {}\n"
    "with context.Pool(3) as pool: print(pool.map(work, range(3), chunksize=1))\n"
)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The URL of an S3 server with a bucket, named in the environment with its credentials."""
    command = [sys.executable, "-W", "ignore", "-m", "tests.support.s3_server", KEY]
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


def files_at(url: str) -> dict[str, bytes]:
    """The files of a plan directory or an export in a store, by name."""
    import fsspec

    fs, root = fsspec.core.url_to_fs(url, use_listings_cache=False)
    return {path.removeprefix(f"{root}/"): fs.cat_file(path) for path in fs.find(root)}


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
