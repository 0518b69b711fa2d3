"""A real S3 server for tests, on this machine only: `python -m tests.support.s3_server KEY`.

It is moto's, behind a few lines that note the requests and, for keys with certain words in them,
answer as a store does on a bad day. Prints its URL, and serves until its standard input ends.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

KEY = sys.argv[-1]  # with which everything is allowed
PIECE = 1000  # bytes that come before a gate

Start = Callable[..., Any]


def xml(code: str) -> bytes:
    """The body of S3's error."""
    return f"<Error><Code>{code}</Code><Message>{code} it says, of {KEY}</Message></Error>".encode()


class Noting:
    """A WSGI application around moto's, which serves one request at a time."""

    def __init__(self) -> None:
        self.app = DomainDispatcherApplication(create_backend_app)
        self.lock = threading.Lock()
        self.noted: list[str] = []
        self.refused: set[str] = set()
        self.asked: Counter[str] = Counter()  # GETs of keys
        self.gate = threading.Event()
        self.sent: Counter[str] = Counter()  # bytes of keys, in whole answers to GET

    def __call__(self, environ: dict[str, Any], start: Start) -> Iterable[bytes]:
        method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        if path == "/open":
            self.gate.set()
        if path in {"/noted", "/sent", "/open"}:
            start("200 OK", [("Content-Type", "application/json")])
            return [json.dumps(self.noted if path == "/noted" else self.sent).encode()]
        with self.lock:
            self.noted.append(f"{method} {path}")
            if KEY not in environ.get("HTTP_AUTHORIZATION", ""):
                return self.refuse(environ, start, "403 Forbidden", "InvalidAccessKeyId")
            if method == "PUT" and "collide" in path and path not in self.refused:
                self.refused.add(path)
                return self.refuse(environ, start, "409 Conflict", "ConditionalRequestConflict")
            if method == "GET" and self.fails(path):
                return self.refuse(environ, start, "403 Forbidden", "AccessDenied")
            return self.serve(environ, start, method == "GET" and "damaged_download" in path)

    def fails(self, path: str) -> bool:
        """Whether a GET of a key is refused: always, or the first two times."""
        self.asked[path] += 1
        return "all_fail" in path or ("two_fail" in path and self.asked[path] <= 2)

    def refuse(
        self, environ: dict[str, Any], start: Start, status: str, code: str
    ) -> Iterable[bytes]:
        """Answer with an error, as S3 does: to HEAD without a body."""
        environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        start(status, [("Content-Type", "application/xml")])
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [xml(code)]

    def serve(self, environ: dict[str, Any], start: Start, damaged: bool) -> Iterable[bytes]:
        """Let moto answer; of what is said to be damaged, flip the last bit of a chunk."""
        status: list[Any] = []
        body = b"".join(self.app(environ, lambda *said: status.append(said)))
        damaged = damaged and "chunk-" in environ["PATH_INFO"]
        left_out = {"server", *(["x-amz-checksum-crc32"] if damaged else [])}
        headers = [said for said in status[0][1] if said[0].lower() not in left_out]
        if damaged:
            body = body[:-1] + bytes([body[-1] ^ 1])
        path = environ["PATH_INFO"]
        if environ["REQUEST_METHOD"] == "GET":
            self.sent[path] += len(body)
        start(status[0][0], headers)
        return self.halted(body) if "gated" in path else [body]

    def halted(self, body: bytes) -> Iterator[bytes]:
        """Yield a piece of a body, and the rest when the gate is opened."""
        yield body[:PIECE]
        self.gate.wait()
        yield body[PIECE:]


class Handler(WSGIRequestHandler):
    """Says nothing of the requests."""

    def log(self, *_: Any) -> None: ...


def main() -> None:
    """Serve until the one who started this has gone."""
    logging.disable()
    server = make_server("127.0.0.1", 0, Noting(), threaded=True, request_handler=Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"http://127.0.0.1:{server.server_port}", flush=True)  # noqa: T201 (for who started it)
    sys.stdin.read()
    server.shutdown()


if __name__ == "__main__":
    main()
