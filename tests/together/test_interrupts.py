"""Ctrl-C, wherever it comes, is Ctrl-C: no other error, and nobody's file is closed for it.

Around files, each case is run again and again, interrupted before the first instruction of the code
that handles files, before the second, and so on until it gets through. At that moment somebody else
opens files, which get the numbers that were just closed: whoever closes one twice closes theirs.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import pkgutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import indexplan as ip
import indexplan.kernels
from indexplan.files.directory import build_in, sizes_in
from indexplan.files.format import header
from indexplan.files.mapped import Chunks
from indexplan.kernels.compiling import KERNELS
from indexplan.kernels.xxh64 import xxh64
from indexplan.stores.cache import checked_chunk, fetch
from indexplan.stores.folder import Folder
from indexplan.stores.plain import open_file
from indexplan.stores.publish import publish, sync_folder
from tests.support.fresh import printed

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


# Real signals.

NUMBERS = {
    "None",
    "bool",
    "int",
    "np.uint64",
    "tuple[int, int]",
    "tuple[int, int, int, int]",
    "Four",
}

# numba runs Python code to make an array that a kernel returns. A signal that came meanwhile would
# be handled there, where nobody looks for an exception: the call would end with SystemError.
#
# Each call is long. It is interrupted at some fractions of the time that it took before, and each
# time it is new, as what was computed is kept.
LONG_CALLS = """
import signal, time
import numpy as np
import indexplan as ip

signal.signal(signal.SIGALRM, signal.default_int_handler)  # as Python handles Ctrl-C
drawn = np.random.default_rng(1)
lengths = ip.Column(drawn.integers(1, 2**30, 50_000))
weights = ip.Column(drawn.random(500_000))
labels = ip.Column(drawn.integers(1, 1000, 500_000))
shares = {str(i): float(each) for i, each in enumerate(drawn.random(500))}
CASES = {
    "pack": lambda seed: ip.Packed(lengths, 2**30 + seed).num_units(0),
    "sort": lambda seed: ip.LengthGrouped(labels, 16 + seed).num_units(0),
    "weights": lambda seed: ip.Weighted(weights, epoch_size=10**6 + seed).take(0, 0, 1),
    "groups": lambda seed: ip.Split(500_000, {"a": 1, "b": 9}, seed=seed, groups=labels)["b"]
        .take(0, 0, 1),
    "mixture": lambda seed: ip.Mixture(
        {name: ip.Shuffle(1000 + seed, seed=i) for i, name in enumerate(shares)}, shares
        ).take(0, 0, 30_000),
    "verify": lambda seed: ip.verify(ip.Plan(ip.Shuffle(10**12, seed=seed), world_size=64,
        batch_size=2**14)),
    "batch": lambda seed: ip.Shuffle(10**12, seed=seed).take(0, 0, 10**6),
}

def came(call, seconds):
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        call()
        signal.setitimer(signal.ITIMER_REAL, 0)
        return "an answer"
    except BaseException as error:
        return type(error).__name__

for name, case in CASES.items():
    case(0)  # compiles
    begin = time.perf_counter()
    case(1)
    took = time.perf_counter() - begin
    found = [came(lambda: case(2 + i), took * i / 6) for i in range(1, 6)]
    for k in range(3, 20):  # where the machine was slow, and nothing was interrupted
        if "KeyboardInterrupt" not in found:
            found.append(came(lambda: case(10 + k), took / 2**k))
    print(name, *found, sep=", ")
"""


def test_no_kernel_returns_an_array() -> None:
    """Kernels write to arrays of their callers, and return numbers or nothing."""
    for module in pkgutil.iter_modules(indexplan.kernels.__path__, "indexplan.kernels."):
        import_module(module.name)
    returned = {each.name: each.py_func.__annotations__["return"] for each in KERNELS}
    assert len(returned) > 30
    assert {} == {name: kind for name, kind in returned.items() if kind not in NUMBERS}


def test_ctrl_c_in_long_calls() -> None:
    """Real signals while tables are built, samples sorted and batches drawn."""
    lines = printed("-c", LONG_CALLS, loud=True).splitlines()
    came = {name: words for name, *words in (line.split(", ") for line in lines)}
    assert 7 == len(came)
    assert {"KeyboardInterrupt", "an answer"} >= {word for words in came.values() for word in words}
    assert all("KeyboardInterrupt" in words for words in came.values()), came


KILLED_GROUP = """
import json, os, signal, sys
import indexplan as ip
from indexplan_torch import PlanLoader

def survived(context):
    plan, received = ip.Plan(ip.Shuffle(400, seed=1), batch_size=4), []
    loader = PlanLoader(range(400), plan, num_workers=2, multiprocessing_context=context)
    try:
        for batch in loader:
            received += batch.tolist()
            if len(received) == 80:
                os.killpg(0, signal.SIGTERM)
    except (RuntimeError, EOFError, OSError):  # torch's, by which of its pipes it looks at
        pass
    else:
        sys.exit("no worker died")
    finally:
        again = PlanLoader(range(400), plan)
        again.load_state_dict(loader.state_dict())
        for batch in again:
            received += batch.tolist()
        print(json.dumps([received, plan.replace(world_size=1).indices(0, rank=0).tolist()]))

if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: None)  # workers have their own, and die
    for context in ("fork", "spawn"):
        survived(context)
"""


def test_workers_die_with_the_group() -> None:
    """After a resume each sample was read once, in the plan's sequence, forked and spawned."""
    done = subprocess.run(
        [sys.executable, "-c", KILLED_GROUP],
        capture_output=True,
        text=True,
        check=False,
        start_new_session=True,  # a group of its own
        timeout=300,
    )
    assert 0 == done.returncode, done.stderr
    for line in done.stdout.splitlines():
        received, expected = json.loads(line)
        assert expected == received
    assert 2 == len(done.stdout.splitlines())
