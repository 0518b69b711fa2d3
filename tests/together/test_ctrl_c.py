"""Ctrl-C while a kernel computes is Ctrl-C: KeyboardInterrupt, as soon as the kernel has ended.

numba runs Python code to make an array that a kernel returns. A signal that came meanwhile would be
handled there, where nobody looks for an exception: the call would end with SystemError.
"""

from __future__ import annotations

import os
import pkgutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import indexplan.kernels
from indexplan.kernels.compiling import KERNELS

ROOT = Path(__file__).parents[2]
NUMBERS = {
    "None",
    "bool",
    "int",
    "np.uint64",
    "tuple[int, int]",
    "tuple[int, int, int, int]",
    "Four",
}

# Each call is long. It is interrupted at some fractions of the time that it took before, and each
# time it is new, as what was computed is kept.
SCRIPT = """
import os, signal, sys, threading, time
import numpy as np
import indexplan as ip

signal.alarm(300)
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job of a script inherits none
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
    ended = threading.Event()
    def interrupt():
        if not ended.wait(seconds):
            os.kill(os.getpid(), signal.SIGINT)
    thread = threading.Thread(target=interrupt)
    try:
        thread.start()
        call()
        ended.set()
        thread.join()
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
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=320,
    )
    assert 0 == done.returncode, done.stderr
    came = {name: words for name, *words in (line.split(", ") for line in done.stdout.splitlines())}
    assert 7 == len(came)
    assert {"KeyboardInterrupt", "an answer"} >= {word for words in came.values() for word in words}
    assert all("KeyboardInterrupt" in words for words in came.values()), came
