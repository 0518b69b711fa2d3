"""The machine, instructions, commit, date and versions of a run, for every page."""

from __future__ import annotations

import datetime as dt
import importlib.metadata
import os
import platform
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import indexplan
from indexplan.files.machine import num_cores

INSTRUCTIONS = {
    "AVX2": {
        "NUMBA_CPU_NAME": "x86-64-v3",
        "NUMBA_CPU_FEATURES": "",
        "ATEN_CPU_CAPABILITY": "avx2",
    },
    "AVX-512": {},
}
"""What kernels are compiled for, and torch's chosen from: a machine runs what it can."""


def instructions() -> list[str]:
    """Return the instruction sets that can be run here, the most common first."""
    flags = Path("/proc/cpuinfo").read_text().split()
    if "avx512f" in flags:
        return [*INSTRUCTIONS]
    return ["AVX2" if "avx2" in flags else platform.machine()]


def surroundings() -> dict[str, Any]:
    """Return the machine, the versions, the load and the date, as JSON types."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    models = [line.partition(": ")[2] for line in lines if "model name" in line]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    chosen = os.environ.get("NUMBA_CPU_NAME") == INSTRUCTIONS["AVX2"]["NUMBA_CPU_NAME"]
    names = ("numpy", "numba", "torch", "safetensors")
    return {
        "machine": {
            "cpu": models[0] if models else platform.machine(),
            "cores": num_cores(),
            "memory_gb": round(memory / 1e9),
            "system": platform.system(),
        },
        "versions": {
            "indexplan": indexplan.__version__,  # of this checkout, installed or not
            **{name: importlib.metadata.version(name) for name in names if find_spec(name)},
            "Python": platform.python_version(),
        },
        "instructions": "AVX2" if chosen else instructions()[-1],
        "commit": commit(),
        "load": os.getloadavg()[0],
        "date": dt.date.today().isoformat(),
    }


def commit() -> str:
    """Return the commit, "-dirty" if more differs from it than results that were written since."""

    def git(*arguments: str) -> subprocess.CompletedProcess[str]:
        command, root = ["git", *arguments], Path(__file__).parent
        return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)

    name = git("describe", "--always", "--exclude=*").stdout.strip()
    differs = git("diff", "--quiet", "HEAD", "--", ":/", ":(top,exclude)benchmarks/results")
    return f"{name}-dirty" if name and differs.returncode else name
