"""`python -m tests.storm` can fail: its count knows nothing of indexplan, and finds faults."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.storm.counting import RECORD, Log, count
from tests.storm.truth import Truth

ROOT = Path(__file__).parents[2]
TRUTH = Truth("counted", ((3, 2),), 8, statistics=False, checksums=False)  # five samples


def log_of(path: Path, samples: list[int], *, first: int = 0, wrong: int | None = None) -> Path:
    """Write what a rank notes that reads one sample in each step of epoch 0."""
    sums = TRUTH.checksums_of_values()
    records = [
        RECORD.pack(first + at, 0, sample, sums[sample] ^ (sample == wrong))
        for at, sample in enumerate(samples)
    ]
    path.write_bytes(b"".join(records))
    return path


def test_the_count_imports_no_indexplan() -> None:
    """A fault in the library cannot be in the count, the store or the truth as well."""
    code = (
        "import sys, tests.storm.__main__\n"
        "print([name for name in sys.modules if name.startswith('indexplan')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert "[]\n" == done.stdout


def test_each_sample_has_to_be_read_once_and_right(tmp_path: Path) -> None:
    """What was read after the last saved step is read again, and does not count."""
    killed = Log(log_of(tmp_path / "killed", [4, 0, 2]), until=2)
    resumed = Log(log_of(tmp_path / "resumed", [2, 1, 3], first=2), until=5)
    found = count(TRUTH, [killed, resumed], 1, finished=True)
    assert ([], [], [], 6) == found

    late = Log(log_of(tmp_path / "late", [1, 3], first=3), until=5)
    assert ["epoch 0, sample 2"] == count(TRUTH, [killed, late], 1, finished=True).lost
    assert [] == count(TRUTH, [killed, late], 1, finished=False).lost
    early = Log(log_of(tmp_path / "early", [0, 2, 1, 3], first=1), until=5)
    assert ["epoch 0, sample 0"] == count(TRUTH, [killed, early], 1, finished=True).twice


def test_a_wrong_value_counts_wherever_it_was_read(tmp_path: Path) -> None:
    """Even after the last saved step: the model has seen it."""
    log = Log(log_of(tmp_path / "log", [4, 0, 2], wrong=2), until=2)
    found = count(TRUTH, [log], 1, finished=False)
    assert ["another value: epoch 0, sample 2 (log)"] == found.wrong


def test_a_planted_fault_is_found() -> None:
    """A rank that resumes a step early reads samples twice; the command says so, and fails."""
    options = "--histories 1 --first 6 --fault"
    command = [sys.executable, "-m", "tests.storm", *options.split()]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert 1 == done.returncode, done.stdout + done.stderr
    assert re.search(r"\d+ samples twice, such as epoch \d, sample \d+", done.stdout)
    assert "result: WRONG in 1 of 1 histories" in done.stdout
