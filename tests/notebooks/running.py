"""Run the notebooks of docs/notebooks; `python -m tests.notebooks.running` keeps what they show.

Needs `pip install -e . --group notebooks`. What they write to stderr is left out, and so
is what depends on the machine.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[2] / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def run(path: Path) -> Any:
    """Return a notebook as it is after all its cells have run, one after another."""
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        resources = {"metadata": {"path": folder}}
        options = {"timeout": 300, "coalesce_streams": True}  # however a pipe cuts what is printed
        NotebookClient(notebook, resources=resources, **options).execute()
    for cell in notebook.cells:
        if cell.cell_type == "code":
            alt = cell.metadata.get("alt")  # what a picture shows, in words
            cell.metadata = {} if alt is None else {"alt": alt}
            cell.outputs = [each for each in cell.outputs if each.get("name") != "stderr"]
            for output in cell.outputs:
                if "data" in output:
                    output["metadata"] = {}
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    return notebook


if __name__ == "__main__":
    for each in NOTEBOOKS:
        nbformat.write(run(each), each)
