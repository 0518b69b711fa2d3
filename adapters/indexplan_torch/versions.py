"""The versions of torch and of trainers that everything here was tested with.

The adapters rely on some private parts of torch and of trainers. Where a version lacks one, the
error says which versions have it.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Any

from indexplan import IndexPlanError

# package: (the lowest version that is meant to work, the one that the tests run with)
TESTED = {
    "torch": ("2.2", "2.13.0"),
    "lightning": ("2.4", "2.6.6"),
    "pytorch-lightning": ("2.4", "2.6.6"),
    "mosaicml": ("0.32", "0.32.1"),
    "accelerate": ("1.0", "1.15.0"),
    "transformers": ("5.3", "5.23.0"),
    "trl": ("1.16", "1.16.0"),
    "torchdata": ("0.10", "0.11.0"),
    "ray": ("2.40", "2.60.0"),
    "mmengine": ("0.10", "0.10.7"),
    "keras": ("3.12", "3.15.1"),
}


def private(package: str, thing: Any, *names: str) -> Any:
    """Return a private part of a package: `thing.first.second`.

    Raises
    ------
    IndexPlanError
        If this version of the package lacks it; the message names the versions that have it.
    """
    for name in names:
        if not hasattr(thing, name):
            owner = thing if isinstance(thing, type) else type(thing)
            raise lacking(package, f"{owner.__name__}.{name}")
        thing = getattr(thing, name)
    return thing


def lacking(package: str, what: str) -> IndexPlanError:
    """Return the error for a version that lacks something, or does it in another way."""
    floor, tested = TESTED[package]
    try:
        installed = version(package)
    except PackageNotFoundError:
        installed = "one that is not installed as a package"
    return IndexPlanError(
        package,
        f"must have {what}, which indexplan_torch relies on",
        f"{package} {installed}, which does not",
        f"pip install '{package}>={floor},<={tested}', the versions that do",
    )
