"""Ctrl-C, wherever it comes, is Ctrl-C: no other error, and nobody's file is closed for it.

Each case is run again and again, interrupted before the first instruction of the code that handles
files, before the second, and so on until it gets through. At that moment somebody else opens files,
which get the numbers that were just closed: whoever closes a number twice closes one of theirs.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import indexplan as ip
from indexplan.files.directory import build_in, sizes_in
from indexplan.files.format import header
from indexplan.files.mapped import Chunks
from indexplan.kernels.xxh64 import xxh64
from indexplan.stores.cache import checked_chunk, fetch
from indexplan.stores.folder import Folder
from indexplan.stores.plain import open_file
from indexplan.stores.publish import publish, sync_folder

ROOMS = (str(Path(ip.__file__).parent / room) for room in ("files", "stores"))
CODE = (*ROOMS, contextlib.__file__)
CHUNK = "epoch-00000/chunk-00000.npy"


class Interrupt:
    """A trace that raises KeyboardInterrupt before one of the instructions that handle files."""

    def __init__(self, at: int) -> None:
        self.left = at
        self.others: list[int] = []

    def __call__(self, frame: FrameType, event: str, _: Any) -> Any:
        if not frame.f_code.co_filename.startswith(CODE):
            return None
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        if event == "opcode":
            if self.left == 0:
                self.others = [os.open(os.devnull, os.O_RDONLY) for _ in range(8)]
                raise KeyboardInterrupt
            self.left -= 1
        return self


def what_came(call: Callable[[], Any], interrupt: Interrupt) -> str:
    """Return what a call that is interrupted ends with."""
    before = sys.gettrace()
    sys.settrace(interrupt)
    try:
        call()
    except BaseException as error:
        return type(error).__name__
    finally:
        sys.settrace(before)
    return "an answer"


def close_others(others: list[int]) -> int:
    """Close somebody's files; return how many of them were closed already."""
    lost = 0
    for descriptor in others:
        try:
            os.close(descriptor)
        except OSError:
            lost += 1
    return lost


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a plan directory of one chunk."""
    path = tmp_path_factory.mktemp("plan") / "run.plan"
    ip.save(ip.Plan(ip.Sequential(100), batch_size=8), path)
    return path


def read(plan: Path) -> None:
    with open_file(plan, CHUNK) as stream:
        stream.read(1)


def write(plan: Path) -> None:
    publish(plan / "new.npy", [header("<u4", 1), b"1234"])
    (plan / "new.npy").unlink()


def map_it(plan: Path) -> None:
    Chunks(*OPENED[plan]).numbers(0, 0, "", 0, 1)


def keep(plan: Path) -> None:
    path = plan.parent / "cache" / "key" / CHUNK
    path.unlink(missing_ok=True)
    data = (plan / CHUNK).read_bytes()
    blocks = partial(checked_chunk, Folder(plan), CHUNK, len(data), [xxh64(data)])
    with fetch(Folder(plan), len(data), blocks, path):
        pass


OPENED: dict[Path, Any] = {}

CASES: dict[str, Callable[[Path], Any]] = {
    "open a file": read,
    "read a small file": lambda plan: Folder(plan).read("plan.json"),
    "read sizes": lambda plan: sizes_in(Folder(plan), build_in(Folder(plan))),
    "write a file": write,
    "sync a folder": sync_folder,
    "map a chunk": map_it,
    "keep a chunk of a store": keep,
}


# a stream that was opened, and not yet given to `with`, is closed by whoever collects it
@pytest.mark.filterwarnings("ignore:.*unclosed file:ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", CASES)
def test_ctrl_c_is_ctrl_c_and_closes_nobodys_files(
    plan: Path, name: str, request: pytest.FixtureRequest
) -> None:
    """Interrupted anywhere, a call ends with KeyboardInterrupt, and others' files stay open."""
    build = build_in(Folder(plan))
    OPENED[plan] = Folder(plan), build, sizes_in(Folder(plan), build)
    CASES[name](plan)  # what is imported at first use is imported
    problems = []
    gc.freeze()  # so that to collect what an interrupt left takes no time
    request.addfinalizer(gc.unfreeze)
    for at in count():
        gc.collect()  # else Ctrl-C may come while Python collects, which drops what is raised then
        (plan / "new.npy").unlink(missing_ok=True)
        interrupt = Interrupt(at)
        came = what_came(lambda: CASES[name](plan), interrupt)
        if not interrupt.others:
            break
        lost = close_others(interrupt.others)
        if (came, lost) != ("KeyboardInterrupt", 0):
            problems.append((at, came, lost))
    gc.collect()  # here, not in some later test
    assert (at > 20, "an answer", []) == (True, came, problems)
