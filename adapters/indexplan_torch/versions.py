"""The versions of torch and of trainers that everything here was tested with.

The adapters rely on some private parts of torch and of trainers. Where a version lacks one, the
error says which versions have it.
"""

from __future__ import annotations

import sys
import warnings
from importlib.metadata import PackageNotFoundError, entry_points, version
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


def check_callback() -> None:
    """Warn, at a run's first pass, if Lightning's trainers can't find our callback.

    They find it through the entry points of an installed package. A package that is only on the
    path has none, and a trainer that drops a loader's state then begins the epoch again. A trainer
    that found the callback has imported its module, as has a user who passes it.
    """
    trainers = {"lightning.pytorch", "pytorch_lightning"} & sys.modules.keys()
    if not trainers or "indexplan_torch.lightning" in sys.modules:
        return
    if not entry_points(group="lightning.pytorch.callbacks_factory", name="indexplan"):
        warnings.warn(
            "indexplan must be installed where Lightning's Trainer reads a plan, or a resume may "
            "begin the epoch again; got a package that is only on the path; install it with pip, "
            "or pass Trainer(callbacks=[indexplan_torch.lightning.RefreshStepCounts()]); other "
            "loops need neither",
            stacklevel=6,
        )
