"""Whoever is measured next to others, ours among them: a file for each contest.

A file has one table of entries, and a function for each, which imports what it needs: an entry that
cannot be imported is listed in the report with the reason. Folders have a module for each instead.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any


@dataclass(frozen=True)
class Contender:
    """One of a table: where its code is, and whose work that is."""

    name: str
    module: str
    """The function of the file whose table it stands in, or the module of the folder."""
    package: str
    """The distribution that does the work, whose version pages give."""
    ours: bool = field(default=False, kw_only=True)
    cure: str = field(default="pip install -e . --group bench", kw_only=True)
    """What installs it."""
    apart: str = field(default="", kw_only=True)
    """What is installed instead, without what it depends on."""
    note: str = field(default="", kw_only=True)
    """How it is used, for the page, if its function does not say it."""

    def command(self) -> str:
        """Return what installs it."""
        return f"pip install --no-deps {self.apart}" if self.apart else self.cure

    def load(self) -> Any:
        """Import its code; ImportError if what it needs is missing."""
        home = importlib.import_module(type(self).__module__)
        function = getattr(home, self.module, None)
        if callable(function):
            return function()
        return importlib.import_module(f"{home.__name__}.{self.module}")

    def how(self) -> str:
        """Return how it is used: what its function says of itself."""
        home = importlib.import_module(type(self).__module__)
        return self.note or " ".join(str(getattr(home, self.module).__doc__).split())

    def version(self) -> str:
        """Return the version of its package."""
        if self.ours:  # which may be a checkout that is not installed
            return importlib.import_module("indexplan").__version__
        return importlib.metadata.version(self.package)

    def standing(self) -> dict[str, str]:
        """Return its version, or the reason why it is missing."""
        try:
            self.load()
            return {"version": f"{self.package} {self.version()}", "missing": ""}
        except (ImportError, importlib.metadata.PackageNotFoundError) as error:
            return {
                "version": "",
                "missing": f"{type(error).__name__}: {error}; `{self.command()}`",
            }


def standing(table: Sequence[Contender]) -> list[dict[str, str]]:
    """Return everybody of a table with a version, or with the reason why one is missing: rows."""
    return [{"table": "who", "who": each.name, **each.standing()} for each in table]


def name_packages(*names: str) -> None:
    """Let modules below packages be imported without running the packages' `__init__.py`."""
    for name in names:
        if name not in sys.modules:
            found = importlib.util.find_spec(name)
            if found is None or not found.submodule_search_locations:
                raise ModuleNotFoundError(f"No module named {name!r}")
            package = ModuleType(name)
            package.__path__ = list(found.submodule_search_locations)
            sys.modules[name] = package


def leave_out(*names: str) -> None:
    """Let modules be imported that take from others what nothing here calls: it is `object`."""
    for name in names:
        module = ModuleType(name)
        module.__getattr__ = _taken
        sys.modules.setdefault(name, module)


def _taken(name: str) -> type:
    if name.startswith("__"):  # what Python asks of modules, which these have none of
        raise AttributeError(name)
    return object
