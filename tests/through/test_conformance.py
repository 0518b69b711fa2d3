"""An epoch through every trainer's and framework's own code, on 3 ranks, 3 again, and then 2.

`python -m tests.histories trainers` runs more, and writes the tables of the pages. Those that
others cannot stand beside are checked where they are installed, by the same function.
"""

from pathlib import Path

import pytest

from tests.runs.frameworks import FRAMEWORKS, Framework
from tests.runs.row import PATIENCE
from tests.trainers.ranks import forks_of, in_forks

# what several of them import, and what ranks of other tests do
IMPORTED_BY_RANKS = (
    "lightning.pytorch",
    "tests.runs.frameworks.nemo_automodel",
    "tests.runs.frameworks.olmo_core",
    "tests.runs.frameworks.torchtitan",
    "tests.runs.frameworks.trl",
)


def check(framework: Framework, folder: Path) -> None:
    """Nothing is lost, nothing is read twice, and all ranks take as many steps."""
    arguments = (framework.name, ("few",), ("both",), ("theirs", "ours"))
    job = "tests.runs.frameworks:both"
    (record,) = in_forks(job, folder, arguments, timeout=12 * PATIENCE)
    assert "" == record["missing"]
    exact = {"lost": 0, "twice": 0, "uneven": 0, "refused": ""}
    assert {"both": exact} == record["ours"]
    assert "" == record["theirs"]["few"]["refused"]  # its own loader is set up as it wants


@pytest.mark.parametrize(
    "framework", [each for each in FRAMEWORKS if not each.alone], ids=lambda each: each.name
)
def test_a_run_that_changes_its_ranks_reads_each_sample_once(
    framework: Framework, tmp_path: Path
) -> None:
    """An epoch is read whole, where the ranks stay and where they change."""
    forks_of(__name__)
    check(framework, tmp_path)
