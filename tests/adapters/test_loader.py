"""What a loader says of the batch in hand and of itself, its ranks, and its travels."""

from __future__ import annotations

import pickle
import warnings
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

import indexplan as ip
from indexplan.partition.remainders import REMAINDERS
from indexplan_fetch import ShardFile
from indexplan_torch import Bins, PlanBatchSampler, PlanLoader, PlanSampler, ShardedDataset
from indexplan_torch.megatron import PlanIterator
from indexplan_torch.ranks import discover
from tests.adapters.small import ME, PLAN, Identity, as_they_are, loader_of, of_plan, refused
from tests.orders.test_protocol import Leaning, aim
from tests.reports.test_draws import mixed_bins
from tests.support import bins as of_bins


class Arrays(Identity):
    """A dataset that is asked for a whole batch at once."""

    def __getitems__(self, indices: Any) -> Any:
        return type(indices).__name__, indices.dtype.name, indices


def test_datasets_are_asked_in_their_own_way() -> None:
    """By Python ints, as any sequence takes them, or by whole arrays, which it may keep.

    With batch_size=None torch hands a sampler's batches to the dataset as they are.
    """
    batches = list(loader_of(PLAN, Arrays(), as_array=True))
    assert {("ndarray", "int64")} == {batch[:2] for batch in batches}
    assert of_plan(PLAN, 0) == [indices.tolist() for _, _, indices in batches]
    assert {int} == {type(index) for batch in loader_of(PLAN) for index in batch}
    words = [f"word {index}" for index in range(103)]
    expected = [words[index] for index in of_plan(PLAN, 0)[0]]
    assert expected == next(iter(PlanLoader(words, PLAN, **ME)))
    alone = DataLoader(Identity(), sampler=PlanBatchSampler(PLAN, **ME), batch_size=None)
    assert of_plan(PLAN, 0) == list(alone)


# --- the batch in hand


@pytest.mark.parametrize("balance", [None, ip.Balance([1 + i * i % 7 for i in range(103)])])
@pytest.mark.parametrize("again", [1, 3])
@pytest.mark.parametrize("remainder", REMAINDERS)
@pytest.mark.parametrize("num_workers", [0, pytest.param(2, marks=pytest.mark.slow)])
def test_loader_tells_its_step_and_its_size(
    remainder: str, num_workers: int, again: int, balance: ip.Balance | None
) -> None:
    """Inside the loop, size, totals, groups and shares are of the batch received.

    Cursor and state stand after it, however far workers have drawn ahead, and however often a step
    is dealt; shares are the mean aims of the step's units.
    """
    column = [sample**2 for sample in range(103)]
    size = {"batch_size": 5} if again == 1 else {"global_batch_size": 10}
    order = Leaning(103)
    fields: dict[str, Any] = {"sub_epochs": 3, "remainder": remainder, "balance": balance}
    plan = ip.Plan(order, world_size=2, **size, **fields)
    loader = loader_of(plan, again=again, num_workers=num_workers)
    cursor = plan.cursor(0, 1, step=2).to_dict()
    loader.load_state_dict({"version": 1, "cursor": cursor, "pass": 1})
    for number in (1, 2):
        first = loader.cursor.step * again
        for place, batch in enumerate(loader, first):
            step, after = place // again, plan.cursor(0, number, step=(place + 1) // again)
            assert plan.step_size(0, number, step=step) == loader.step_size == loader.step_total()
            assert plan.step_total(column, 0, number, step=step) == loader.step_total(column)
            assert after == loader.cursor == ip.Cursor.from_dict(loader.state_dict()["cursor"])
            assert order.group_of(np.array(batch)).tolist() == loader.groups.tolist()
            begin = plan.cursor(0, number, step=step).position
            units = range(begin, begin + loader.step_size)
            low = np.mean([aim(*divmod(unit, 103)) for unit in units])
            assert {"low": low, "high": 1 - low} == pytest.approx(loader.shares)
        assert len(loader) == place + 1
    loader.set_epoch(9)
    assert plan.cursor(3, 0, step=0) == ip.Cursor.from_dict(loader.state_dict()["cursor"])


def test_of_a_mixture_of_bins_shares_are_of_bins() -> None:
    """What the step aims at are as many bins of each; its samples are in `groups`."""
    plan = ip.Plan(mixed_bins(), batch_size=4)
    loader = PlanLoader(range(140), plan, rank=0, world_size=1, keep_bins=False)
    found = ip.draws(plan.replace(world_size=1))
    for _ in loader:
        assert {"large": 0.5, "small": 0.5} == loader.shares
        assert [16, 4] == np.bincount(loader.groups).tolist()
    assert (found.counted, [20, 20]) == ("units", found.drawn.tolist())


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


# --- errors of workers


class Lost(Identity):
    """A dataset whose files are gone."""

    def __getitem__(self, index: Any) -> Any:
        raise ip.PlanFileError(f"file {index}", "must be there", "none", "restore it")


def unreadable(file: ShardFile) -> Any:
    """Open a file of another format."""
    raise RuntimeError(f"another format than {file.shard}")


@pytest.mark.parametrize("num_workers", [0, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("of", ["a dataset", "a DataLoader", "bins", "shards"])
def test_an_error_of_a_worker_is_that_of_a_loop(of: str, num_workers: int, tmp_path: Path) -> None:
    """Its type and sentence are the same; a worker's traceback is its cause."""
    order: ip.Order = ip.Sequential(12)
    data: Any = Lost(12)
    said = "file 0 must be there; got none; restore it"
    ours: dict[str, Any] = {"rank": 0, "world_size": 1}
    if of == "bins":
        order, data = of_bins.Bins(4), Bins(["word"] * 4)
        said = "the field 'input_ids' must hold numbers, to be joined; got 'word'; return dicts of "
    elif of == "shards":
        np.save(tmp_path / "a.npy", np.arange(12))
        shards = ip.shard_sizes(f"{tmp_path}/*.npy")
        order, kept = ip.ShardShuffle(shards), {"cache_dir": tmp_path / "cache"}
        data = ShardedDataset(shards, unreadable, **kept, cache_bytes=10**6)
        said = f"shard 0, {tmp_path}/a.npy, must be a file that open_shard opens"
    plan = ip.Plan(order, world_size=1, batch_size=2)
    if of == "a DataLoader":
        batches = PlanBatchSampler(plan, **ours)
        error = refused(DataLoader(data, batch_sampler=batches, num_workers=num_workers))
    else:
        error = refused(PlanLoader(data, plan, num_workers=num_workers, **ours))
    if of == "shards" and data._fetcher is not None:
        data._fetcher.stop()
    assert (ip.PlanFileError if data.__class__ is Lost else ip.IndexPlanError) is type(error)
    assert str(error).startswith(said)
    if num_workers:
        assert "in DataLoader worker process" in str(error.__cause__)


# --- travels, and words


def test_loaders_pickle_with_what_they_stand_for() -> None:
    """A loader that travels to another process goes on there with its plan, pass and state."""
    loader = loader_of(PLAN)
    list(loader)
    state = loader.state_dict()
    copy = pickle.loads(pickle.dumps(loader))  # noqa: S301
    assert (state, 1) == (copy.state_dict(), copy.worker_init_fn.run.number + 1)
    assert of_plan(PLAN, 1) == list(copy)
    assert copy.run is copy.worker_init_fn.run is copy.batch_sampler.run


OPEN = ip.Plan(ip.Shuffle(100, seed=3), batch_size=4, sub_epochs=2)
SAID = "Plan(Shuffle(num_samples=100, seed=3), batch_size=4, sub_epochs=2)"


def test_reprs_say_where_the_run_stands() -> None:
    """By batches that the loop has received, the pass that is set, or where it was resumed.

    Where the rank cannot be known, a repr says so; only reading raises it.
    """
    loader = PlanLoader(range(100), OPEN)
    assert f"<PlanLoader of {SAID}: rank 0 of 1, at epoch 0, sub-epoch 0, step 0>" == repr(loader)
    batches = iter(loader)
    next(batches), next(batches)
    assert repr(loader).endswith(": rank 0 of 1, at epoch 0, sub-epoch 0, step 2>")
    assert repr(loader.sampler) == repr(loader).replace("PlanLoader", "PlanView")
    assert repr(loader.batch_sampler) == repr(loader).replace("PlanLoader", "PlanBatchSampler")
    assert 11 == len(list(batches))
    loader.set_epoch(3)
    assert repr(loader).endswith(", at epoch 1, sub-epoch 1, step 0>")
    plan = OPEN.replace(sub_epochs=1, world_size=3)
    ours = {"rank": 1, "world_size": 3}
    resumed = PlanLoader(range(100), plan.resume(plan.cursor(1, step=2)), **ours)
    assert repr(resumed).endswith("step 2: rank 1 of 3, at epoch 1, step 2>")
    loaded = PlanLoader(range(100), plan, **ours)
    loaded.load_state_dict(resumed.state_dict())
    assert repr(loaded).endswith(": rank 1 of 3, at epoch 1, step 2>")
    sampler = PlanBatchSampler(plan)
    assert ": rank unknown, at epoch 0, step 0>" in repr(sampler)
    with pytest.raises(ip.IndexPlanError, match="world_size"):
        next(iter(sampler))
    sizes: dict[str, Any] = {"micro_batch_size": 2, "consumed_samples": 4}
    iterator = PlanIterator(range(10), ip.Sequential(10), **sizes, rank=0, world_size=2)
    said = "Plan(Sequential(num_samples=10), world_size=2, batch_size=2, remainder='carry')"
    assert f"<PlanIterator of {said}: rank 0 of 2, 4 samples consumed>" == repr(iterator)


def test_plans_and_readings_print_themselves() -> None:
    """A plan names what is not the default; what `explain` returns prints a line each."""
    assert SAID == str(OPEN) == repr(OPEN)
    assert OPEN == eval(SAID, vars(ip))  # noqa: S307 (our own)
    plan = OPEN.replace(world_size=2)
    said = "world_size=2, batch_size=4, sub_epochs=2) resumed at epoch 0, sub-epoch 1, step 3"
    assert str(plan.resume(plan.cursor(0, 1, step=3))).endswith(said)
    plan = ip.Plan(ip.Sequential(11), world_size=2, batch_size=2, remainder="drop")
    readings = ip.explain(plan, 3, [0, 1])
    assert readings == tuple(readings) == pickle.loads(pickle.dumps(readings))  # noqa: S301 (ours)
    assert "epoch 0, position 3: step 0, rank 1, slot 1\nepoch 1" in str(readings)
    assert f"<pre>{readings}</pre>" == readings._repr_html_()  # type: ignore[attr-defined]
