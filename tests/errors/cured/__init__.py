"""What a user writes who follows the cure of an error: a call for each, which has to succeed.

A module for each of the catalogue's, with `CURED`: by the name that a case has there, without the
module's, a call as the error's cure says it. It runs in an empty folder.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from typing import Any

CURED: dict[str, Callable[[], Any]] = {}
for _found in pkgutil.iter_modules(__path__):
    _module = importlib.import_module(f"{__name__}.{_found.name}")
    CURED |= {f"{_found.name}: {name}": call for name, call in _module.CURED.items()}
