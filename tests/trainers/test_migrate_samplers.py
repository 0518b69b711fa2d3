"""What the pages on coming from other samplers say, where it takes ranks or time to show."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, DistributedSampler, WeightedRandomSampler
from torchdata.stateful_dataloader import StatefulDataLoader

import indexplan as ip
from indexplan_torch import PlanBatchSampler, PlanLoader
from tests.test_docs import check_page
from tests.trainers.ranks import run_ranks

IMPORTED_BY_RANKS = ("accelerate", "transformers.trainer")

PAGES = ("accelerate", "torchdata")


@pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")  # torchdata calls it
@pytest.mark.parametrize("page", PAGES)
def test_page_runs(page: str, tmp_path: Path) -> None:
    """Both codes of a page run, and what it says of them holds."""
    check_page(f"migrate/{page}", tmp_path)


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


def accelerate_leg(folder: str, stop: int | None) -> list[int]:
    """What this rank reads: of a run's first steps, saved in a folder, or of what is left of it."""
    from accelerate import Accelerator

    from indexplan_torch.accelerate import prepare

    accelerator = Accelerator()
    plan = ip.Plan(ip.Shuffle(103, seed=5), batch_size=4)
    loader = prepare(accelerator, PlanLoader(torch.arange(103), plan))
    if stop is None:
        accelerator.load_state(folder)
    read = []
    for step, batch in enumerate(loader, start=1):
        read += batch.tolist()
        if step == stop:
            accelerator.save_state(folder)
            break
    accelerator.wait_for_everyone()
    accelerator.end_training()
    return read


def test_accelerate_goes_on_with_other_ranks(tmp_path: Path) -> None:
    """What save_state wrote on two ranks, load_state reads on three: each sample is read once."""
    function, on_cpu = f"{__name__}:accelerate_leg", {"ACCELERATE_USE_CPU": "true"}
    first = run_ranks(function, 2, str(tmp_path), 5, **on_cpu)
    rest = run_ranks(function, 3, str(tmp_path), None, **on_cpu)
    assert 40 == len(sum(first, []))
    assert list(range(103)) == sorted(sum(first + rest, []))


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
