"""Cures that are followed: what an error tells its reader to write is no error any more."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.errors.catalogue import CASES, CURED
from tests.errors.provoking import module, outcome, typed

CURED_COMMANDS = {name: case for name, case in typed().items() if case[2:]}


@pytest.mark.parametrize("name", sorted(CURED))  # some are made of sets
def test_the_cured_call_succeeds(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user who does what the error says gets an answer, without a warning."""
    monkeypatch.chdir(tmp_path)
    CURED[name]()


@pytest.mark.parametrize("name", CURED_COMMANDS)
def test_the_cured_command_succeeds(name: str) -> None:
    """A user who types what the error says gets an answer, and no complaint."""
    wrong, before, *steps = CURED_COMMANDS[name]

    def follow() -> list[int]:
        before()
        codes = [module.main(shlex.split(wrong))]
        for step in steps:
            if callable(step):
                step()
            else:
                codes.append(ended(step))
        return codes

    done = outcome(follow)
    assert done.error is None
    assert done.code[0] in {1, 2}
    assert [0] * len(done.code[1:]) == done.code[1:], done.err
    assert done.err.count("\n") == 1, done.err
    assert done.warned == []


def ended(words: str) -> int:
    """Type a command, and return its exit code."""
    try:
        return int(module.main(shlex.split(words)))
    except SystemExit as exit_:  # --help
        return int(exit_.code or 0)


def test_each_is_the_cure_of_an_error() -> None:
    """No call stands here whose error has left the catalogue."""
    assert set() == set(CURED) - set(CASES)
