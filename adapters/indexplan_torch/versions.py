"""The versions of torch and of trainers that everything here was tested with.

The adapters lean on some things that trainers keep to themselves. Where a version has them no
more, the error says which versions have.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Any

from indexplan import IndexPlanError

# package: (from which version on it is meant to work, what the tests run with)
TESTED = {
    "torch": ("2.2", "2.13.0"),
    "lightning": ("2.4", "2.6.6"),
    "pytorch-lightning": ("2.4", "2.6.6"),
    "mosaicml": ("0.32", "0.32.1"),
    "accelerate": ("1.0", "1.15.0"),
    "transformers": ("4.45", "5.23.0"),
    "torchdata": ("0.10", "0.11.0"),
    "ray": ("2.40", "2.60.0"),
}


def private(package: str, thing: Any, *names: str) -> Any:
    """Return what a trainer keeps to itself: `thing.first.second`.

    Raises
    ------
    IndexPlanError
        If this version of the trainer has it no more, with the versions that have.
    """
    for name in names:
        if not hasattr(thing, name):
            owner = thing if isinstance(thing, type) else type(thing)
            raise lacking(package, f"{owner.__name__}.{name}")
        thing = getattr(thing, name)
    return thing


def lacking(package: str, what: str) -> IndexPlanError:
    """Return the error of a version that has something no more, or does it in another way."""
    floor, tested = TESTED[package]
    try:
        installed = version(package)
    except PackageNotFoundError:
        installed = "one that is not installed as a package"
    return IndexPlanError(
        f"{package} must have {what}, which indexplan_torch leans on; got {package} {installed}, "
        f"which has not; pip install '{package}>={floor},<={tested}', the versions that have"
    )
