"""An epoch through Composer, on 4, then 3, then 2 ranks; run as its other checks are."""

from benchmarks.contenders.frameworks import FRAMEWORKS
from tests.through.conformance_checks import check


def test_a_run_that_changes_its_ranks_reads_each_sample_once() -> None:
    """Composer is the one entry that others cannot stand beside."""
    (composer,) = (each for each in FRAMEWORKS if each.alone)
    check(composer)
