"""Children of a warm process without threads, for what a test must not do to its own process.

A server is started once, imports and compiles what builders need, and forks each child.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

NOBODY = 65534


def in_child(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a function of a module answers in a child of its own."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["pytest", "tests.support.warmed"])
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


def become_nobody() -> None:
    """Give up root's rights, to which permissions mean nothing."""
    if os.geteuid() == 0:
        os.setgid(NOBODY)
        os.setuid(NOBODY)
