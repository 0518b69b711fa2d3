"""Random streams for augmentation: another one for every rank and worker, each from one seed."""

from __future__ import annotations

import contextlib
import random
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from indexplan import IndexPlanError, worker_seed
from indexplan_torch.arguments import shown
from indexplan_torch.feed import Feed


@dataclass(frozen=True, kw_only=True)
class Seeded:
    """What the random, NumPy and torch of a process were seeded with, and from what.

    Parameters
    ----------
    seed : int
        The order's `stream_key`: its seed, or 0 if it has none.
    epoch, sub_epoch, rank, worker : int
        Whose stream it is.
    value : int
        What they were hashed to, 0 <= value < 2**64.

    Examples
    --------
    >>> from indexplan import worker_seed
    >>> from indexplan_torch import Seeded
    >>> value = worker_seed(7, epoch=0, rank=1, worker=2)
    >>> Seeded(seed=7, epoch=0, sub_epoch=0, rank=1, worker=2, value=value).worker
    2
    """

    seed: int
    epoch: int
    sub_epoch: int
    rank: int
    worker: int
    value: int


_recorded: Seeded | None = None


def recorded() -> Seeded | None:
    """Return what this process was seeded with; None if it was not.

    Examples
    --------
    >>> import indexplan as ip
    >>> from indexplan_torch import PlanLoader, recorded, seed_rank
    >>> loader = PlanLoader(range(10), ip.Plan(ip.Shuffle(10, seed=7), batch_size=4))
    >>> seeded = seed_rank(loader)
    >>> recorded() == seeded
    True
    """
    return _recorded


def _seed(feed: Feed, worker: int) -> Seeded:
    global _recorded  # noqa: PLW0603 (a process has one random state, and one record of it)
    plan, rank = feed.running()
    number = feed.coming  # a sampler begins a pass when workers draw, which start before that
    epoch, sub_epoch = divmod(number, plan.sub_epochs)
    seed = plan.order.stream_key
    # a pass is numbered through all sub-epochs, so that each has its own stream
    value = worker_seed(seed, epoch=number % 2**32, rank=rank, worker=worker)
    random.seed(value)
    np.random.seed(value % 2**32)  # noqa: NPY002 (augmentations use the global state)
    torch.manual_seed(value)
    _recorded = Seeded(
        seed=seed, epoch=epoch, sub_epoch=sub_epoch, rank=rank, worker=worker, value=value
    )
    return _recorded


class SeedWorker:
    """A `worker_init_fn`: seeds a worker from (seed, pass, rank, worker).

    Persistent workers are seeded once, when they start, and draw on from there. `PlanLoader` takes
    one by itself.

    Parameters
    ----------
    feed : Feed
        Of the sampler that is streamed.

    Examples
    --------
    >>> import indexplan as ip
    >>> from torch.utils.data import DataLoader
    >>> from indexplan_torch import PlanBatchSampler, SeedWorker
    >>> sampler = PlanBatchSampler(ip.Plan(ip.Shuffle(10), batch_size=4))
    >>> start = SeedWorker(sampler.feed)
    >>> loader = DataLoader(range(10), batch_sampler=sampler, worker_init_fn=start)
    """

    def __init__(self, feed: Feed) -> None:
        if not isinstance(feed, Feed):
            raise IndexPlanError(
                f"feed must be a sampler's; got {shown(feed)}; pass sampler.feed of a "
                "PlanBatchSampler"
            )
        self.feed = feed

    def __call__(self, worker: int) -> None:
        """Seed the process that this is."""
        _seed(self.feed, worker)

    def __getstate__(self) -> dict[str, Any]:
        """Find out the rank before going to a spawned worker, which has no process group."""
        with contextlib.suppress(IndexPlanError):  # said by the sampler, when it draws
            self.feed.running()
        return vars(self).copy()


def seed_rank(loader: Any) -> Seeded:
    """Seed the main process, for loaders without workers: as worker 0 of its rank.

    Parameters
    ----------
    loader : PlanLoader or PlanBatchSampler
        Whose plan, rank and pass are taken: the pass that the loop is in, or the one that comes
        next. So call it after `set_epoch` and before the loop: in the last step of a pass it is
        already the next one's turn.

    Returns
    -------
    Seeded
        With what, and from what.

    Examples
    --------
    >>> import indexplan as ip
    >>> from indexplan_torch import PlanLoader, seed_rank
    >>> loader = PlanLoader(range(10), ip.Plan(ip.Shuffle(10, seed=7), batch_size=4))
    >>> loader.set_epoch(2)
    >>> seed_rank(loader).epoch
    2
    """
    feed = getattr(loader, "feed", None)
    if not isinstance(feed, Feed):
        raise IndexPlanError(
            f"loader must be a PlanLoader, or one of the samplers; got {shown(loader)}; pass "
            "PlanLoader(dataset, plan)"
        )
    return _seed(feed, 0)
