"""The machine, date and versions of a run, for every page."""

from __future__ import annotations

import datetime as dt
import importlib.metadata
import os
import platform
from pathlib import Path
from typing import Any

import indexplan
from indexplan.files.machine import num_cores


def surroundings() -> dict[str, Any]:
    """Return the machine, the versions, the load and the date, as JSON types."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    models = [line.partition(": ")[2] for line in lines if "model name" in line]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
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
            **{name: importlib.metadata.version(name) for name in names},
            "Python": platform.python_version(),
        },
        "load": os.getloadavg()[0],
        "date": dt.date.today().isoformat(),
    }
