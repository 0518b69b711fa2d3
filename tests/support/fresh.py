"""What a fresh Python prints."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def printed(*words: object, cwd: Path = ROOT, loud: bool = False, **environment: str) -> str:
    """Return what a Python of its own prints, which ends well.

    It says nothing on stderr, unless it may be `loud`.
    """
    paths = [environment.pop("PYTHONPATH", ""), str(ROOT), os.environ.get("PYTHONPATH", "")]
    given = {"PYTHONPATH": os.pathsep.join(filter(None, paths)), **environment}
    done = subprocess.run(
        [sys.executable, *map(str, words)],
        check=False,
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, **given},
        timeout=600,
    )
    assert 0 == done.returncode, done.stdout + done.stderr
    assert loud or not done.stderr, done.stderr
    return done.stdout
