"""Children of a warm process without threads, for what a test must not do to its own process.

A server is started once, imports and compiles what builders need, and forks each child.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import sys
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

NOBODY = 65534


def in_child(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a function of a module answers in a child of its own."""
    context = multiprocessing.get_context("forkserver")  # whose imports tests/conftest.py names
    ours, its = context.Pipe(duplex=False)
    child = context.Process(target=_run, args=(its, function, arguments))
    child.start()
    its.close()
    try:
        return ours.recv()  # EOFError, if it failed: its traceback is on stderr
    finally:
        child.join()
        ours.close()


def _run(pipe: Connection, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    os.dup2(pipe.fileno(), 1)  # the answer is let out even where other writes are refused
    Connection(1, readable=False).send(function(*arguments))


def before(call: str, name: str, do: Callable[[], object]) -> None:
    """In a child, do something once, just before a call whose second argument ends with a name."""
    done = False

    def event(called: str, arguments: tuple[object, ...]) -> None:
        nonlocal done
        if called == call and not done and str(arguments[1]).endswith(name):
            done = True
            do()

    sys.addaudithook(event)


def become_nobody() -> None:
    """Give up root's rights, to which permissions mean nothing."""
    if os.geteuid() == 0:
        os.setgid(NOBODY)
        os.setuid(NOBODY)


@contextlib.contextmanager
def nobody(modes: dict[str, int]) -> Iterator[None]:
    """Give some paths other modes, and be somebody without rights while that lasts."""
    paths = {Path(path).absolute(): mode for path, mode in modes.items()}  # "." has no way back
    before = {path: path.stat().st_mode for path in paths}
    for path, mode in paths.items():
        path.chmod(mode)
    root = os.geteuid() == 0  # to whom permissions mean nothing
    if root:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)
        for path, mode in reversed(before.items()):
            path.chmod(mode)
