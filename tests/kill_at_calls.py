"""Kill a builder before each of its system calls: `python -m tests.kill_at_calls [renames]`.

A build of one chunk makes some thirty calls that open, write, sync, name or remove something. It
is run as many times, and killed each time before the next call; so every state that a crash can
leave is left once, looked at by a reader, and mended by an undisturbed build. The calls of both
builders together are checked for what a power cut could do to them. Prints the calls, in their
order. With "renames", the kernel refuses links, as some file systems do.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from tests.support.builders import (
    KINDS,
    answer,
    check_finished,
    digests,
    ended,
    fork,
    looked_at,
    warm,
)
from tests.support.refused_calls import refuse

KIND = KINDS["tiny"]
Call = tuple[str, str]  # its name, and the path that it opens, makes or removes


def watch(note: Callable[[str, str], None], root: Path) -> None:
    """Call `note` with each call of this process, and its path beside `root`, before it happens."""

    def event(name: str, arguments: tuple[Any, ...]) -> None:
        if name in ("open", "os.mkdir", "os.link", "os.rename", "os.remove"):
            path = arguments[1 if name in ("os.link", "os.rename") else 0]
            if str(path).startswith(str(root.parent)):
                note(name.removeprefix("os."), os.path.relpath(path, root.parent))

    def profile(_frame: object, what: str, function: Any) -> None:
        # writing and syncing raise no audit events
        if what == "c_call" and function in (os.write, os.fsync):
            note(function.__name__, "")

    os.sched_setaffinity(0, list(os.sched_getaffinity(0))[:1])  # one thread, one order of calls
    sys.addaudithook(event)
    threading.setprofile(profile)
    sys.setprofile(profile)


def save(root: Path, links: bool) -> None:
    """Build, on a file system that knows links or not."""
    if not links:
        refuse("link", errno.EPERM)
    KIND.save(root)


def calls_of(root: Path, links: bool) -> list[Call]:
    """Build undisturbed, in a child; return its calls."""

    def run() -> str:
        calls: list[Call] = []
        watch(lambda *call: calls.append(call), root)
        save(root, links)
        return json.dumps(list(calls))

    text = answer(run)
    assert text is not None, "an undisturbed builder failed"
    return [(name, path) for name, path in json.loads(text)]


def save_until(call: int, root: Path, links: bool) -> None:
    """Build, and die before a call."""
    done = 0

    def note(*_: str) -> None:
        nonlocal done
        if done == call:
            os.kill(os.getpid(), signal.SIGKILL)
        done += 1

    watch(note, root)
    save(root, links)


def check_power_cuts(calls: Iterable[Call]) -> None:
    """Check that a power cut at any moment leaves only whole files, and nothing of a done build.

    What was written is on the disk once its file was synced, and a name once its folder was.
    """
    opened, dirty, names, made = "", set[str](), set[str](), set[str]()
    for name, path in calls:
        if name == "open":
            opened = path
        elif name == "write":
            dirty.add(opened)
        elif name == "fsync":
            dirty.discard(opened)
            names = {other for other in names if (os.path.dirname(other) or ".") != opened}  # noqa: PTH120
        elif name in ("link", "rename"):
            assert opened not in dirty, f"{path} got its name before its content was synced"
            names.add(path)
        elif name == "mkdir" and path not in made:
            made.add(path)
            names.add(path)
    assert not names, f"{sorted(names)} can still vanish when the build is done"


def check_killed(call: int, calls: Sequence[Call], root: Path, links: bool) -> None:
    """Kill a builder before a call, look, and mend."""
    expected = digests(root.with_name("undisturbed.plan"))
    assert -signal.SIGKILL == ended(fork(lambda: save_until(call, root, links)))
    for name, digest in (digests(root) if root.exists() else {}).items():
        assert name.endswith(".tmp") or expected[name] == digest, name
    assert answer(lambda: looked_at(KIND, root)) is not None
    check_power_cuts([*calls[:call], *calls_of(root, links)])
    assert ended(fork(lambda: check_finished(KIND, root, expected))) == 0
    shutil.rmtree(root)


def main(arguments: Sequence[str]) -> int:
    """Kill before each call; raise AssertionError at the first difference."""
    links = list(arguments) != ["renames"]
    warm()
    # what a call leaves does not depend on the disk, and this one syncs at once
    fast = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108
    with tempfile.TemporaryDirectory(dir=fast) as folder:
        root = Path(folder) / "a.plan"
        calls = calls_of(root, links)
        check_power_cuts(calls)
        root.rename(root.with_name("undisturbed.plan"))
        for call in range(len(calls)):
            check_killed(call, calls, root, links)
    print(json.dumps(calls))  # noqa: T201 (a script's output)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
