"""torchdata's StatefulDataLoader, and torchdata.nodes, in a loop under DistributedDataParallel.

Each rank saves the state of its own loader, and loads the one of its number.

Beside row.py it needs `pip install torch torchdata==0.11.0`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.nn.parallel import DistributedDataParallel
from torchdata.nodes import Batcher, IterableWrapper, Loader, Mapper, SamplerWrapper
from torchdata.stateful_dataloader import StatefulDataLoader
from torchdata.stateful_dataloader.sampler import StatefulDistributedSampler

from tests.runs.row import Leg, Numbered, Steps, line, plan_of, train

ENDLESS = False


def ours(leg: Leg) -> Steps:
    """Read by a PlanBatchSampler."""
    from indexplan_torch import PlanBatchSampler

    sampler: Any = PlanBatchSampler(plan_of(leg))
    return _train(leg, StatefulDataLoader(torch.arange(leg.samples), batch_sampler=sampler))


def theirs(leg: Leg) -> Steps:
    """Read by its StatefulDistributedSampler."""
    sampler = _sampler(leg)
    size = leg.global_batch // leg.world_size
    loader = StatefulDataLoader(torch.arange(leg.samples), size, sampler=sampler)
    return _train(leg, loader, sampler)


def nodes_ours(leg: Leg) -> Steps:
    """Read a graph over a PlanLoader."""
    from indexplan_torch import PlanLoader

    return _train(leg, Loader(IterableWrapper(PlanLoader(torch.arange(leg.samples), plan_of(leg)))))


def nodes_theirs(leg: Leg) -> Steps:
    """Read a graph over a StatefulDistributedSampler."""
    sampler = _sampler(leg)
    size = leg.global_batch // leg.world_size
    batches = Batcher(SamplerWrapper(sampler), size, drop_last=False)
    return _train(leg, Loader(Mapper(batches, torch.tensor)), sampler)


def _sampler(leg: Leg) -> Any:
    return StatefulDistributedSampler(torch.arange(leg.samples), seed=1)


def _train(leg: Leg, loader: Any, sampler: Any = None) -> Steps:
    """Load the loader's state, train, and save it."""
    model, optimizer = line()
    if leg.checkpoint:
        saved = torch.load(leg.checkpoint / f"{leg.rank}.pt")
        model.load_state_dict(saved["model"])
        loader.load_state_dict(saved["loader"])
    parallel = DistributedDataParallel(model)
    for epoch in leg.epochs:
        if sampler is not None:
            sampler.set_epoch(epoch)
        read = train(loader, parallel, optimizer, leg.limit(epoch))
    if leg.save:
        leg.save.mkdir(exist_ok=True)
        parts = {"model": model.state_dict(), "loader": loader.state_dict()}
        torch.save(parts, leg.save / f"{leg.rank}.pt")
    return read


def drawn_by_plan() -> Any:
    """PlanBatchSampler in torchdata's StatefulDataLoader, as docs/trainers.md says."""
    import indexplan as ip
    from indexplan_torch import PlanBatchSampler
    from tests.runs.running import Place, Saved, Stateful

    class OfASampler(Stateful):
        def __init__(self, place: Place, saved: Saved | None) -> None:
            plan = ip.Plan(ip.Shuffle(place.n, seed=place.seed), batch_size=place.batch)
            sampler = PlanBatchSampler(plan, rank=place.rank, world_size=place.world)
            self.left = saved is not None  # a state, whose pass comes first
            dataset: Any = range(place.n)
            loader = StatefulDataLoader(dataset, batch_sampler=sampler, num_workers=place.workers)
            super().__init__(loader, saved)

        def batches(self, epoch: int) -> Iterator[Any]:
            """Read what is left of the state's pass, and then epochs that are set."""
            left, self.left = self.left, False
            if left:
                rest = super().batches(epoch)
                first = next(rest, None)
                if first is not None:
                    yield first
                    yield from rest
                    return
            self.loader.batch_sampler.set_epoch(epoch)
            yield from super().batches(epoch)

    return OfASampler


def drawn() -> Any:
    """Torchdata's StatefulDataLoader over its StatefulDistributedSampler.

    The state is handled across workers, but not across ranks; so each saves and loads its own.
    """
    from tests.runs.running import Place, Saved, Stateful

    def make(place: Place, saved: Saved | None) -> Any:
        here: dict[str, Any] = {"num_replicas": place.world, "rank": place.rank, "seed": place.seed}
        sized: Any = Numbered(place.n)
        sampler: Any = StatefulDistributedSampler(sized, **here)
        dataset: Any = range(place.n)
        loader = StatefulDataLoader(
            dataset, place.batch, sampler=sampler, num_workers=place.workers
        )
        return Stateful(loader, saved, place.rank, begin=sampler.set_epoch)

    return make
