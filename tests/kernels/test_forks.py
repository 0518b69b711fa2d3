"""A process that is forked while other threads work is whole: it waits for no thread it lacks.

DataLoader workers are forked by a loop whose other threads may be compiling. Of the threads, a
child has only the one that forked, so a lock that another held would never be opened again.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
from functools import cached_property
from pathlib import Path

import pytest

import indexplan
from tests.support.fresh import printed
from tests.support.in_a_fork import counted_in_a_fork

# `typed`, which the compiler calls, makes it stop. Half a second later it goes on by itself, since
# whoever forks may wait for it.
SCRIPT = """
import json, os, signal, sys, threading

# before the library's, which a child could wait in: it would hold this process's output open
os.register_at_fork(after_in_child=lambda: signal.alarm(20))

from llvmlite.binding import ffi
from numba.extending import overload
from indexplan.kernels.compiling import INT64, kernel

signal.alarm(60)
stopped, forked = threading.Event(), threading.Event()
fork_inside, answers = [], {}

def slow():
    def pause(number): ...

    @overload(pause)
    def typed(number):
        if fork_inside == [None]:
            fork_inside.append(os.fork())
        stopped.set()
        forked.wait(0.5)
        return lambda number: number + 1

    @kernel(INT64)
    def paused(number):
        return pause(number)

    return paused

@kernel(INT64)
def other(number):
    return number + 1

def hold():
    with ffi.lib._lock:
        stopped.set()
        forked.wait(0.5)

def fork_and_call(kernel):
    pid = os.fork()
    if pid == 0:
        os._exit(kernel(6))
    forked.set()
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

def while_another(works, kernel):
    stopped.clear()
    forked.clear()
    thread = threading.Thread(target=works)
    thread.start()
    stopped.wait()
    answer = fork_and_call(kernel)
    thread.join()
    return answer

same = slow()
answers["the same kernel"] = while_another(same.compile, same)
answers["another kernel"] = while_another(slow().compile, other)
answers["LLVM"] = while_another(hold, slow())
fork_inside.append(None)
ended = slow()(6)
if fork_inside[1] == 0:
    os._exit(ended)
status = os.waitpid(fork_inside[1], 0)[1]
answers["forked by the compiling thread"] = os.waitstatus_to_exitcode(status)
answers["in the parent"] = ended
print(json.dumps(answers))
"""


@pytest.mark.slow
def test_a_fork_waits_for_what_is_being_compiled(tmp_path: Path) -> None:
    """The child of a process that compiles calls kernels, the same and others, and they answer."""
    script = tmp_path / "kernels.py"
    script.write_text(SCRIPT)
    environ = {
        "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
        "NUMBA_BOUNDSCHECK": "1",  # nothing is loaded from the cache: the child has to compile
    }
    said = printed("-W", "ignore::DeprecationWarning", script, **environ)  # of forking
    assert {
        "the same kernel": 7,
        "another kernel": 7,
        "LLVM": 7,
        "forked by the compiling thread": 7,
        "in the parent": 7,
    } == json.loads(said)


# The import of one module is slow.
IMPORTS = """
from indexplan import kernels

kernels.compiling

class Slowly:
    def find_spec(self, name, path=None, target=None):
        if name == "indexplan.kernels.{module}" and not inside.is_set():
            pause()

sys.meta_path.insert(0, Slowly())
order = ip.Weighted([1, 2, 3], epoch_size=60)
"""


@pytest.mark.slow
@pytest.mark.parametrize("module", ["weighted", "feistel"])
def test_a_fork_waits_for_what_is_being_imported(module: str) -> None:
    """The child of a process whose other thread imports a kernel has it whole."""
    assert 30 == counted_in_a_fork(IMPORTS.format(module=module), 2)


def test_no_answer_is_kept_under_a_lock() -> None:
    """Up to Python 3.11, functools.cached_property holds one lock for all objects of a class."""
    found = pkgutil.walk_packages(indexplan.__path__, "indexplan.")
    names = [each.name for each in found if not each.name.endswith("__main__")]
    classes = [each for name in names for each in vars(importlib.import_module(name)).values()]
    locked = {
        f"{owner.__name__}.{name}"
        for owner in classes
        if isinstance(owner, type) and owner.__module__.startswith("indexplan")
        for name, member in vars(owner).items()
        if isinstance(member, cached_property)
    }
    assert set() == locked
