"""An epoch through Composer, on ranks that stay and that change; run as its other checks are."""

from pathlib import Path

import pytest

from tests.runs.frameworks import FRAMEWORKS
from tests.through.conformance_checks import check

pytestmark = pytest.mark.composer


def test_a_run_that_changes_its_ranks_reads_each_sample_once(tmp_path: Path) -> None:
    """Composer is the one entry that others cannot stand beside."""
    (composer,) = (each for each in FRAMEWORKS if each.alone)
    check(composer, tmp_path)
