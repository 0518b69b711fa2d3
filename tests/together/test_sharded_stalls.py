"""Who waits for a shard that does not come hears why; a read that hangs holds up nothing else."""

from __future__ import annotations

import re
import secrets
import signal
import threading
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import indexplan as ip
from indexplan_fetch import stalls
from indexplan_fetch.fetch import Attempt, Clock, Fetch, Settings
from indexplan_fetch.folder import Folder, RankNote
from indexplan_fetch.locks import hold, hold_new
from indexplan_fetch.source import Source
from indexplan_fetch.sums import Sums
from tests.support.forked import results, until
from tests.together.sharded_runs import (
    Opened,
    at,
    expected,
    first_rows,
    plan_of,
    refused,
    start_alone,
    write_shards,
)

PIECE = 1000  # bytes that come of an answer that is held
LONG = 60.0  # seconds after which a test goes on, to fail


class Handler(SimpleHTTPRequestHandler):
    """Serves files; the body of a held answer comes in two pieces."""

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def copyfile(self, source: Any, outputfile: Any) -> None:
        """Send a file's bytes."""
        store, data = self.server, source.read()
        assert isinstance(store, Store)
        with store.changed:
            store.asked[self.path] += 1
            number = store.asked[self.path]
            store.changed.notify_all()
        if number > store.num_held:
            outputfile.write(data)
            return
        outputfile.write(data[:PIECE])
        with store.changed:
            store.changed.wait_for(lambda: number in store.let_go)
        try:
            outputfile.write(
                data[PIECE:] if number not in store.spoilt else bytes(len(data) - PIECE)
            )
        except OSError:  # nobody reads it any more
            self.close_connection = True


class Store(ThreadingHTTPServer):
    """Files over HTTP on loopback, of which the first answers stop until they are let go."""

    daemon_threads = True

    def __init__(self, folder: str) -> None:
        super().__init__(("127.0.0.1", 0), partial(Handler, directory=folder))
        self.num_held = 1  # of each file
        self.changed = threading.Condition()
        self.asked: Counter[str] = Counter()
        self.let_go: set[int] = set()  # first answers, second ones, ...
        self.spoilt: set[int] = set()  # those that go on with other bytes
        self.url = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def wait_for(self, name: str, number: int) -> None:
        """Wait until somebody has asked for a file so many times."""
        with self.changed:
            assert self.changed.wait_for(lambda: self.asked[f"/{name}"] >= number, LONG)

    def release(self, *numbers: int) -> None:
        """Let answers go on."""
        with self.changed:
            self.let_go.update(numbers)
            self.changed.notify_all()


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> ip.Shards:
    """Eight files of Parquet, in a folder."""
    return write_shards(tmp_path_factory.mktemp("shards") / "data", num=8)


@pytest.fixture
def store(shards: ip.Shards) -> Iterator[Store]:
    """A store that has them."""
    made = Store(shards.path)
    yield made
    made.release(*range(100))
    made.shutdown()
    made.server_close()


def test_stopped_process(shards: ip.Shards, store: Store, dataset_of: Opened) -> None:
    """While the process that fetches is stopped, who waits hears which; continued, all goes on."""
    plan = plan_of(shards, 2)
    index = int(plan.batch(0, step=0, rank=0)[0])
    shard = int(shards.locate([index])[0][0])
    said: list[str] = []

    def go_on() -> None:
        store.release(1)
        other.kill(signal.SIGCONT)

    def hear(message: Warning | str, *_: Any) -> None:
        said.append(str(message))
        go_on()

    other = start_alone(shards, store.url, dataset_of.cache_dir, 0, 2)
    store.wait_for(shards.files[shard], 1)
    other.kill(signal.SIGSTOP)
    data = dataset_of(at(shards, store.url))
    data.settings = data.settings._replace(warn_after=0.05)
    guard = threading.Timer(LONG, go_on)
    guard.start()
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = hear
        assert index == data[index]["id"]
    guard.cancel()
    assert [expected(plan, 0)] == results([other])
    where = re.escape(f"shard {shard}, {store.url}/{shards.files[shard]}")
    assert re.fullmatch(
        rf"a batch has waited \d+ seconds for {where}: process {other.pid} fetches for this node; "
        rf"if it is stopped, continue it \(kill -CONT {other.pid}\), or end it, and another "
        "process fetches; if it runs, check the store, the network, and whether cache_dir has room "
        "and can be written to",
        said[0],
    )


def test_nobody_fetches(shards: ip.Shards, tmp_path: Path) -> None:
    """Then the warning says how to find who holds the place of the one that does."""
    folder = Folder(tmp_path, shards)
    folder.make()
    lock = hold(folder.fetcher)
    assert lock is not None
    with closing(lock):  # by somebody who has not said who it is
        said = stalls.warning(folder, shards, 0, 60.0)
    cure = f"if `fuser {folder.fetcher}` shows one, end it, and another process fetches"
    assert said.endswith(f"0000.parquet: no process says that it fetches; {cure}")
    assert said.startswith("a batch has waited 60 seconds for shard 0, ")


def test_read_that_hangs(shards: ip.Shards, store: Store, tmp_path: Path) -> None:
    """A read is left when nothing comes of it; what comes after all goes nowhere."""
    store.num_held, store.spoilt = 2, {1}
    source, path = Source(at(shards, store.url), store.url), tmp_path / "shards" / "0.parquet"
    path.parent.mkdir()
    (tmp_path / "sums").mkdir()
    counted: list[int] = []
    sums, count = Sums(tmp_path / "sums"), lambda *of: counted.append(of[1])
    begin = partial(Attempt, 0, path, source, sums, count, threading.Event())
    fetch = Fetch(0, 8192, begin, source, Settings(10**9, 16, 1, 2, None))
    first = fetch.attempt
    assert first is not None
    until(lambda: first.came() == PIECE)
    for lived in (59.0, 59.0, 1.0):  # the first finds that something came
        assert not first.left
        assert not fetch.over(lived)
    assert first.left
    assert not fetch.over(0.5)
    second = fetch.attempt
    assert second is not None
    until(lambda: second.came() == PIECE)
    assert 1 == len([*path.parent.iterdir()])  # the file of the second
    store.release(1)
    until(lambda: first.done)
    store.release(2)
    until(lambda: second.done)
    assert fetch.over(0.0)
    assert (None, [shards.num_bytes[0]]) == (fetch.failed, counted)
    assert [path] == [*path.parent.iterdir()]
    assert (Path(shards.path) / shards.files[0]).read_bytes() == path.read_bytes()


class LastMoment(Attempt):
    """A look that ends right after it was asked how many bytes have come."""

    def __init__(self, source: Source) -> None:
        self.go_on = threading.Event()
        super().__init__(0, None, source, Sums(Path()), lambda *_: None, threading.Event())

    def _run(self) -> None:
        self.go_on.wait(LONG)
        super()._run()

    def came(self) -> int:
        """Return the bytes, and end."""
        found = super().came()
        self.go_on.set()
        until(lambda: self.done)
        return found


def test_bytes_of_the_last_moment(shards: ip.Shards) -> None:
    """A look that ends while it is looked after is counted with all its bytes."""
    source = Source(shards, shards.path)
    footer = source.look(0)
    again = Source(shards, shards.path)
    fetch = Fetch(0, None, lambda: LastMoment(again), again, Settings(10**9, 16, 1, 2, None))
    until(lambda: fetch.over(0.0))
    assert (None, footer) == (fetch.failed, fetch.num_bytes)
    assert footer > 0


def test_hanging_reads_hold_up_nothing(shards: ip.Shards, store: Store, dataset_of: Opened) -> None:
    """One at a time, all shards come at their second attempt; where that hangs, too, it raises."""
    # more than a tick counts, or a moment without the processor would leave a second attempt, too
    data = dataset_of(at(shards, store.url), stall_timeout=1.5)
    data.settings = data.settings._replace(num_threads=1)
    indices = first_rows(shards)[:2]
    assert indices == [data[index]["id"] for index in indices]
    assert {2} == {store.asked[f"/{name}"] for name in shards.files[:2]}
    assert 2 == data.report().num_retries
    store.num_held = 2
    assert refused(data, first_rows(shards)[2]) == (
        f"shard 2, {store.url}/{shards.files[2]}, must be fetched before its batch; got no byte in "
        "1.5 seconds, 2 times; check the store and the credentials, then run again: whole shards "
        "are kept"
    )
    assert 0 == data[0]["id"]
    assert [] == [*dataset_of.cache_dir.glob("*/shards/*.tmp")]
    store.release(*range(100))


def test_notes_that_others_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who is stopped while it looks at a note keeps nobody waiting: another note is made."""
    tokens = iter(["a", "b"])
    monkeypatch.setattr(secrets, "token_hex", lambda _: next(tokens))
    lock = hold(tmp_path / "7-a")
    assert lock is not None
    with closing(lock):
        file, path = hold_new(tmp_path, "7")
    file.close()
    assert tmp_path / "7-b" == path


def test_notes_of_dead_ranks(shards: ip.Shards, tmp_path: Path) -> None:
    """Ranks that were killed are not waited for, and their notes do not gather."""
    folder = Folder(tmp_path, shards)
    folder.make()
    (folder.ranks / "plan-0-1-a").touch()
    alive = RankNote(folder, "plan", 3)
    alive.say((1, 7))
    assert [(1, 7)] == folder.positions("plan")
    assert [alive.path] == [*folder.ranks.iterdir()]
    alive.close()


def test_time_of_a_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that was stopped for an hour has lived a second of it."""
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    clock, found = Clock(), []
    for now[0] in (100.25, 3700.25, 3700.5):
        found.append(clock.lived())
    assert [0.25, 1.0, 0.25] == found


def test_note_that_is_held_as_it_is_swept(
    shards: ip.Shards, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who is about to hold a note that is being removed does not get it, and makes another."""
    folder = Folder(tmp_path, shards)
    folder.make()
    notes = [folder.wanted / "0-1-ab", folder.ranks / "plan-0-1-ab"]
    held = []
    unlink = Path.unlink

    def late(path: Path, missing_ok: bool = False) -> None:
        if path in notes:
            held.append(hold(path))
        unlink(path, missing_ok)

    for note in notes:
        note.touch()
    monkeypatch.setattr(Path, "unlink", late)
    assert ({}, []) == (folder.waits(), folder.positions("plan"))
    assert [None, None] == held
    assert not any(note.exists() for note in notes)
