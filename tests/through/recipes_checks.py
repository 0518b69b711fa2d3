"""The page of recipes, run with the loaders that it names: see .ci/run."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

import pytest

from tests.migrate.library_checks import finish, start


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with what the recipes read: a LanceDB table, and tars with wids' index."""
    for number in range(8):
        with tarfile.open(tmp_path / f"{number}.tar", "w") as tar:
            for each in range(number * 125, number * 125 + 125):
                content = json.dumps(each).encode()
                entry = tarfile.TarInfo(f"{each:04}.json")
                entry.size = len(content)
                tar.addfile(entry, io.BytesIO(content))
    make = """
import glob, sys
import lancedb
import pyarrow as pa
from wids import wids_index

lancedb.connect("lance").create_table("numbers", pa.table({"n": range(1000)}))
tars = sorted(glob.glob("*.tar"))
sys.argv = ["widsindex", "create", *tars, "--output", "shards.json", "--name", "numbers"]
wids_index.main()
"""
    finish(start(tmp_path, "-c", make))
    return tmp_path


def test_page_runs(folder: Path) -> None:
    """Each recipe reads each sample once, on 4 ranks and then on 3, in equal steps."""
    code = """
from pathlib import Path
from benchmarks.contenders import name_packages
from tests.test_docs import check_page
name_packages("axolotl", "axolotl.utils")  # whose __init__ wants what trains
check_page("recipes", Path())
"""
    finish(start(folder, "-c", code))
