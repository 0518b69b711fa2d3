"""Following the cure of an error of the catalogue, right after it was met."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

import indexplan as ip


def after(cases: Iterable[tuple[str, Callable[[], Any]]]) -> Callable[..., Callable[[], Any]]:
    """Return what makes a cured call: a case's error, and then what its reader does, in turn."""
    calls = dict(cases)

    def met(name: str, *cure: Callable[[], Any]) -> Callable[[], Any]:
        def follow() -> None:
            with pytest.raises((ip.IndexPlanError, ModuleNotFoundError)):
                calls[name]()
            for step in cure:
                step()

        return follow

    return met


def where_all_may_enter(call: Callable[[], Any]) -> Callable[[], Any]:
    """Return a call in an empty folder that users without rights can reach."""

    def follow() -> None:
        with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
            Path(folder).chmod(0o755)
            patch.chdir(folder)
            call()

    return follow
