"""mypy and pyright allow what tests/typed_usage.py says, and refuse every line of wrong_usage.py.

For the lint stage of .ci/run: `python -m pytest -m lint`, after `pip install -e .
--group dev`.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.lint

ROOT = Path(__file__).parents[1]
RIGHT, WRONG = "tests/typed_usage.py", "tests/wrong_usage.py"


def refused_by_mypy(file: str) -> set[int]:
    """The lines of a file with an error of mypy's."""
    command = [sys.executable, "-m", "mypy", "--no-error-summary", file]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    found = re.findall(rf"^{re.escape(file)}:(\d+): error: ", said.stdout, re.MULTILINE)
    assert said.returncode == bool(found), said.stdout + said.stderr
    return set(map(int, found))


def refused_by_pyright(file: str) -> set[int]:
    """The lines of a file with an error of pyright's."""
    command = [sys.executable, "-m", "basedpyright", "--outputjson", "--pythonpath"]
    done = subprocess.run(
        [*command, sys.executable, file], cwd=ROOT, capture_output=True, text=True, check=False
    )
    said = json.loads(done.stdout)
    assert 1 == said["summary"]["filesAnalyzed"], done.stdout
    errors = [each for each in said["generalDiagnostics"] if each["severity"] == "error"]
    return {each["range"]["start"]["line"] + 1 for each in errors}


@pytest.mark.parametrize("refused", [refused_by_mypy, refused_by_pyright])
def test_usages(refused: object) -> None:
    """Nothing right is refused, and everything wrong is, line by line."""
    assert callable(refused)
    assert set() == refused(RIGHT)
    lines = (ROOT / WRONG).read_text().splitlines()
    wrong = {number for number, line in enumerate(lines, 1) if line.endswith("  # wrong")}
    assert len(wrong) > 40
    assert wrong == refused(WRONG)
