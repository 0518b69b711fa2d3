"""Plan directories on plain web servers, which list nothing."""

import re
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import indexplan as ip
from tests.support.fresh import printed
from tests.support.remote import CHUNK


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
