"""The torch adapters in one process: what datasets are asked for, ranks, other processes."""

import pickle
import warnings
from itertools import islice
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader

import indexplan as ip
from indexplan.partition.remainders import REMAINDERS
from indexplan_torch import PlanBatchSampler, PlanLoader, PlanSampler
from indexplan_torch.ranks import discover
from tests.adapters.small import ME, PLAN, Identity, as_they_are, loader_of, of_plan


class Arrays(Identity):
    """A dataset that is asked for a whole batch at once."""

    def __getitems__(self, indices: Any) -> Any:
        return type(indices).__name__, indices.dtype.name, indices


# --- what the dataset is asked for


def test_arrays_for_datasets_that_take_them() -> None:
    """`as_array=True` asks for whole int64 arrays, which the dataset may keep."""
    batches = list(loader_of(PLAN, Arrays(), as_array=True))
    assert {("ndarray", "int64")} == {batch[:2] for batch in batches}
    assert of_plan(PLAN, 0) == [indices.tolist() for _, _, indices in batches]


def test_lists_hold_plain_ints() -> None:
    """By default a dataset is asked for Python ints: any sequence takes them."""
    batches = list(loader_of(PLAN, num_workers=0))
    assert {int} == {type(index) for batch in batches for index in batch}
    words = [f"word {index}" for index in range(103)]
    expected = [words[index] for index in of_plan(PLAN, 0)[0]]
    assert expected == next(iter(PlanLoader(words, PLAN, **ME)))


def test_flat_sampler_in_a_dataloader() -> None:
    """`DataLoader(batch_size=...)` cuts the plan's batches out of a `PlanSampler`."""
    for remainder in ("drop", "pad", "carry"):
        plan = PLAN.replace(remainder=remainder)
        sampler = PlanSampler(plan, **ME)
        loader = DataLoader(Identity(), sampler=sampler, batch_size=5)
        for number in range(4):
            assert len(of_plan(plan, number)) == len(loader) or number
            batches = [batch.tolist() for batch in loader]
            assert of_plan(plan, number) == batches
            assert 5 * len(batches) == len(sampler)


# --- ranks


def test_ranks_are_discovered_at_first_use(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loader made before the ranks are settled takes them from the environment afterwards."""
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    assert (0, 1) == discover()
    plan = PLAN.replace(world_size=None)
    loader = PlanLoader(Identity(), plan, collate_fn=as_they_are)
    sampler = PlanBatchSampler(plan)
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "1")
    assert (1, 2) == discover()
    assert (1, 2) == (loader.sampler.rank, loader.sampler.num_replicas)
    with pytest.warns(UserWarning, match="process group"):
        assert of_plan(PLAN, 0) == list(loader)
    with pytest.warns(UserWarning, match="process group"):
        assert of_plan(PLAN, 0) == list(sampler)


@pytest.mark.filterwarnings("ignore:a process group must run")
@pytest.mark.parametrize(
    ("num_read", "evaluation"), [(1, False), (7, False), (None, False), (None, True)]
)
def test_a_state_counts_by_the_ranks_that_read(
    num_read: int | None, evaluation: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is the same once the process group has ended, inside a pass and after its last step."""
    plan = ip.Plan(ip.Shuffle(1003, seed=3), batch_size=8)
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "1")
    loader = PlanLoader(torch.arange(1003), plan, evaluation=evaluation)
    for _ in islice(loader, num_read):
        pass
    state, size = loader.state_dict(), loader.step_size
    monkeypatch.delenv("WORLD_SIZE")
    monkeypatch.delenv("RANK")
    assert state == loader.state_dict()
    assert size == loader.step_size
    loader.set_epoch(1)  # the next pass is that of the ranks that are left
    assert len(loader) == 126


@pytest.mark.parametrize("make", [loader_of, PlanBatchSampler, PlanSampler])
def test_ranks_without_a_process_group_warn_once(
    make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ranks that the environment alone tells cannot wait for each other: said in the first pass."""
    plan = ip.Plan(ip.Shuffle(24), batch_size=3, remainder="drop")
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "1")
    reads = make(plan, rank=None, world_size=None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            for _ in reads:
                pass
    assert [
        "a process group must run where WORLD_SIZE=2 processes read a plan, or one of them may "
        "load what another has saved at the end; got none; add "
        "torch.distributed.init_process_group() before the checkpoint is looked for, or pass "
        "rank= and world_size="
    ] == [str(each.message) for each in caught]


def test_explicit_ranks_win(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given ranks are those of the data-parallel group, whatever the environment counts."""
    monkeypatch.setenv("WORLD_SIZE", "8")
    monkeypatch.setenv("RANK", "5")
    assert (1, 2) == discover(1, 2)
    assert of_plan(PLAN, 0) == list(loader_of(PLAN)) == list(PlanBatchSampler(PLAN, **ME))


# --- processes


def test_loaders_pickle_with_what_they_stand_for() -> None:
    """A loader that travels to another process goes on there with its plan, pass and state."""
    loader = loader_of(PLAN)
    list(loader)
    state = loader.state_dict()
    copy = pickle.loads(pickle.dumps(loader))  # noqa: S301
    assert (state, 1) == (copy.state_dict(), copy.worker_init_fn.run.number + 1)
    assert of_plan(PLAN, 1) == list(copy)
    assert copy.run is copy.worker_init_fn.run is copy.batch_sampler.run


def test_an_item_that_does_not_pickle_says_so() -> None:
    """A sampler that travelled without its item refuses to serve something else."""
    sampler = PlanBatchSampler(PLAN, item=lambda index, _: index, **ME)
    copy = pickle.loads(pickle.dumps(sampler))  # noqa: S301
    index = of_plan(PLAN, 0)[0][0]
    message = (
        "item must pickle to be called in a spawned process; got one that does not, for index "
        f"{index}; define it at the top of a module"
    )
    with pytest.raises(ip.IndexPlanError) as caught:
        next(iter(copy))
    assert message == str(caught.value)


@pytest.mark.parametrize("remainder", REMAINDERS)
@pytest.mark.parametrize("num_workers", [0, 2])
def test_loader_tells_its_step_and_its_size(remainder: str, num_workers: int) -> None:
    """Inside the loop, size and totals are of the batch received, and cursor stands after it."""
    column = [sample**2 for sample in range(103)]
    plan = ip.Plan(
        ip.Shuffle(103, seed=3), world_size=2, batch_size=5, sub_epochs=3, remainder=remainder
    )
    loader = loader_of(plan, rank=1, world_size=2, num_workers=num_workers)
    cursor = plan.cursor(0, 1, step=2).to_dict()
    loader.load_state_dict({"version": 1, "cursor": cursor, "pass": 1})
    for number in (1, 2):
        first = loader.cursor.step
        for step, _ in enumerate(loader, first):
            assert plan.step_size(0, number, step=step) == loader.step_size == loader.step_total()
            assert plan.step_total(column, 0, number, step=step) == loader.step_total(column)
            assert plan.cursor(0, number, step=step + 1) == loader.cursor


def test_a_mask_may_be_a_tensor() -> None:
    """Weights, labels and lists of samples may be, so a mask that keeps samples is one too."""
    mask = torch.arange(9) % 4 == 1
    assert ip.Subset(ip.Shuffle(2), mask.numpy(), 9) == ip.Subset(ip.Shuffle(2), mask, 9)
