"""The one table of what groups of a torchft run read by, ours among them.

An entry is a module of this folder with `train(group)`, which reads an epoch with a Group of
tests/runs/groups/group.py, and ends after as many steps as the epoch has with all groups there.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from benchmarks.contenders import Contender


@dataclass(frozen=True)
class Loader(Contender):
    """One loader; everything about it but its code."""

    setup: str
    """How it is set up, in words."""
    cure: str = field(
        default="pip install --no-deps --target FOLDER -r .ci/locked-torchft.txt, and FOLDER on "
        "PYTHONPATH",
        kw_only=True,
    )


LOADERS = (
    Loader(
        "torchft DistributedSampler",
        "sampler",
        "torchft",
        "In a StatefulDataLoader, as in torchft's train_ddp; nothing is saved.",
    ),
    Loader(
        "torchft DistributedSampler, saved",
        "sampler_saved",
        "torchft",
        "The same, and each group saves its loader's state after each step, and loads it when it "
        "starts again, as a comment of train_ddp advises.",
    ),
    Loader(
        "indexplan LiveLoader",
        "live_loader",
        "indexplan",
        "`LiveLoader(dataset, plan, manager, num_epochs=1)` in train_ddp's loop; nothing is saved.",
        ours=True,
    ),
)
"""In the order of the page."""
