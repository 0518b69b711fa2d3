"""PlanLoader, as docs/resume.md and docs/trainers.md say."""

from collections.abc import Iterator
from typing import Any

import indexplan as ip
from benchmarks.torture.running import Place, Saved, going_on
from indexplan_torch import PlanLoader


class Loader:
    """One rank's."""

    def __init__(self, place: Place, saved: Saved | None) -> None:
        plan = ip.Plan(ip.Shuffle(place.n, seed=place.seed), batch_size=place.batch)
        here: dict[str, Any] = {"rank": place.rank, "world_size": place.world}
        dataset = range(place.n)
        self.loader = PlanLoader(dataset, plan, num_workers=place.workers, **here)
        self.resumed = saved.epoch if saved and saved.after_pass else -1
        if saved:
            self.loader.load_state_dict(saved.state(0))

    def batches(self, epoch: int) -> Iterator[Any]:
        """Set the epoch, as loops do that count themselves, and iterate."""
        self.loader.set_epoch(epoch)
        yield from going_on(self.loader, after_pass=epoch == self.resumed)

    def state(self) -> Any:
        """Return the loader's own."""
        return self.loader.state_dict()
