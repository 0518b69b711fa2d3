"""Plan directories in object stores: read, fetched once, and kept; damaged or out of reach."""

import os
import pickle
import re
import subprocess
import sys
import threading
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
from indexplan.stores.cache import cache_folder
from indexplan.stores.open import store_of
from tests.support.fresh import printed
from tests.support.listed import Listed, Wrapped
from tests.support.remote import AT_ONCE, CHUNK, KEY, ROOT, SECRET, forget, noted, refused, store
from tests.support.trees import PLAN, tree


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
        assert f"got none named {name}; " in refused(ip.load, anywhere)
        ip.save(plan, anywhere, units_per_chunk=256)
        assert data == fs.cat_file(f"{root}/{name}")
    out = anywhere.replace(".plan", ".out")
    assert 2 + 6 == ip.export(plan, out).num_written
    assert 2 + 6 == ip.export(ip.load(anywhere), out).num_kept


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
    work = "ip.types.Stored(url).take(0, 300).tolist()"
    assert f"{[expected] * 3}\n" == printed("-c", AT_ONCE.format(work), saved)
    assert 1 == noted(server, f"GET /{saved.removeprefix('s3://')}/{CHUNK}")


def test_forked_workers(saved: str) -> None:
    """Workers that are forked after the plan was opened and read fetch what they need."""
    code = (
        "import multiprocessing, sys, warnings, indexplan as ip\n"
        "warnings.simplefilter('ignore')  # of forks, in processes with threads\n"
        "order = ip.types.Stored(sys.argv[1])\n"
        "order.take(0, 0)\n"
        "def work(position): return order.take(0, position).tolist()\n"
        "with multiprocessing.get_context('fork').Pool(2) as pool:\n"
        "    print(sum(pool.map(work, [300, 900]), []))\n"
    )
    expected = PLAN.order.take(0, np.array([300, 900])).tolist()
    assert f"{expected}\n" == printed("-c", code, saved)


@pytest.mark.usefixtures("server", "cache")
def test_page_runs() -> None:
    """The code of the page on remote plans runs."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs/files.md").read_text(), re.DOTALL)
    (block,) = [block for block in blocks if "s3://bucket" in block]
    names: dict[str, Any] = {}
    exec(block, names)  # noqa: S102 (our own page)
    assert names["report"].ok


# Damaged in the store, on the way, or where it is kept.


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


# Stores that cannot be reached, and credentials, which nobody gets to see.


def test_no_such_bucket(url: str) -> None:
    """A bucket that is not there is named with what is looked for in it."""
    url = url.replace("bucket", "nobody")
    expected = f"{url}/plan.json must be written; got nothing there; check the bucket and the path"
    assert expected == refused(ip.save, PLAN, url)
    assert refused(ip.load, url).startswith(f"{url} must be a plan directory; got nothing there; ")


def test_wrong_credentials(saved: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Credentials that the store does not know are an error that does not show them."""
    forget()
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIASOMEBODYELSE0000")
    said = "got no permission; check the credentials, and what they are allowed to do"
    try:
        assert f"{saved}/plan.json must be readable; {said}" == refused(ip.load, saved)
        assert f"{saved} must be readable; {said}" == refused(ip.save, PLAN, saved)
    finally:
        forget()


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ("os.environ['AWS_ENDPOINT_URL'] = 'http://127.0.0.1:9'", "EndpointConnectionError"),
        ("del os.environ['AWS_ACCESS_KEY_ID'], os.environ['AWS_SECRET_ACCESS_KEY']",
         "NoCredentialsError"),
    ],
)  # fmt: skip
def test_no_server(saved: str, change: str, kind: str) -> None:
    """A store that cannot be reached, or without credentials, is an error with its kind."""
    code = (
        f"import os, sys; {change}\n"
        "import indexplan as ip\n"
        "try: ip.load(sys.argv[1])\n"
        "except ip.PlanFileError as error: print(error)\n"
    )
    cure = "check the bucket, the credentials and the network"
    expected = f"{saved}/plan.json must be readable; got {kind}; {cure}\n"
    assert expected == printed("-c", code, saved, AWS_MAX_ATTEMPTS="1")


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
    for function in (ip.load, ip.types.Stored):
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
        "fsspec.filesystem('s3', use_listings_cache=False).rm_file(url + '2/plan.json')\n"
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


# Plain web servers, which list nothing.


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


@pytest.fixture(params=["as usual", "whole files", "whole files of no length"])
def web(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of a web server for the folder `web`."""
    knows = {"ranges": request.param == "as usual", "length": "no length" not in request.param}
    handler = partial(type("Knowing", (Web,), knows), directory=str(tmp_path / "web"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


READ = (
    "import sys, indexplan as ip\n"
    "try:\n"
    "    plan = ip.load(sys.argv[1]).replace(world_size=1)\n"
    "    print(plan.batch(0, step=3, rank=0).tolist(), ip.verify(plan).ok)\n"
    "except ip.PlanFileError as error: print(error)\n"
)


def test_web_servers(web: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """A plan that lies on a plain web server is read and verified; nothing needs a listing.

    Chunks of several requests need a server that serves pieces, and all need one that says how
    long files are.
    """
    kind, cache = request.node.callspec.params["web"], str(tmp_path / "cache")
    (tmp_path / "web").mkdir()
    for name, num_samples, each in (("a", 1000, 256), ("b", 2_200_000, 2**22)):
        plan = ip.Plan(ip.Sequential(num_samples), batch_size=4)
        ip.save(plan, tmp_path / f"web/{name}.plan", units_per_chunk=each)
    short, long = (
        printed("-c", READ, f"{web}/{name}.plan", INDEXPLAN_CACHE=cache) for name in "ab"
    )
    if "no length" in kind:
        said = "must be served with its size, as Content-Length; got none; choose another server"
        assert [f"{web}/{name}.plan/plan.json {said}\n" for name in "ab"] == [short, long]
        return
    assert "[12, 13, 14, 15] True\n" == short
    pieces = (
        f"{web}/b.plan/epoch-00000/chunk-00000.npy must be served in pieces; got 8800128 bytes "
        "instead of the 8388608 from 0 on; choose a server that answers requests for a Range, or "
        "copy the plan to a folder\n"
    )
    assert long == (short if kind == "as usual" else pieces)
    (tmp_path / "web/a.plan" / CHUNK).unlink()
    said = printed("-c", READ, f"{web}/a.plan", INDEXPLAN_CACHE=cache)
    assert f"must have all of its 9 files; got none named {CHUNK}; " in said
