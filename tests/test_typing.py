"""mypy and pyright allow what tests/typed_usage.py says, and refuse every line of wrong_usage.py.

For the lint stage of .ci/run: `python -m pytest -m lint`, after `pip install -e .
--group dev`.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.lint

ROOT = Path(__file__).parents[1]
RIGHT, WRONG = "tests/typed_usage.py", "tests/wrong_usage.py"


def refused_by_mypy() -> set[tuple[str, int]]:
    """The files, of these two, and lines with an error of mypy's."""
    command = [sys.executable, "-m", "mypy", "--no-error-summary", RIGHT, WRONG]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    found = re.findall(r"^(.+?):(\d+): error: ", said.stdout, re.MULTILINE)
    assert said.returncode == bool(found), said.stdout + said.stderr
    return {(file, int(line)) for file, line in found}


def refused_by_pyright() -> set[tuple[str, int]]:
    """The files, of these two, and lines with an error of pyright's."""
    command = [sys.executable, "-m", "basedpyright", "--outputjson", "--pythonpath"]
    done = subprocess.run(
        [*command, sys.executable, RIGHT, WRONG],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    said = json.loads(done.stdout)
    assert 2 == said["summary"]["filesAnalyzed"], done.stdout
    errors = [each for each in said["generalDiagnostics"] if each["severity"] == "error"]
    names = [str(Path(each["file"]).relative_to(ROOT)) for each in errors]
    lines = [each["range"]["start"]["line"] + 1 for each in errors]
    return set(zip(names, lines, strict=True))


@pytest.mark.parametrize("refused", [refused_by_mypy, refused_by_pyright])
def test_usages(refused: Callable[[], set[tuple[str, int]]]) -> None:
    """Nothing right is refused, and everything wrong is, line by line."""
    lines = (ROOT / WRONG).read_text().splitlines()
    wrong = {(WRONG, number) for number, line in enumerate(lines, 1) if line.endswith("  # wrong")}
    assert len(wrong) > 40
    assert wrong == refused()
