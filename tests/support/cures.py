"""Meeting an error where a user without rights would."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


def where_all_may_enter(call: Callable[[], Any]) -> Callable[[], Any]:
    """Return a call in an empty folder that users without rights can reach."""

    def follow() -> None:
        with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
            Path(folder).chmod(0o755)
            patch.chdir(folder)
            call()

    return follow
