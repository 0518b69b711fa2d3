"""Plans in NeMo AutoModel's own code: its YAML files, loader, StepScheduler and checkpoints."""

from __future__ import annotations

import shutil
import warnings
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import pytest

import indexplan as ip
from tests.histories.listing import Listed
from tests.histories.megatron import stream
from tests.runs.row import Leg, Steps
from tests.through import legs
from tests.trainers.ranks import in_forks

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of AutoModel, about what is not installed
    from nemo_automodel.components.datasets.loader import ParallelAwareDataloader
    from nemo_automodel.components.training.step_scheduler import StepScheduler

    from tests.runs.frameworks.nemo_automodel import PLAN, ByPlan, trained

pytestmark = pytest.mark.filterwarnings("ignore")


def fit(leg: Leg) -> Steps:
    """Train a leg; a rank without a file of its own takes a copy of the first rank's."""
    for file in leg.checkpoint.glob("*/dataloader/*_rank_0.pt") if leg.checkpoint else ():
        mine = file.with_name(f"dataloader_dp_rank_{leg.rank}.pt")
        if not mine.exists():
            shutil.copy(file, mine)
    return trained(leg, more=PLAN)


def job(folder: str, jobs: legs.Jobs) -> Steps:
    """Train jobs on epochs of 50 samples."""
    return legs.trained(folder, fit, jobs, samples=50)


def test_recipes_resume_at_every_kind_of_place(tmp_path: Path) -> None:
    """After an epoch's last step, and inside epochs; on more ranks too, with copied files."""
    jobs = [(2, 3), (1, 1), (3, 2)]
    (steps,) = in_forks(f"{__name__}:job", tmp_path, (str(tmp_path), jobs))
    # an epoch ends with what is left of it, filled up to micro-batches
    legs.check(steps, [24, 24, 4, 24, 24, 24], samples=50)


def loader(
    order: ip.Shuffle, rank: int, world_size: int, batch_size: int
) -> ParallelAwareDataloader:
    """Return the loader of a rank, as DataloaderConfig makes it."""
    num = order.num_samples
    config = ByPlan(batch_size=batch_size, seed=order.seed)
    sampler = config.build(dataset_len=num, rank=rank, world_size=world_size)
    return ParallelAwareDataloader(
        [*range(num)], dp_rank=rank, dp_world_size=world_size, batch_sampler=sampler
    )


@pytest.mark.parametrize("number", range(60))
def test_histories(number: int, tmp_path: Path) -> None:
    """Each optimizer step reads the run's next places, whatever ranks, batches and stops.

    A ledger is kept by hand, as its page says: it has each micro-batch once.
    """
    random = Random(f"nemo {number}")  # noqa: S311 (for a history that comes again)
    order = ip.Shuffle(random.randint(5, 60), random.randrange(2**64))
    checkpoints: list[Any] = [([], None, 0, None, [])]
    for _ in range(random.randint(1, 5)):
        files, scheduled, place, kept, listed = random.choice(checkpoints[-3:])
        places = islice(stream(order), place, None)
        world_size, batch_size = random.randint(1, 4), random.randint(1, 4)
        global_batch = world_size * batch_size * random.randint(1, 4)
        sizes = {"local_batch_size": batch_size, "dp_size": world_size}
        ranks = []
        for rank in range(world_size):
            made = loader(order, rank, world_size, batch_size=batch_size)
            schedule = StepScheduler(
                global_batch, dataloader=made, preemption_signal=None, num_epochs=50, **sizes
            )
            if files:
                made.load_state_dict(files[rank % len(files)])
                schedule.load_state_dict(scheduled)
            ranks.append(schedule)
        ledger = ip.Ledger(tmp_path / "run.ledger")
        plan = ip.Plan(order, world_size=world_size, batch_size=batch_size, remainder="carry")
        if kept is None:
            ledger.begin(plan)
        else:
            ledger.begin(plan.resume(kept[0]), kept[1])
        stop = ranks[0].step + random.randint(1, 9)
        loops = [trained_until(schedule, stop) for schedule in ranks]
        for steps in zip(*loops, strict=True):
            read = sorted(sum(sum(steps, []), []))
            assert len(read) <= global_batch
            assert sorted(next(places) for _ in read) == read
            place += len(read)
            listed = listed + [[*batches] for batches in zip(*steps, strict=True)]
            if random.random() < 0.5 or ranks[0].step + 1 >= stop:
                files = [schedule.dataloader.state_dict() for schedule in ranks]
                cursor = ip.Cursor.from_dict(files[0]["_sampler_iter_state"]["cursor"])
                ledger.record(plan, cursor)
                kept = cursor, ledger.hash
                checkpoints.append((files, ranks[0].state_dict(), place, kept, listed))
        Listed(steps=checkpoints[-1][-1]).check(ip.Ledger(ledger.path))


def trained_until(schedule: StepScheduler, stop: int) -> Any:
    """Yield the micro-batches of each step, as the recipe's loop takes them."""
    for epoch in schedule.epochs:
        schedule.set_epoch(epoch)
        for batches in schedule:
            yield [batch.tolist() for batch in batches]
            if schedule.step + 1 >= stop:
                return
