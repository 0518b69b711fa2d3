"""Augmentation streams: seeds hashed from (seed, pass, rank, worker), and what records them."""

import itertools
import random
from typing import Any

import numpy as np
import pytest
import torch
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils.data import DataLoader, Dataset
from torchdata.stateful_dataloader import StatefulDataLoader

import indexplan as ip
from indexplan_torch import PlanBatchSampler, PlanLoader, PlanSampler
from indexplan_torch.seeding import SeedWorker
from tests.adapters.small import ME, as_they_are

# numpy.random.SeedSequence(seed, spawn_key=(3, epoch, rank, worker)).generate_state(1, uint64)
KNOWN = [
    ((0, 0, 0, 0), 1279844757562384118),
    ((0, 1, 0, 0), 5769086271167671633),
    ((1, 0, 0, 0), 12163234266317937517),
    ((0, 0, 1, 0), 16945579917817379851),
    ((0, 0, 0, 1), 16802019917480825825),
    ((42, 7, 3, 2), 5980258246752106561),
    ((2**128 - 1, 2**32 - 1, 2**32 - 1, 2**32 - 1), 14984126036409084438),
]

PLAN = ip.Plan(ip.Shuffle(24, seed=7), world_size=2, batch_size=2, sub_epochs=2)


class Drawn(Dataset[Any]):
    """A dataset that says what its process drew, and what that was seeded with."""

    def __len__(self) -> int:
        return 24

    def __getitem__(self, index: int) -> Any:
        drawn = random.random(), np.random.random(), torch.rand(()).item()  # noqa: NPY002, S311
        return index, drawn, torch.initial_seed()


def seeded_by(reads: Any, kind: Any = DataLoader, **options: Any) -> Any:
    """Return a loader with one worker, which is seeded for the pass that a sampler reads."""
    if isinstance(reads, PlanSampler):
        options |= {"sampler": reads, "batch_size": 2}
    else:
        options["batch_sampler"] = reads
    start = SeedWorker(reads.run)
    return kind(Drawn(), worker_init_fn=start, num_workers=1, collate_fn=as_they_are, **options)


@pytest.mark.parametrize(("numbers", "expected"), KNOWN)
def test_worker_seeds_are_frozen(numbers: tuple[int, int, int, int], expected: int) -> None:
    """A worker's seed is the same on every machine and in every version."""
    seed, epoch, rank, worker = numbers
    assert expected == ip.worker_seed(seed, epoch=epoch, rank=rank, worker=worker)


def test_worker_seeds_are_distinct() -> None:
    """No two of any seeds, epochs, ranks and workers share a seed, as they would if added up."""
    numbers = itertools.product(range(6), repeat=4)
    seeds = [ip.worker_seed(s, epoch=e, rank=r, worker=w) for s, e, r, w in numbers]
    assert 6**4 == len(set(seeds))


def test_each_worker_draws_its_own_stream() -> None:
    """Workers of all ranks and passes are seeded apart; what they read stays the plan's."""
    seen: dict[int, list[Any]] = {}
    for rank in range(2):
        loader = PlanLoader(
            Drawn(), PLAN, rank=rank, world_size=2, num_workers=2, collate_fn=as_they_are
        )
        for number in range(3):
            epoch, sub_epoch = divmod(number, 2)
            loader.set_epoch(number)
            batches = list(loader)
            expected = [b.tolist() for b in PLAN.batches(epoch, sub_epoch, rank=rank)]
            assert expected == [[sample[0] for sample in batch] for batch in batches]
            for step, batch in enumerate(batches):
                worker = step % 2
                value = ip.worker_seed(7, epoch=number, rank=rank, worker=worker)
                for _, drawn, said in batch:
                    assert value == said
                    seen.setdefault(value, []).append(drawn)
    assert 2 * 3 * 2 == len(seen)
    draws = [number for stream in seen.values() for drawn in stream for number in drawn]
    assert len(draws) == len(set(draws))
    for value, stream in seen.items():
        assert random.Random(value).random() == stream[0][0]  # noqa: S311
        assert np.random.RandomState(value % 2**32).random_sample() == stream[0][1]
        generator = torch.Generator().manual_seed(value)
        assert torch.rand((), generator=generator).item() == stream[0][2]


@pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")  # torchdata calls it
@pytest.mark.parametrize(
    ("kind", "sampler", "start"),
    [
        (DataLoader, PlanBatchSampler, "fork"),
        (StatefulDataLoader, PlanBatchSampler, "fork"),
        (DataLoader, PlanSampler, "fork"),
        (DataLoader, PlanBatchSampler, "spawn"),
    ],
)
def test_passes_that_follow_each_other_have_streams_of_their_own(
    kind: Any, sampler: Any, start: str
) -> None:
    """Workers of a loop that sets no epoch are seeded for the pass that they read."""
    plan = PLAN.replace(remainder="drop")
    loader = seeded_by(sampler(plan, **ME), kind, multiprocessing_context=start)
    for number in range(3 if start == "fork" else 2):  # a spawned worker takes seconds to start
        index, _, said = next(iter(list(loader)))[0]
        assert index == plan.batch(*divmod(number, 2), step=0, rank=1)[0]
        value = ip.worker_seed(7, epoch=number, rank=1, worker=0)
        assert value == said


@pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")  # torchdata calls it
@pytest.mark.parametrize("named", [False, True])
def test_a_stateful_loader_that_goes_on_seeds_for_the_pass_that_is_named(named: bool) -> None:
    """Workers start before torchdata loads the state: without a name, they know of pass 0 alone."""
    loader = seeded_by(PlanBatchSampler(PLAN, **ME), StatefulDataLoader)
    for _ in range(3):
        batches = iter(loader)
        next(batches)
        next(batches)
        state = loader.state_dict()
        list(batches)
    loader = seeded_by(PlanBatchSampler(PLAN, **ME), StatefulDataLoader)
    loader.load_state_dict(state)
    if named:
        loader.batch_sampler.set_epoch(2)
    first, *_ = list(loader)
    assert PLAN.batch(1, 0, step=2, rank=1).tolist() == [sample[0] for sample in first]
    value = ip.worker_seed(7, epoch=2 if named else 0, rank=1, worker=0)
    assert value == first[0][2]
    if named:
        loader.batch_sampler.set_epoch(3)
    value = ip.worker_seed(7, epoch=3, rank=1, worker=0)
    assert value == next(iter(list(loader)))[0][2]


def seeded(loader: Any) -> int:
    """Seed this process as worker 0 of its rank, and return the seed."""
    loader.worker_init_fn(0)
    return torch.initial_seed()


def test_main_process_is_seeded_as_worker_0() -> None:
    """Before a pass, and in its middle, a loader's seed is of that pass, set or not."""
    states = random.getstate(), np.random.get_state(), torch.get_rng_state()  # noqa: NPY002
    loader = PlanLoader(Drawn(), PLAN, **ME, collate_fn=as_they_are)
    for number, named in ((0, None), (1, None), (3, 3), (4, None)):  # 3 is sub-epoch 1 of epoch 1
        if named is not None:
            loader.set_epoch(named)
        expected = ip.worker_seed(7, epoch=number, rank=1, worker=0)
        assert expected == seeded(loader)
        batches = iter(loader)
        assert expected == next(batches)[0][2]
        assert expected == seeded(loader)
        list(batches)
    random.setstate(states[0])
    np.random.set_state(states[1])  # noqa: NPY002
    torch.set_rng_state(states[2])


def test_a_spawned_worker_has_the_rank_of_the_process_that_started_it() -> None:
    """It has no process group to ask, nor, without torchrun, an environment that tells."""
    torch.distributed.init_process_group("fake", store=FakeStore(), rank=1, world_size=2)
    try:
        sampler = PlanBatchSampler(PLAN.replace(world_size=None), compare=False)
        loader = seeded_by(sampler, multiprocessing_context="spawn")
        _, _, said = next(iter(list(loader)))[0]
    finally:
        torch.distributed.destroy_process_group()
    value = ip.worker_seed(7, epoch=0, rank=1, worker=0)
    assert value == said
