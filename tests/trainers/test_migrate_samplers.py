"""What the pages on coming from other samplers say of a plan, where it takes ranks to show."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import indexplan as ip
from indexplan_torch import PlanLoader
from tests.test_docs import check_page
from tests.trainers.ranks import run_ranks

IMPORTED_BY_RANKS = ("accelerate",)


@pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")  # torchdata calls it
def test_page_runs(tmp_path: Path) -> None:
    """The codes before and after run, and print what the page shows."""
    check_page("migrate/pytorch", tmp_path)


def test_weights_are_kept_by_each_epoch_of_a_plan() -> None:
    """A rare class is read 33 or 34 times in each epoch, by all ranks together."""
    labels = np.array([0] * 900 + [1] * 90 + [2] * 10)
    weights = 1 / np.bincount(labels)[labels]
    rare = np.flatnonzero(labels == 2)  # each expected 33.3 times in an epoch of 999
    order = ip.Weighted(weights, epoch_size=999, seed=7)
    ours = np.array([order.count(epoch, rare) for epoch in range(100)])
    assert (33, 34) == (ours.min(), ours.max())
    assert list(range(1000)) == sorted(ip.Weighted(np.ones(1000)).take(0, 0, 1000))
    plan = ip.Plan(order, world_size=4, batch_size=32)
    shares = np.concatenate([plan.indices(epoch=0, rank=rank) for rank in range(4)])
    assert order.count(0, range(1000)).tolist() == np.bincount(shares, minlength=1000).tolist()


def test_max_repeats_keeps_proportions() -> None:
    """A weight of 2 among weights of 1, two reads without replacement, in 2,000 epochs."""
    once = ip.Weighted([1, 1, 2], epoch_size=2, max_repeats=1)
    read = sum(once.count(epoch, range(3)) for epoch in range(2000)) / 2000
    assert read[2] == 1
    assert abs(read[0] - 0.5) < 0.05  # twice as often


def test_a_state_is_of_any_number_of_workers() -> None:
    """What was saved without workers goes on with one, and without."""
    plan = ip.Plan(ip.Sequential(40), batch_size=4)

    def made(num_workers: int) -> PlanLoader:
        context = "forkserver" if num_workers else None
        options: Any = {"num_workers": num_workers, "multiprocessing_context": context}
        return PlanLoader(torch.arange(40), plan, **options)

    first = made(0)
    batches = iter(first)
    next(batches), next(batches)
    for again in (made(0), made(1)):
        again.load_state_dict(first.state_dict())
        assert [*range(8, 40)] == torch.cat([*again]).tolist()


class Asked(torch.utils.data.Dataset[int]):
    """A dataset that counts what it is asked for."""

    num_asked = 0

    def __len__(self) -> int:
        return 40

    def __getitem__(self, index: int) -> int:
        self.num_asked += 1
        return index


def dispatched() -> list[int]:
    """How many samples this rank receives and reads, where Accelerate dispatches batches."""
    from accelerate import Accelerator
    from accelerate.utils import DataLoaderConfiguration

    from indexplan_torch.accelerate import prepare

    accelerator = Accelerator(dataloader_config=DataLoaderConfiguration(dispatch_batches=True))
    dataset = Asked()
    loader = prepare(accelerator, PlanLoader(dataset, ip.Plan(ip.Sequential(40), batch_size=4)))
    received = sum(len(batch) for batch in loader)
    accelerator.wait_for_everyone()
    accelerator.end_training()
    return [received, dataset.num_asked]


def test_each_rank_reads_its_own_batches() -> None:
    """Under dispatch_batches=True Accelerate reads all on the main process; a plan does not."""
    assert 2 * [[20, 20]] == run_ranks(f"{__name__}:dispatched", 2, ACCELERATE_USE_CPU="true")
