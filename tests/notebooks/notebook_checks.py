"""The notebooks run, show what they showed when they were committed, and a picture once."""

from __future__ import annotations

import struct
from base64 import b64decode
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from tests.notebooks.running import NOTEBOOKS, WIDGET, is_progress, run

LOST = "sys.modules['ipywidgets'] = None\n"


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
    """Every cell runs, in a new kernel and a new folder, and its output is the committed one."""
    committed = nbformat.read(path, as_version=4)
    nbformat.validate(committed)
    assert shown(committed) == shown(run(path))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_what_a_cell_shows(path: Path) -> None:
    """A plan is a table of its fields, and a picture is there once."""
    for cell, outputs in zip(
        (each for each in nbformat.read(path, as_version=4).cells if each.cell_type == "code"),
        shown(nbformat.read(path, as_version=4)),
        strict=True,
    ):
        last = cell.source.splitlines()[-1]
        pictures = [each for each in outputs if isinstance(each, tuple)]
        assert last.startswith("ip.plot.") == (len(pictures) == 1)
        assert len(pictures) <= 1
        if last in ("plan", "rest"):
            assert [True] == [each.startswith("<pre>Plan\n") for each in outputs]
        if "ProgressBar" in last:  # the bar is on stderr, and is not kept
            assert 1 == len(outputs)


@pytest.mark.parametrize("widgets", [True, False])
def test_bars_in_notebooks(widgets: bool) -> None:
    """With ipywidgets a bar is a widget; without it is text, also where warnings are errors."""
    code = (
        f"import sys, warnings\n{'' if widgets else LOST}"
        "warnings.simplefilter('error')\n"
        "import indexplan as ip\n"
        "bar = ip.ProgressBar('working')\n"
        "bar(0, 8)\n"
        "bar(8, 8)"
    )
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    NotebookClient(notebook, timeout=120).execute()
    outputs = notebook.cells[0].outputs
    assert outputs
    assert [] == [each for each in outputs if not is_progress(each)]
    assert widgets == any(WIDGET in each.get("data", {}) for each in outputs)
    assert widgets != ("working: 100%" in "".join(each.get("text", "") for each in outputs))
