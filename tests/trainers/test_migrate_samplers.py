"""What the pages on coming from other samplers say, where it takes ranks or time to show."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, DistributedSampler, WeightedRandomSampler
from torchdata.stateful_dataloader import StatefulDataLoader
from torchdata.stateful_dataloader.sampler import StatefulDistributedSampler

import indexplan as ip
from indexplan_torch import PlanBatchSampler, PlanLoader
from tests.test_docs import check_page
from tests.trainers.ranks import run_ranks

IMPORTED_BY_RANKS = ("accelerate", "transformers.trainer")


@pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")  # torchdata calls it
def test_page_runs(tmp_path: Path) -> None:
    """The codes before and after run, and print what the page shows."""
    check_page("migrate/pytorch", tmp_path)


def torchs_order(seed: int, epoch: int, **options: Any) -> list[int]:
    """The samples that rank 0 of 3 reads of 1,000."""
    sampler: Any = DistributedSampler(range(1000), 3, 0, seed=seed, **options)  # type: ignore[arg-type]
    sampler.set_epoch(epoch)
    return list(sampler)


def test_distributed_sampler_as_the_page_says() -> None:
    """It repeats samples, adds seed and epoch, and repeats an epoch without set_epoch."""
    samplers: list[Any] = [DistributedSampler(range(10), 4, rank) for rank in range(4)]  # type: ignore[arg-type]
    read = np.bincount([index for sampler in samplers for index in sampler])
    assert [1] * 8 + [2] * 2 == sorted(read)
    plan = ip.Plan(ip.Shuffle(10, seed=0), world_size=4, batch_size=2)
    assert [[2, 1], [1, 2], [1, 1], [1, 1]] == [
        plan.batch_sizes(epoch=0, rank=rank).tolist() for rank in range(4)
    ]
    assert torchs_order(5, 1) == torchs_order(6, 0)
    ours = [ip.Shuffle(1000, seed=seed).take(epoch, 0, 1000) for seed, epoch in ((5, 1), (6, 0))]
    assert (ours[0] != ours[1]).any()
    assert torchs_order(0, 0) == torchs_order(0, 0)
    loader = PlanLoader(torch.arange(10), plan.replace(world_size=1))
    assert torch.cat(list(loader)).tolist() != torch.cat(list(loader)).tolist()
    assert 333 == len(torchs_order(0, 0, drop_last=True))
    dropping = ip.Plan(ip.Shuffle(1000), world_size=3, batch_size=2, remainder="drop")
    assert 996 == dropping.account(epoch=0).num_read  # whole batches on all ranks


@pytest.mark.parametrize(("old", "new", "reads", "samples"), [(4, 3, 106, 100), (3, 4, 96, 96)])
def test_skipping_on_other_ranks_reads_twice_or_never(
    old: int, new: int, reads: int, samples: int
) -> None:
    """Two steps of two samples by some ranks, and the rest by others, which skip two steps."""

    def batches(world_size: int) -> list[list[int]]:
        read = []
        for rank in range(world_size):
            sampler: Any = DistributedSampler(range(100), world_size, rank, seed=0)  # type: ignore[arg-type]
            indices = list(sampler)
            read.append([indices[:4], indices[4:]])
        return read

    read = sum([first for first, _ in batches(old)] + [rest for _, rest in batches(new)], [])
    assert (reads, samples) == (len(read), len(set(read)))


def test_weighted_random_sampler_as_the_page_says() -> None:
    """Independent draws vary, leave samples out, and are the same on ranks with the same seed."""
    labels = np.array([0] * 900 + [1] * 90 + [2] * 10)
    weights = 1 / np.bincount(labels)[labels]
    rare = np.flatnonzero(labels == 2)  # each expected 33.3 times in an epoch of 999

    def sampler(given: Any, num: int, **options: Any) -> WeightedRandomSampler:
        generator = torch.Generator().manual_seed(7)
        return WeightedRandomSampler(given, num, generator=generator, **options)

    drawn = sampler(weights, 999)
    counts = np.array([np.bincount(list(drawn), minlength=1000)[rare] for _ in range(100)])
    assert counts.min() < 25
    assert counts.max() > 42
    order = ip.Weighted(weights, epoch_size=999, seed=7)
    ours = np.array([order.count(epoch, rare) for epoch in range(100)])
    assert (33, 34) == (ours.min(), ours.max())
    left_out = 1000 - len(set(sampler(np.ones(1000), 1000)))
    assert 330 < left_out < 400
    assert list(range(1000)) == sorted(ip.Weighted(np.ones(1000)).take(0, 0, 1000))
    assert list(sampler(weights, 999)) == list(sampler(weights, 999))
    plan = ip.Plan(order, world_size=4, batch_size=32)
    shares = np.concatenate([plan.indices(epoch=0, rank=rank) for rank in range(4)])
    assert order.count(0, range(1000)).tolist() == np.bincount(shares, minlength=1000).tolist()
    assert not hasattr(drawn, "state_dict")


def test_max_repeats_keeps_proportions() -> None:
    """A weight of 2 among weights of 1, two reads without replacement, in 2,000 epochs."""
    few = WeightedRandomSampler([1, 1, 2], 2, replacement=False)
    read = sum(np.bincount(list(few), minlength=3) for _ in range(2000)) / 2000
    assert read[2] < 0.88  # 1.5 times as often as the others
    once = ip.Weighted([1, 1, 2], epoch_size=2, max_repeats=1)
    read = sum(once.count(epoch, range(3)) for epoch in range(2000)) / 2000
    assert read[2] == 1
    assert abs(read[0] - 0.5) < 0.05  # twice as often


def torchdatas_loader(rank: int, world_size: int, epoch: int, state: Any = None) -> Any:
    """A StatefulDataLoader of 103 samples, as torchdata wants it: loaded, then set to the epoch."""
    sampler = StatefulDistributedSampler(torch.arange(103), world_size, rank, seed=0)  # type: ignore[arg-type]
    loader: Any = StatefulDataLoader(torch.arange(103), batch_size=4, sampler=sampler)  # type: ignore[arg-type]
    if state is not None:
        loader.load_state_dict(state)
    sampler.set_epoch(epoch)
    return loader


def of_plan(rank: int, world_size: int, epoch: int, state: Any = None) -> Any:
    """The same by a plan, whose state has the epoch."""
    plan = ip.Plan(ip.Shuffle(103, seed=0), batch_size=4)
    loader = PlanLoader(torch.arange(103), plan, rank=rank, world_size=world_size)
    if state is not None:
        loader.load_state_dict(state)
    loader.set_epoch(epoch)
    return loader


def around_a_plan(rank: int, world_size: int, epoch: int, state: Any = None) -> Any:
    """The loader of torchdata with a plan's batches."""
    plan = ip.Plan(ip.Shuffle(103, seed=0), batch_size=4)
    sampler = PlanBatchSampler(plan, rank=rank, world_size=world_size)
    sampler.set_epoch(epoch)
    loader: Any = StatefulDataLoader(torch.arange(103), batch_sampler=sampler)  # type: ignore[arg-type]
    if state is not None:
        loader.load_state_dict(state)
    return loader


@pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")
@pytest.mark.parametrize(
    ("make", "world_size", "expected"),
    [
        (torchdatas_loader, 2, (104, 103)),
        (torchdatas_loader, 3, (85, 83)),
        (of_plan, 2, (103, 103)),
        (of_plan, 3, (103, 103)),
        (around_a_plan, 3, (103, 103)),
    ],
)
def test_states_of_two_ranks_on_others(make: Any, world_size: int, expected: Any) -> None:
    """Two ranks stop after 5 steps of an epoch; as many as asked read the rest of it."""
    loaders = [make(rank, 2, 1) for rank in range(2)]
    read = [next(batches) for batches in map(iter, loaders) for _ in range(5)]
    states = [loader.state_dict() for loader in loaders]
    for rank in range(world_size):
        read += list(make(rank, world_size, 1, states[0]))
    indices = torch.cat(read).tolist()
    assert expected == (len(indices), len(set(indices)))
    if make is of_plan:
        assert states[0] == states[1]
        assert 1 == states[0]["cursor"]["epoch"]


@pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")
def test_states_of_an_epochs_end() -> None:
    """With torchdata the next pass is empty, though an epoch is set, and no state has one."""
    left = {}
    for make in (torchdatas_loader, of_plan):
        loader = make(0, 1, 0)
        for _ in loader:
            pass
        left[make] = sum(len(batch) for batch in make(0, 1, 1, loader.state_dict()))
    assert {torchdatas_loader: 0, of_plan: 103} == left
    sampler: Any = StatefulDistributedSampler(torch.arange(103), 1, 0)  # type: ignore[arg-type]
    sampler.set_epoch(1)
    assert {"yielded": 0} == sampler.state_dict()


def right_and_counted() -> dict[str, list[int]]:
    """Answers that are right, and all answers, of ten samples: summed over the ranks of a group."""
    import torch.distributed as dist

    dist.init_process_group("gloo")
    dataset = torch.arange(10)
    sampler: Any = DistributedSampler(dataset, shuffle=False)
    loaders = {
        "sampler": DataLoader(dataset, batch_size=2, sampler=sampler),
        "plan": PlanLoader(dataset, ip.Plan(ip.Sequential(10), batch_size=2)),
    }
    seen = {}
    for name, loader in loaders.items():
        metric = torch.zeros(2, dtype=torch.int64)
        for batch in loader:
            metric += torch.tensor([(batch == 0).sum(), len(batch)])  # a model that knows sample 0
        dist.all_reduce(metric)
        seen[name] = metric.tolist()
    dist.barrier()
    dist.destroy_process_group()
    return seen


def test_evaluation_counts_repeated_samples_twice() -> None:
    """Four ranks evaluate ten samples: DistributedSampler's metric has samples 0 and 1 twice."""
    for seen in run_ranks(f"{__name__}:right_and_counted", 4):
        assert {"sampler": [2, 12], "plan": [1, 10]} == seen


def test_weighted_random_sampler_ends_at_2_to_the_24() -> None:
    """WeightedRandomSampler draws from at most 2**24 weights; Weighted from more."""
    weights = np.ones(2**24 + 1)
    with pytest.raises(RuntimeError, match=r"number of categories cannot exceed 2\^24"):
        next(iter(WeightedRandomSampler(weights, 1)))  # type: ignore[arg-type]
    order = ip.Weighted(weights)
    assert 2**24 + 1 == order.epoch_size
    assert [1, 1] == order.count(0, [0, 2**24]).tolist()


def of_workers(loader: Any, state: dict[str, Any]) -> list[list[int]]:
    """Load a state and return the batches that are left."""
    loader.load_state_dict(state)
    return [batch.tolist() for batch in loader]


@pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")
def test_states_under_other_numbers_of_workers(caplog: pytest.LogCaptureFixture) -> None:
    """States of torchdata need the workers that they were saved with; PlanLoader's do not.

    Nor does torchdata promise anything of states with in_order=False, which PlanLoader refuses.
    """
    dataset = torch.arange(40)
    plan = ip.Plan(ip.Sequential(40), batch_size=4)
    expected = [list(range(start, start + 4)) for start in range(8, 40, 4)]

    def torchdatas(num_workers: int, **options: Any) -> Any:
        context = "forkserver" if num_workers else None
        options |= {"num_workers": num_workers, "multiprocessing_context": context}
        return StatefulDataLoader(dataset, batch_size=4, **options)

    def ours(num_workers: int) -> Any:
        context = "forkserver" if num_workers else None
        return PlanLoader(dataset, plan, num_workers=num_workers, multiprocessing_context=context)

    states = {}
    for kind in (torchdatas, ours):
        loader = kind(0)
        batches = iter(loader)
        next(batches), next(batches)
        states[kind] = loader.state_dict()
    assert expected == of_workers(torchdatas(0), states[torchdatas])
    with pytest.raises(AssertionError, match="expected for multiprocess dataloader"):
        of_workers(torchdatas(1), states[torchdatas])
    assert expected == of_workers(ours(0), states[ours]) == of_workers(ours(1), states[ours])
    torchdatas(1, in_order=False)
    assert "does not give any guarantees for state management" in caplog.text
    with pytest.raises(ip.IndexPlanError, match="in_order must be True"):
        PlanLoader(dataset, plan, in_order=False)


class Asked(torch.utils.data.Dataset[int]):
    """A dataset that counts what it is asked for, and has a state."""

    def __init__(self) -> None:
        self.num_asked = 0

    def __len__(self) -> int:
        return 40

    def __getitem__(self, index: int) -> int:
        self.num_asked += 1
        return index

    def state_dict(self) -> dict[str, int]:
        return {"num_asked": self.num_asked}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.num_asked = state["num_asked"]


@pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")
def test_states_of_datasets() -> None:
    """StatefulDataLoader keeps a dataset's state, also around a plan; PlanLoader keeps none."""
    plan = ip.Plan(ip.Sequential(40), batch_size=4)
    around = StatefulDataLoader(Asked(), batch_sampler=PlanBatchSampler(plan))
    alone = PlanLoader(Asked(), plan)
    for loader in (around, alone):
        next(iter(loader))
        assert loader.dataset.num_asked == 4
    again = StatefulDataLoader(Asked(), batch_sampler=PlanBatchSampler(plan))
    again.load_state_dict(around.state_dict())
    next(iter(again))
    assert 8 == again.dataset.num_asked
    assert "num_asked" not in str(alone.state_dict())


def accelerates_batches(
    samples: int = 10,
    size: int = 2,
    ranks: int = 4,
    seed: int = 0,
    epoch: int = 0,
    skip: int = 0,
    **options: Any,
) -> list[list[list[int]]]:
    """The batches that Accelerate gives to each of some ranks, after it has skipped some."""
    from accelerate.data_loader import prepare_data_loader, skip_first_batches

    parts = []
    shuffle = options.pop("shuffle", False)
    for rank in range(ranks):
        loader: Any = DataLoader(torch.arange(samples), batch_size=size, shuffle=shuffle)  # type: ignore[arg-type]
        given = {"num_processes": ranks, "process_index": rank, "data_seed": seed, **options}
        loader = prepare_data_loader(loader, **given)
        loader.set_epoch(epoch)
        parts.append([batch.tolist() for batch in skip_first_batches(loader, skip)])
    return parts


def test_accelerate_as_the_page_says() -> None:
    """It repeats samples at the end, or has unequal steps; it skips by drawing, in each pass."""
    from accelerate import Accelerator
    from accelerate.data_loader import skip_first_batches
    from accelerate.utils import set_seed

    assert [[2, 3], [0, 1]] == accelerates_batches()[1]
    uneven = accelerates_batches(even_batches=False)
    assert [2, 1, 1, 1] == [len(part) for part in uneven]
    with pytest.raises(ValueError, match="round multiple"):
        accelerates_batches(size=10, split_batches=True)
    shuffled = {"samples": 103, "shuffle": True, "use_seedable_sampler": True}
    assert accelerates_batches(seed=5, epoch=1, **shuffled) == accelerates_batches(
        seed=6, epoch=0, **shuffled
    )

    def unseeded(epoch: int) -> list[list[list[int]]]:
        set_seed(0)
        return accelerates_batches(samples=103, ranks=1, epoch=epoch, shuffle=True)

    assert unseeded(0) == unseeded(1)  # set_epoch has no effect
    four = [batch for part in accelerates_batches(**shuffled) for batch in part[:2]]
    three = [batch for part in accelerates_batches(ranks=3, skip=2, **shuffled) for batch in part]
    read = sum(four + three, [])
    assert (112, 103) == (len(read), len(set(read)))

    class Counted(torch.utils.data.SequentialSampler):
        drawn = 0

        def __iter__(self) -> Any:
            for index in super().__iter__():
                Counted.drawn += 1
                yield index

    dataset: Any = torch.arange(103)
    loader: Any = DataLoader(dataset, batch_size=4, sampler=Counted(dataset))
    skipping = skip_first_batches(Accelerator(cpu=True).prepare(loader), 25)
    assert (1, 103) == (len(list(skipping)), Counted.drawn)
    assert 1 == len(list(skipping))  # in the next pass too


@pytest.mark.parametrize(("ours", "samples"), [(False, 87), (True, 103)])
def test_a_shuffled_epoch_that_accelerate_resumes(ours: bool, samples: int, tmp_path: Path) -> None:
    """Without the seedable sampler, what is left is read in another order."""
    from accelerate import Accelerator
    from accelerate.utils import set_seed

    from indexplan_torch.accelerate import prepare

    def train(stop: int | None) -> list[int]:
        """Read an epoch and a part of the second; or load the state and read the rest of that."""
        set_seed(0)
        accelerator = Accelerator(cpu=True)
        dataset: Any = torch.arange(103)
        plan = ip.Plan(ip.Shuffle(103, seed=0), batch_size=4)
        loader: Any = PlanLoader(dataset, plan) if ours else DataLoader(dataset, 4, shuffle=True)
        loader = prepare(accelerator, loader) if ours else accelerator.prepare(loader)
        if stop is None:
            accelerator.load_state(str(tmp_path))
        read: list[int] = []
        for epoch in range(0 if stop else 1, 2):
            loader.set_epoch(epoch)
            skipping = not stop and not ours
            batches = accelerator.skip_first_batches(loader, 5) if skipping else loader
            for step, batch in enumerate(batches, start=1):
                read += batch.tolist()
                if (epoch, step) == (1, stop):
                    accelerator.save_state(str(tmp_path))
                    return read[103:]
        return read

    read = train(5) + train(None)
    assert (103, samples) == (len(read), len(set(read)))


def dispatched() -> dict[str, int]:
    """How many samples this rank reads from its dataset, where Accelerate dispatches batches."""
    from accelerate import Accelerator
    from accelerate.utils import DataLoaderConfiguration

    from indexplan_torch.accelerate import prepare

    accelerator = Accelerator(dataloader_config=DataLoaderConfiguration(dispatch_batches=True))
    seen = {}
    theirs = accelerator.prepare(DataLoader(Asked(), batch_size=4))
    ours = prepare(accelerator, PlanLoader(Asked(), ip.Plan(ip.Sequential(40), batch_size=4)))
    for name, loader in (("theirs", theirs), ("ours", ours)):
        seen[f"{name}, received"] = sum(len(batch) for batch in loader)
        seen[f"{name}, read"] = loader.dataset.num_asked
    accelerator.wait_for_everyone()
    accelerator.end_training()
    return seen


def test_each_rank_reads_its_own_batches() -> None:
    """Under dispatch_batches=True Accelerate reads all on the main process; a plan does not."""
    ranks = run_ranks(f"{__name__}:dispatched", 2, ACCELERATE_USE_CPU="true")
    each = {"theirs, received": 20, "ours, received": 20, "ours, read": 20}
    assert [each | {"theirs, read": 40}, each | {"theirs, read": 0}] == ranks


def of_epoch_1(folder: str, *, by_plan: bool) -> list[int]:
    """The samples of the second epoch of a Trainer that groups by length, resumed after 5 steps."""
    from transformers import Trainer, TrainingArguments

    from indexplan_torch.transformers import KeepState

    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 100, size=203)
    samples = [{"input_ids": [number] * length} for number, length in enumerate(lengths)]
    plan = ip.Plan(ip.LengthGrouped(lengths, batch_size=8, num_buckets=4), batch_size=1)

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.line = torch.nn.Linear(1, 1)
            self.seen: list[list[int]] = []

        def forward(self, numbers: torch.Tensor) -> dict[str, torch.Tensor]:
            self.seen.append(numbers.tolist())
            return {"loss": self.line(numbers[:, None].float()).mean()}

    def collate(batch: list[Any]) -> dict[str, torch.Tensor]:
        return {"numbers": torch.tensor([sample["input_ids"][0] for sample in batch])}

    class PlanTrainer(Trainer):
        def get_train_dataloader(self) -> Any:
            return PlanLoader(samples, plan, collate_fn=collate, keep_bins=False)

    def train(checkpoint: str | None) -> list[list[int]]:
        arguments = TrainingArguments(
            folder,
            train_sampling_strategy="group_by_length",
            per_device_train_batch_size=8,
            num_train_epochs=2,
            save_steps=31,  # of 26 steps an epoch
            use_cpu=True,
            report_to=[],
            remove_unused_columns=False,
        )
        kind = PlanTrainer if by_plan else Trainer
        trainer = kind(Model(), arguments, train_dataset=samples, data_collator=collate)
        if by_plan:
            trainer.add_callback(KeepState(trainer))
        trainer.train(resume_from_checkpoint=checkpoint)
        seen: list[list[int]] = trainer.model.seen
        return seen

    before, after = train(None), train(f"{folder}/checkpoint-31")
    assert (52, 21) == (len(before), len(after))
    return sum(before[26:31] + after, [])


def test_grouping_by_length_resumes_in_another_order(tmp_path: Path) -> None:
    """Resumed inside its second epoch, LengthGroupedSampler leaves samples out; a plan does not."""
    read = of_epoch_1(str(tmp_path / "sampler"), by_plan=False)
    assert 203 == len(read)
    assert len(set(read)) < 190
    assert list(range(203)) == sorted(of_epoch_1(str(tmp_path / "plan"), by_plan=True))
