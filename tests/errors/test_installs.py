"""What the cures for missing packages tell people to type: pip does it, without a release."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import metadata
from pathlib import Path

import pytest

from indexplan.errors import install

ROOT = Path(__file__).parents[2]


def extras() -> set[str]:
    """Return the extras that are named where errors are made."""
    files = [*ROOT.glob("indexplan/**/*.py"), *ROOT.glob("adapters/**/*.py")]
    called = re.compile(r"\binstall\([\"'](\w+)[\"']\)")
    return {name for file in files for name in called.findall(file.read_text())}


def test_every_extra_that_is_named_is_there() -> None:
    """And no error writes such a command itself."""
    known = metadata("indexplan").get_all("Provides-Extra") or []
    assert {"cli", "torch", "shards", "remote"} < extras()
    assert set() == extras() - {*known}
    files = [*ROOT.glob("indexplan/**/*.py"), *ROOT.glob("adapters/**/*.py")]
    writes = [
        file.name for file in files if re.search(r"pip install \W*indexplan", file.read_text())
    ]
    assert ["errors.py"] == writes


@pytest.mark.parametrize("extra", sorted(extras()))
def test_pip_takes_what_is_installed(extra: str) -> None:
    """It finds indexplan in the environment, so it asks no index for it: here it has none."""
    command = install(extra).removeprefix("pip install ").strip("'")
    assert f"indexplan[{extra}]" == command
    pip = [sys.executable, "-m", "pip", "install", "--dry-run", "--no-index", "--no-deps", command]
    done = subprocess.run(pip, capture_output=True, text=True, check=False)
    assert "Requirement already satisfied: indexplan" in done.stdout, done.stdout + done.stderr
    assert 0 == done.returncode
