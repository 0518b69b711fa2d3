"""Cures that are followed: what an error tells its reader to write is no error any more."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.errors.catalogue import CASES
from tests.errors.cured import CURED


@pytest.mark.parametrize("name", sorted(CURED))  # some are made of sets
def test_the_cured_call_succeeds(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user who does what the error says gets an answer, without a warning."""
    monkeypatch.chdir(tmp_path)
    CURED[name]()


def test_each_is_the_cure_of_an_error() -> None:
    """No call stands here whose error has left the catalogue."""
    assert set() == set(CURED) - set(CASES)
