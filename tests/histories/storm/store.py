"""An S3 store on loopback whose answers are drawn: right, short, stale, refused, or none.

The draw for a request depends on the seed, the key, the range and how often that was asked for, not
on the order in which threads are served. Imports no indexplan.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections import Counter
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

HANG = 20.0  # seconds after which an answer that hangs is cut off
LESS = "fewer bytes, said so"
CUT = "fewer bytes, cut off"
NONE = "no bytes"
MORE = "more bytes"
WHOLE = "the whole file for a range"
BESIDE = "another range, said so"
STALE = "another file's bytes under this ETag"
RELABELLED = "these bytes under another ETag"
REPLICA = "another file, and its ETag"
SLOW_DOWN, TOO_MANY, BROKEN = "503 SlowDown", "429", "500"
RESET = "connection closed"
HANGS, HALTS = "no answer", "no answer after half of it"
RIGHT = "right"
FATES = (
    *(LESS, CUT, NONE, MORE, WHOLE, BESIDE, STALE, RELABELLED, REPLICA),
    *(SLOW_DOWN, TOO_MANY, BROKEN, RESET, HANGS, HALTS),
)
SLOW = {HANGS, HALTS}
REFUSALS = {
    SLOW_DOWN: (503, "SlowDown"),
    TOO_MANY: (429, "TooManyRequests"),
    BROKEN: (500, "InternalError"),
}


@dataclass(frozen=True)
class Mood:
    """How a store answers: one request of `one_in` in one of some ways; 0 for none."""

    seed: str
    one_in: int = 0
    ways: tuple[str, ...] = FATES


@dataclass
class Object:
    """A file in the store, and others that stale answers are of: under its ETag, and their own."""

    data: bytes
    lie: bytes
    replica: bytes
    changed: int = 0  # how often it was replaced: seconds that its time of change moves on

    @property
    def etag(self) -> str:
        """As S3 has it."""
        return hashlib.md5(self.data).hexdigest()  # noqa: S324 (what S3 does)

    @property
    def headers(self) -> dict[str, str]:
        """What is said of it, but for its length."""
        return {
            "Content-Type": "application/octet-stream",
            "Accept-Ranges": "bytes",
            "ETag": f'"{self.etag}"',
            "Last-Modified": formatdate(1_790_000_000 + self.changed, usegmt=True),
        }


@dataclass
class Bucket:
    """Files by their keys, how the store is minded, and what it has answered."""

    objects: dict[str, Object] = field(default_factory=dict)
    mood: Mood = field(default_factory=lambda: Mood("calm"))
    conditions: bool = True  # whether If-Match is understood


class Store(ThreadingHTTPServer):
    """The server, in threads of this process."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.lock = threading.Lock()
        self.bucket = Bucket()
        self.asked: Counter[tuple[str, str, str]] = Counter()
        self.answers: Counter[str] = Counter()
        self.let_go = threading.Event()  # ends answers that hang
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def set_mood(self, mood: Mood) -> None:
        """Answer in another way from now on; what hangs is cut off."""
        with self.lock:
            self.bucket.mood = mood
            self.let_go.set()
            self.let_go = threading.Event()

    def put(self, key: str, data: bytes, *, lie: bytes, replica: bytes) -> None:
        """Write or replace a file."""
        with self.lock:
            before = self.bucket.objects.get(key)
            changed = 0 if before is None else before.changed + 1
            self.bucket.objects[key] = Object(data, lie, replica, changed)

    def fate(self, key: str, span: str) -> tuple[str, Random]:
        """Draw what becomes of a request."""
        with self.lock:
            mood = self.bucket.mood
            self.asked[mood.seed, key, span] += 1
            number = self.asked[mood.seed, key, span]
        random = Random(f"{mood.seed} {key} {span} {number}")  # noqa: S311
        if not mood.one_in or random.randrange(mood.one_in):
            return RIGHT, random
        return random.choice(mood.ways), random

    def handle_error(self, *_: object) -> None:
        """Say nothing of clients that were killed."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Store

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        """Answer with a file, a part of it, or a list."""
        store, url = self.server, urlsplit(self.path)
        _, _, key = unquote(url.path).lstrip("/").partition("/")
        if not key:
            self._list(parse_qs(url.query))
            return
        with store.lock:
            found, conditions = store.bucket.objects.get(key), store.bucket.conditions
        if found is None:
            self._refuse(404, "NoSuchKey")
            return
        if self.command == "HEAD":
            self._send(200, found.data, found.headers)
            return
        span = self.headers.get("Range", "")
        fate, random = store.fate(key, span)
        with store.lock:
            store.answers[fate] += 1
        if fate in REFUSALS:
            self._refuse(*REFUSALS[fate])
        elif fate == RESET:
            self.close_connection = True
        elif fate == HANGS:
            self._hang()
        else:
            if fate == REPLICA:
                found = Object(found.replica, b"", b"", found.changed + 1)
            asked = self.headers.get("If-Match", "").strip('"')
            if conditions and asked and asked != found.etag:
                self._refuse(412, "PreconditionFailed")
                return
            self._give(found, span, fate, random)

    do_HEAD = do_GET  # noqa: N815 (whoever asks so)

    def _give(self, found: Object, span: str, fate: str, random: Random) -> None:
        """Answer with bytes, as fate wants it."""
        data = found.lie if fate == STALE else found.data
        size, ranged = len(data), fate != WHOLE
        start, stop = 0, size
        match = re.fullmatch(r"bytes=(\d*)-(\d*)", span)
        if match and ranged:
            if match[1]:
                start, stop = int(match[1]), min(size, int(match[2] or size) + bool(match[2]))
            else:
                start = max(0, size - int(match[2]))
            if start >= size:
                self._refuse(416, "InvalidRange")
                return
            if fate == BESIDE:
                moved = random.randint(1, 64)
                start, stop = (start - moved, stop - moved) if start >= moved else (start + 1, stop)
        headers = found.headers
        if match and ranged:
            headers["Content-Range"] = f"bytes {start}-{stop - 1}/{size}"
        body = data[start:stop]
        promised = len(body)
        if fate in {LESS, CUT, HALTS}:
            body = body[: random.randrange(len(body))]
            promised = len(body) if fate == LESS else promised
        elif fate == NONE:
            body, promised = b"", 0
        elif fate == MORE:
            body += bytes(random.randint(1, 100))
            promised = len(body)
        if fate == RELABELLED:
            headers["ETag"] = f'"{hashlib.md5(body).hexdigest()}-2"'  # noqa: S324
        headers["Content-Length"] = str(promised)
        self._send(206 if "Content-Range" in headers else 200, body, headers)
        if fate == HALTS:
            self._hang()
        if promised != len(body):
            self.close_connection = True

    def _send(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        """Answer with text, or what headers say; to HEAD without a body."""
        self.send_response(status)
        said = {"Content-Type": "application/xml", "Content-Length": str(len(body))}
        for name, value in {**said, **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
            self.wfile.flush()

    def _hang(self) -> None:
        """Say nothing more, until the store changes its mood."""
        with self.server.lock:
            let_go = self.server.let_go
        let_go.wait(HANG)
        self.close_connection = True

    def _refuse(self, status: int, code: str) -> None:
        self._send(status, f"<Error><Code>{code}</Code><Message>{code}</Message></Error>".encode())

    def _list(self, query: dict[str, list[str]]) -> None:
        """Answer ListObjectsV2, whose keys are all in one page."""
        prefix = query.get("prefix", [""])[0]
        with self.server.lock:
            found = sorted(self.server.bucket.objects.items())
        entries = [
            f"<Contents><Key>{escape(key)}</Key><Size>{len(each.data)}</Size>"
            f"<ETag>&quot;{each.etag}&quot;</ETag><StorageClass>STANDARD</StorageClass>"
            f"<LastModified>2026-09-21T14:13:{20 + each.changed % 40:02}.000Z</LastModified>"
            "</Contents>"
            for key, each in found
            if key.startswith(prefix)
        ]
        self._send(
            200,
            (
                '<?xml version="1.0"?><ListBucketResult><Name>bucket</Name>'
                f"<Prefix>{escape(prefix)}</Prefix><KeyCount>{len(entries)}</KeyCount>"
                "<MaxKeys>1000</MaxKeys><IsTruncated>false</IsTruncated>"
                f"{''.join(entries)}</ListBucketResult>"
            ).encode(),
        )
