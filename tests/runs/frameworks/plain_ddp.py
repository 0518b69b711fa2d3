"""A loop of the user's own under DistributedDataParallel; the first rank writes its checkpoints.

Beside row.py it needs `pip install torch`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import torch
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import BatchSampler, DataLoader, DistributedSampler

from tests.runs.row import Leg, Numbered, Steps, line, plan_of, train

ENDLESS = False


def ours(leg: Leg) -> Steps:
    """Read a PlanLoader, whose state is in the checkpoint."""
    from indexplan_torch import PlanLoader

    loader = PlanLoader(torch.arange(leg.samples), plan_of(leg))
    parallel, optimizer, saved = _loaded(leg)
    if saved:
        loader.load_state_dict(saved["loader"])
    for epoch in leg.epochs:
        read = train(loader, parallel, optimizer, leg.limit(epoch))
    _save(leg, parallel, optimizer, loader=loader.state_dict())
    return read


def theirs(leg: Leg) -> Steps:
    """Read by DistributedSampler; the checkpoint has the number of steps, which are skipped."""
    dataset = torch.arange(leg.samples)
    sampler: Any = DistributedSampler(dataset, seed=1)
    loader = DataLoader(dataset, leg.global_batch // leg.world_size, sampler=sampler)
    parallel, optimizer, saved = _loaded(leg)
    done = saved.get("done", 0)
    for epoch in leg.epochs:
        sampler.set_epoch(epoch)
        read = train(islice(loader, done, None), parallel, optimizer, leg.limit(epoch))
    _save(leg, parallel, optimizer, done=done + len(read))
    return read


def _loaded(leg: Leg) -> tuple[Any, Any, dict[str, Any]]:
    """Return the model, its optimizer, and what was saved."""
    model, optimizer = line()
    saved = torch.load(leg.checkpoint) if leg.checkpoint else {}
    if saved:
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
    return DistributedDataParallel(model), optimizer, saved


def _save(leg: Leg, parallel: Any, optimizer: Any, **more: Any) -> None:
    """Write a checkpoint from the first rank."""
    if leg.save and leg.rank == 0:
        parts = {"model": parallel.module.state_dict(), "optimizer": optimizer.state_dict()}
        torch.save({**parts, **more}, leg.save)


def drawn_by_plan() -> Any:
    """PlanLoader, as docs/resume.md and docs/trainers.md say."""
    import indexplan as ip
    from indexplan_torch import PlanLoader
    from tests.runs.running import Place, Saved, Stateful

    def make(place: Place, saved: Saved | None) -> Any:
        plan = ip.Plan(ip.Shuffle(place.n, seed=place.seed), batch_size=place.batch)
        here: dict[str, Any] = {"rank": place.rank, "world_size": place.world}
        loader = PlanLoader(range(place.n), plan, num_workers=place.workers, **here)
        return Stateful(loader, saved, begin=loader.set_epoch)

    return make


def drawn() -> Any:
    """Torch's DistributedSampler: the order is made again, and what was read is skipped.

    Its page says to call `set_epoch`, and that samples are added until the ranks divide them; of
    resuming it says nothing. A batch of all ranks is a stretch of one order, so what was read is a
    prefix of it.
    """
    from tests.runs.running import Place, Saved

    class Skipping:
        def __init__(self, place: Place, saved: Saved | None) -> None:
            self.place = place
            here: dict[str, Any] = {"num_replicas": place.world, "rank": place.rank}
            sized: Any = Numbered(place.n)
            self.sampler: Any = DistributedSampler(sized, **here, seed=place.seed)
            self.read = 0  # samples of the pass, on all ranks
            self.resumed, self.skip = -1, 0
            if saved and not saved.after_pass:
                self.resumed = saved.epoch
                self.skip = saved.state(0) // (place.world * place.batch)

        def batches(self, epoch: int) -> Iterator[Any]:
            """Skip in the sampler, so that nothing is loaded to be thrown away."""
            self.sampler.set_epoch(epoch)
            batches: Any = BatchSampler(self.sampler, self.place.batch, drop_last=False)
            skip = self.skip if epoch == self.resumed else 0
            step = self.place.world * self.place.batch
            self.read = skip * step
            dataset: Any = range(self.place.n)
            rest: Any = list(islice(batches, skip, None))
            for batch in DataLoader(dataset, batch_sampler=rest, num_workers=self.place.workers):
                self.read += step
                yield batch

        def state(self) -> int:
            """Return how many samples the pass has read."""
            return self.read

    return Skipping
