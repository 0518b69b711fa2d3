"""Accelerate: a prepared loader, and `skip_first_batches` after a resume.

https://huggingface.co/docs/accelerate/usage_guides/checkpoint: skip the batches of the pass that
were done, and go back to the prepared loader for the next one; dataset, batch size and distributed
configuration have to stay. `save_state` keeps the sampler's epoch and seed, which are given here.
"""

from collections.abc import Iterator
from typing import Any

from accelerate import PartialState
from accelerate.data_loader import prepare_data_loader, skip_first_batches
from torch.utils.data import DataLoader

from tests.runs.running import Place, Saved

PartialState(cpu=True)


class Loader:
    """One rank's."""

    def __init__(self, place: Place, saved: Saved | None) -> None:
        self.saved = saved
        dataset: Any = range(place.n)
        loader = DataLoader(dataset, place.batch, shuffle=True, num_workers=place.workers)
        self.loader: Any = prepare_data_loader(
            loader,
            num_processes=place.world,
            process_index=place.rank,
            put_on_device=False,
            use_seedable_sampler=True,
            data_seed=place.seed,
        )

    def batches(self, epoch: int) -> Iterator[Any]:
        """Set the epoch, skip what is done of it, and iterate."""
        self.loader.set_epoch(epoch)
        if self.saved and epoch == self.saved.epoch and self.saved.batches:
            yield from skip_first_batches(self.loader, self.saved.batches)
        else:
            yield from self.loader

    def state(self) -> None:
        """Need nothing but what the loop counts."""
