"""PlanLoader, as docs/resume.md and docs/trainers.md say."""

from collections.abc import Iterator
from typing import Any

import indexplan as ip
from indexplan_torch import PlanLoader
from tests.runs.running import Place, Saved, Stateful


class Loader(Stateful):
    """One rank's."""

    def __init__(self, place: Place, saved: Saved | None) -> None:
        plan = ip.Plan(ip.Shuffle(place.n, seed=place.seed), batch_size=place.batch)
        here: dict[str, Any] = {"rank": place.rank, "world_size": place.world}
        dataset = range(place.n)
        super().__init__(PlanLoader(dataset, plan, num_workers=place.workers, **here), saved)

    def batches(self, epoch: int) -> Iterator[Any]:
        """Set the epoch, as loops do that count themselves, and iterate."""
        self.loader.set_epoch(epoch)
        yield from super().batches(epoch)
