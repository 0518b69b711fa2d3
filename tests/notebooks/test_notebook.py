"""The notebooks run, show what they showed when they were committed, and a picture once."""

from __future__ import annotations

import struct
from base64 import b64decode
from pathlib import Path
from typing import Any

import nbformat
import pytest

from tests.notebooks.running import NOTEBOOKS, run

pytestmark = pytest.mark.notebooks


def shown(notebook: Any) -> list[list[Any]]:
    """What each cell of code shows: text as it is, and pictures by their size in pixels."""
    cells = []
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cells.append([of_output(each) for each in cell.outputs])
    return cells


def of_output(output: Any) -> Any:
    """What one output shows."""
    if output.output_type == "stream":
        return output.text
    assert output.output_type == "execute_result"
    data = output.data
    if "image/png" in data:
        width, height = struct.unpack(">II", b64decode(data["image/png"])[16:24])
        # matplotlib's versions differ by some pixels; an empty or doubled picture by more
        return "picture", round(width / 50), round(height / 50)
    return data.get("text/html", data["text/plain"])


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook(path: Path) -> None:
    """Every cell runs, in a new kernel and a new folder, and its output is the committed one.

    A picture is there once.
    """
    committed = nbformat.read(path, as_version=4)
    nbformat.validate(committed)
    assert shown(committed) == shown(run(path))
    codes = [cell.source for cell in committed.cells if cell.cell_type == "code"]
    for code, outputs in zip(codes, shown(committed), strict=True):
        draws = code.splitlines()[-1].startswith("ip.plot.")
        assert draws == sum(isinstance(each, tuple) for each in outputs)
