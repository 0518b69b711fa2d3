"""The C header, compiled in several ways."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import indexplan as ip
from tests.everywhere.drawn import Run

FOLDER = Path(__file__).parent
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"]
SANITIZED = ["-O1", "-g", "-fsanitize=undefined,address", "-fno-sanitize-recover=all"]
COMPILERS = [
    ["gcc", "-std=c99", "-O2", *WARNINGS],
    ["gcc", "-std=c99", "-O3", "-march=native", *WARNINGS],
    ["gcc", "-std=c99", *SANITIZED, *WARNINGS],
    ["gcc", "-std=c99", "-march=native", *SANITIZED, *WARNINGS],
    ["g++", "-x", "c++", "-std=c++11", "-O2", *WARNINGS],
    ["g++", "-x", "c++", "-std=c++11", "-O2", "-march=native", *WARNINGS],
    ["clang", "-std=c99", "-O2", *WARNINGS],
    ["clang", "-std=c99", "-O2", "-march=native", *WARNINGS],
    ["clang++", "-x", "c++", "-std=c++11", "-O2", *WARNINGS],
    ["nvcc", "-x", "cu", "-O2", "-Werror", "all-warnings"],  # what runs on the host
]
ON_GPU = ["nvcc", "-O2", "-Werror", "all-warnings"]
NEEDED = {"gcc", "g++", "clang", "clang++"}  # CI installs them; nvcc is taken where it is
BUILDS = [each for each in COMPILERS if each[0] in NEEDED or shutil.which(each[0])]
if shutil.which("nvcc") and shutil.which("nvidia-smi"):
    BUILDS += [ON_GPU]
NAMES = [" ".join(each for each in build if each not in WARNINGS) for build in BUILDS]


def answers(command: list[str]) -> Path:
    """Return the source of the program that answers, by a GPU or by the host."""
    return FOLDER / ("answers.cu" if command == ON_GPU else "answers.c")


def build(command: list[str], source: Path, program: Path, include: str | None = None) -> Path:
    """Compile a program, and return its path."""
    folder = Path(ip.__file__).parent / "include" if include is None else include
    done = subprocess.run(
        [*command, f"-I{folder}", str(source), "-o", str(program)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (0, "") == (done.returncode, done.stderr), done.stderr
    return program


def indices(program: Path, runs: Sequence[Run]) -> list[NDArray[np.int64]]:
    """Return the indices of runs, by a program that answers."""
    rows = [(r.n, r.seed % 2**64, r.seed >> 64, r.epoch, r.start, r.num) for r in runs]
    given = np.array(rows, np.uint64).reshape(-1, 6).tobytes()
    done = subprocess.run([program], input=given, capture_output=True, check=False)
    assert (0, b"") == (done.returncode, done.stderr), done.stderr.decode()
    found = np.frombuffer(done.stdout, np.uint64).astype(np.int64)
    assert len(found) == sum(run.num for run in runs)
    return np.split(found, np.cumsum([run.num for run in runs], dtype=np.int64)[:-1])


def differences(program: Path, runs: Sequence[Run]) -> int:
    """Return at how many positions the program and the package differ."""
    pairs = zip(indices(program, runs), runs, strict=True)
    return sum(int((found != run.indices()).sum()) for found, run in pairs)
