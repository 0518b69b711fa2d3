"""The page of pictures runs, and all pictures are drawn as they are; which takes long."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image  # which matplotlib brings

from tests.test_docs import ROOT, check_page, modules

__all__ = ["modules"]  # a fixture


@pytest.mark.usefixtures("modules")
def test_page_runs(tmp_path: Path) -> None:
    """What the page's blocks print is what it shows, and its commands draw what its lines draw."""
    check_page("pictures", tmp_path)


def test_pictures_and_help_are_drawn_by_the_command(tmp_path: Path) -> None:
    """`python docs/refresh.py` draws the pictures that there are, and the help as it is."""
    page = "docs/command-line.md"
    (parts,) = re.findall(
        r"(.*<!-- help -->\n```text\n).*?\n(```\n.*)", (ROOT / page).read_text(), re.DOTALL
    )
    (tmp_path / "docs").mkdir()
    (tmp_path / page).write_text("outdated\n".join(parts))
    paths = os.pathsep.join([str(ROOT), str(ROOT / "adapters")])
    command = [sys.executable, str(ROOT / "docs" / "refresh.py"), str(tmp_path)]
    subprocess.run(command, env={**os.environ, "PYTHONPATH": paths}, check=True)
    assert (ROOT / page).read_text() == (tmp_path / page).read_text()
    first = "docs/images/stop-and-resume.svg"
    assert (ROOT / first).read_text() == (tmp_path / first).read_text()
    (tmp_path / first).unlink()
    drawn = {file.name: file for file in (tmp_path / "docs" / "images").iterdir()}
    assert {file.name for file in (ROOT / "docs" / "images").glob("plan-*.png")} == set(drawn)
    for name, file in drawn.items():
        (there, old), (new, now) = (pixels(ROOT / "docs" / "images" / name), pixels(file))
        # another matplotlib draws letters a little differently
        assert there.shape == new.shape
        assert old != now or np.array_equal(there, new), f"{name}: run python docs/refresh.py"


def pixels(path: Path) -> tuple[np.ndarray, str]:
    """A picture's pixels, and the matplotlib that drew it."""
    with Image.open(path) as image:
        return np.asarray(image), str(image.info["Software"])
