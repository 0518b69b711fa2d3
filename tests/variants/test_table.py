"""The table of laws names code and tests that are there; no variant is run here."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

from tests.variants.table import TOP, Law, laws


@cache
def names_in(path: Path) -> set[str]:
    """Return the names of the functions of a file of tests, those of its classes too."""
    found = ast.walk(ast.parse(path.read_text()))
    return {each.name for each in found if isinstance(each, ast.FunctionDef)}


@pytest.mark.parametrize("law", laws(), ids=lambda law: law.says)
def test_each_law_has_its_code_once_and_its_tests(law: Law) -> None:
    """What moves takes its line of laws.txt along; else the table would prove nothing."""
    planted = law.plant((TOP / law.file).read_text())
    ast.parse(planted)  # a wrong variant is wrong, but no nonsense
    assert law.tests, f"no test is named: {law.says}"
    for test in law.tests:
        file, _, name = test.partition("::")
        assert (TOP / file).is_file(), test
        assert not name or name.partition("[")[0] in names_in(TOP / file), test


def test_no_law_is_said_twice() -> None:
    """A sentence names one law, so that a command can choose it."""
    said = [law.says for law in laws()]
    assert len(set(said)) == len(said)
