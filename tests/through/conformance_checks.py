"""An epoch through every framework's own code and checkpoints, on 4, then 3, then 2 ranks."""

import pytest

from benchmarks.contenders.frameworks import FRAMEWORKS
from benchmarks.torture.through import KINDS, through


@pytest.mark.parametrize("framework", FRAMEWORKS, ids=lambda each: each.module)
def test_a_run_that_changes_its_ranks_reads_each_sample_once(framework) -> None:
    """Nothing is lost, nothing is read twice, and all ranks take as many steps."""
    record = through(framework.module)
    assert "" == record["missing"]
    exact = {"lost": 0, "twice": 0, "uneven": 0, "refused": ""}
    assert dict.fromkeys(KINDS, exact) == record["ours"]
    assert "" == record["theirs"]["same"]["refused"]  # its own loader is set up as it wants
