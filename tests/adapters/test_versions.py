"""The table of tested versions: what is installed, what is required, and what is said."""

import re
from importlib.metadata import version

import pytest

from indexplan_torch.versions import TESTED
from tests.trainers.ranks import ROOT

ELSEWHERE = {"mosaicml"}  # tests/trainers/composer_checks.py, as it needs an older torch's pins


def test_the_table_is_that_of_the_code() -> None:
    """docs/trainers.md shows the versions that errors name."""
    section = (ROOT / "docs" / "trainers.md").read_text().partition("## Tested versions")[2]
    rows = re.findall(r"^\| ([a-z-]+) \| ([\d.]+) \| ([\d.]+) \|$", section, re.MULTILINE)
    assert TESTED == {name: (floor, tested) for name, floor, tested in rows}


@pytest.mark.parametrize("name", sorted(TESTED.keys() - ELSEWHERE))
def test_the_tests_run_with_what_the_table_says(name: str) -> None:
    """What is installed here is what the table calls tested; a new release asks for a new row."""
    assert TESTED[name][1] == version(name).partition("+")[0]


def test_the_lowest_versions_are_those_required() -> None:
    """The extras ask for no older version than the table starts with."""
    text = (ROOT / "pyproject.toml").read_text()
    required = dict(re.findall(r'"([a-z-]+)(?:\[train\])?>=([\d.]+)"', text))
    known = TESTED.keys() & required.keys()
    assert {"torch", "lightning", "accelerate", "transformers", "torchdata", "ray"} == known
    assert {name: required[name] for name in known} == {name: TESTED[name][0] for name in known}
