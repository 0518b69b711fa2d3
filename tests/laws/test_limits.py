"""Where the system gives no more threads or files: what can go on goes on, the rest says so."""

from __future__ import annotations

import os
import resource
import tempfile
from pathlib import Path
from typing import Any

import pytest

import indexplan as ip
from tests.support.children import become_nobody, in_child

PLAN = ip.Plan(ip.Shuffle(1000), world_size=1, batch_size=8)


def said(call: Any) -> str:
    """Return what a call is refused with."""
    with pytest.raises(ip.IndexPlanError) as refused:
        call()
    return str(refused.value)


def without_threads(folder: str) -> tuple[str, str]:
    """Ask for threads where there are none to be had."""
    ip.save(PLAN, f"{folder}/there.plan")
    become_nobody()
    resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
    return (
        said(lambda: ip.save(PLAN, f"{folder}/new.plan")),
        said(lambda: ip.verify(ip.load(f"{folder}/there.plan"))),
    )


def without_files(folder: str) -> str:
    """Open a plan where a process may open no more files."""
    ip.save(PLAN, f"{folder}/there.plan")
    resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
    held = []
    try:
        while True:
            held.append(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        return said(lambda: ip.load(f"{folder}/there.plan"))


def test_no_thread_to_be_had() -> None:
    """Indices are drawn by the threads that there are; a build says which limit to raise."""
    message = (
        "the executor must run until the build is done; got RuntimeError (can't start new "
        "thread); raise the limit on processes (ulimit -u), then run it again"
    )
    with tempfile.TemporaryDirectory() as folder:  # unlike pytest's, one that others may enter
        Path(folder).chmod(0o777)
        assert (message, message) == in_child(without_threads, folder)


def test_too_many_open_files(tmp_path: Path) -> None:
    """Too many open files are no matter of permissions."""
    message = (
        f"{tmp_path}/there.plan/plan.json must be readable; got 'Too many open files'; raise "
        f"the limit on open files (ulimit -n), or close some"
    )
    assert message == in_child(without_files, str(tmp_path))
