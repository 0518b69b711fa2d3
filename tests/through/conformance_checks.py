"""An epoch through every trainer's and framework's own code, on 4, then 3, then 2 ranks.

Those that others cannot stand beside are checked where they are installed, by the same function.
"""

import pytest

from benchmarks.contenders.frameworks import FRAMEWORKS, Framework
from benchmarks.torture.through import KINDS, through


def check(framework: Framework) -> None:
    """Nothing is lost, nothing is read twice, and all ranks take as many steps."""
    record = through(framework.module, ("same",))
    assert "" == record["missing"]
    exact = {"lost": 0, "twice": 0, "uneven": 0, "refused": ""}
    assert dict.fromkeys(KINDS, exact) == record["ours"]
    assert "" == record["theirs"]["same"]["refused"]  # its own loader is set up as it wants


@pytest.mark.parametrize(
    "framework", [each for each in FRAMEWORKS if not each.alone], ids=lambda each: each.module
)
def test_a_run_that_changes_its_ranks_reads_each_sample_once(framework: Framework) -> None:
    """An epoch is read whole, whether the ranks stay or change."""
    check(framework)
