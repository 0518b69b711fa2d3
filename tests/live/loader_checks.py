"""LiveLoader with a real manager of torchft, alone in its quorum."""

from __future__ import annotations

import gc
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.distributed import TCPStore
from torchft import Manager, Optimizer, ProcessGroupGloo
from torchft.coordination import LighthouseServer

import indexplan as ip
from indexplan_torch import Bins, PlanLoader
from indexplan_torch.live import LiveLoader

# torchft logs by a deprecated method, and an error there makes every step fail
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")

PLAN = ip.Plan(ip.Shuffle(101, seed=3), global_batch_size=12)
DATASET = torch.arange(101)


@contextmanager
def alone(*, use_async_quorum: bool = True) -> Iterator[Any]:
    """Yield a manager that is alone in its quorum."""
    server = LighthouseServer(bind="127.0.0.1:0", min_replicas=1, join_timeout_ms=100)
    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    port = server.address().rsplit(":", 1)[1]
    manager = Manager(
        pg=ProcessGroupGloo(timeout=timedelta(seconds=5)),
        load_state_dict=print,  # which nobody calls in a quorum of one
        state_dict=dict,
        min_replica_size=1,
        use_async_quorum=use_async_quorum,
        replica_id="alone",
        rank=0,
        world_size=1,
        store_addr="127.0.0.1",
        store_port=store.port,
        lighthouse_addr=f"http://127.0.0.1:{port}",
        timeout=timedelta(seconds=20),
        quorum_timeout=timedelta(seconds=20),
        connect_timeout=timedelta(seconds=20),
        hostname="127.0.0.1",
    )
    try:
        yield manager
    finally:
        manager.shutdown()
        manager._checkpoint_transport._server.server_close()  # which torchft leaves open
        server.shutdown()


@pytest.fixture(autouse=True)
def _collected() -> Iterator[None]:
    """Collect managers now: collected by a worker that is forked later, they crash it."""
    yield
    gc.collect()


def optimizer_of(manager: Any) -> Any:
    """Return torchft's optimizer of a model."""
    return Optimizer(manager, torch.optim.SGD(torch.nn.Linear(1, 1).parameters(), lr=0.1))


@pytest.mark.parametrize("num_workers", [0, 2])
def test_a_world_that_stays_reads_as_a_loader_does(num_workers: int) -> None:
    """L5: to the bit, in two epochs, through torchft's optimizer; and from a cursor."""
    fixed = PlanLoader(DATASET, PLAN)
    expected = [batch.tolist() for _ in range(2) for batch in fixed]
    got, cursor = [], None
    for stop in (7, 100):
        with alone() as manager:
            plan = PLAN if cursor is None else PLAN.resume(cursor)
            loader = LiveLoader(DATASET, plan, manager, num_epochs=2, num_workers=num_workers)
            optimizer = optimizer_of(manager)
            for number, batch in enumerate(loader, 1):
                optimizer.zero_grad()
                optimizer.step()
                got.append(batch.tolist())
                if number == stop:
                    break
            cursor = loader.cursor
    assert expected == got
    assert 2 == loader.epoch


@pytest.mark.parametrize("num_workers", [0, 2])
def test_a_step_that_fails_is_read_again(num_workers: int) -> None:
    """L4, and no step more than those that failed: the same samples are dealt again."""
    expected = [batch.tolist() for batch in PlanLoader(DATASET, PLAN)]
    with alone() as manager:
        loader = LiveLoader(DATASET, PLAN, manager, num_epochs=1, num_workers=num_workers)
        optimizer = optimizer_of(manager)
        got = []
        for number, batch in enumerate(loader, 1):
            optimizer.zero_grad()
            if number % 3 == 0:
                manager.report_error(RuntimeError("a peer was lost"))
            optimizer.step()
            got.append(batch.tolist())
    fails = range(2, len(got), 3)
    assert [got[i] for i in fails] == [got[i + 1] for i in fails]
    assert expected == [batch for i, batch in enumerate(got) if i not in fails]


class Fetching(torch.utils.data.Dataset[int]):
    """Of each sample, the worker that has fetched it."""

    def __len__(self) -> int:
        return 101

    def __getitem__(self, index: int) -> int:
        return os.getpid()


def test_workers_stay_until_a_step_fails() -> None:
    """What they have fetched ahead is read while the groups stay, and thrown away where not."""
    with alone() as manager:
        loader = LiveLoader(Fetching(), PLAN, manager, num_workers=1)
        pids = []
        for batch in loader:
            pids.append(set(batch.tolist()))
            if len(pids) == 6:
                manager.report_error(RuntimeError("a peer was lost"))
            assert (len(pids) != 6) == manager.should_commit()
            if len(pids) == 10:  # the end of the epoch
                break
    assert [1, 1] == [len(set().union(*part)) for part in (pids[:6], pids[6:])]
    assert pids[0] != pids[6]


def noted(path: Path, state: dict[str, Any]) -> str:
    """Record what the run has read, where a checkpoint is saved, as docs/live.md says."""
    ledger = ip.Ledger(path)
    ledger.rewind(min(state["step"] - 1, ledger.step))  # torchft's first step reads nothing
    ledger.record(PLAN.replace(world_size=1), ip.Cursor.from_dict(state["cursor"]))
    return ledger.hash


def test_a_ledger_of_one_rank_is_written_at_checkpoints(tmp_path: Path) -> None:
    """It says what was read in the steps that count, through a stop between two checkpoints."""
    path, got = tmp_path / "run.ledger", list[list[int]]()
    saved: dict[str, Any] = {}
    for last in (11, 7):
        with alone() as manager:
            loader = LiveLoader(DATASET, PLAN, manager)
            if saved:
                ip.Ledger(path).rewind(saved["ledger"])
                manager.load_state_dict(saved["manager"])
                loader.load_state_dict(saved["state"])
                del got[saved["step"] :]
            optimizer = optimizer_of(manager)
            for number, batch in enumerate(loader, 1):
                optimizer.zero_grad()
                if number % 4 == 0:
                    manager.report_error(RuntimeError("a peer was lost"))
                optimizer.step()
                if number % 4:
                    got.append(batch.tolist())
                if number % 5 == 0:
                    state = loader.state_dict()
                    saved = {"state": state, "manager": manager.state_dict(), "step": len(got)}
                    saved["ledger"] = noted(path, state)
                    ledger = ip.Ledger(path)
                    steps = range(ledger.step)
                    assert got == [ledger.batch(step, rank=0).tolist() for step in steps]
                if number == last:
                    break
    assert ip.Ledger(path).verify().ok
    with alone() as manager:
        live = LiveLoader(DATASET, PLAN, manager)
        for state in (3, {}, {**saved["state"], "more": 1}):
            with pytest.raises(ip.IndexPlanError, match="a live run's state must be a dict"):
                live.load_state_dict(state)  # type: ignore[arg-type]


@pytest.mark.parametrize("use_async_quorum", [False, True])
def test_bins_and_groups_of_ranks(use_async_quorum: bool) -> None:
    """Bins, for the second of two ranks of a group."""
    plan = ip.Plan(ip.LengthGrouped([3, 5, 2, 8] * 9, batch_size=2), global_batch_size=6)
    alone_plan = plan.replace(world_size=2)
    with alone(use_async_quorum=use_async_quorum) as manager:
        ranks: dict[str, int] = {"inner_rank": 1, "inner_size": 2}
        loader = LiveLoader(Bins(range(36), list), plan, manager, collate_fn=list, **ranks)
        for step in alone_plan.steps(0):
            want = alone_plan.units(0, step=step, rank=1)
            assert [each.tolist() for each in want.bins] == next(iter(loader))
            assert manager.should_commit()
        assert f"<LiveLoader of {plan}: rank 1 of 2, at epoch 1, step 0>" == repr(loader)
        assert 1 == loader.epoch
        assert 1 + len(alone_plan.steps(0)) == manager.current_step()


def steps_of(loader: LiveLoader, manager: Any, stop: int) -> Iterator[list[int]]:
    """Yield what so many steps read, each through the next loop over the loader."""
    for _ in range(stop):
        batch = next(iter(loader))
        manager.start_quorum()
        assert manager.should_commit()
        yield batch.tolist()


@pytest.mark.parametrize("num_workers", [0, 2])
def test_a_loop_may_be_left_before_its_step(num_workers: int) -> None:
    """What is stepped on after `break`, or read by `next(iter(loader))`, counts, once."""
    expected = [batch.tolist() for batch in PlanLoader(DATASET, PLAN)]
    got = list[list[int]]()
    with alone() as manager:
        loader = LiveLoader(DATASET, PLAN, manager, num_epochs=1, num_workers=num_workers)
        optimizer = optimizer_of(manager)
        started = counted_calls(manager)
        got += steps_of(loader, manager, 2)
        for _ in range(2):
            for batch in loader:
                optimizer.zero_grad()
                got.append(batch.tolist())
                if len(got) == 5:
                    break
                optimizer.step()
                optimizer.zero_grad()  # which starts no quorum: the loader does
            if len(got) == 5:
                optimizer.step()
        assert [] == [*loader]
    assert expected == got
    assert 1 + len(expected) == manager.current_step()
    assert 1 + len(expected) == len(started)


def counted_calls(manager: Any) -> list[None]:
    """Return a list that grows with each quorum that torchft is asked for."""
    calls = list[None]()
    ask = manager._async_quorum

    def asked(*arguments: Any, **options: Any) -> None:
        calls.append(None)
        ask(*arguments, **options)

    manager._async_quorum = asked
    return calls


def test_a_look_at_a_batch_costs_nothing() -> None:
    """It comes again, and so does its quorum, with an older loop that is still there."""
    expected = [batch.tolist() for batch in PlanLoader(DATASET, PLAN)]
    with alone() as manager:
        loader = LiveLoader(DATASET, PLAN, manager, num_epochs=1)
        started = counted_calls(manager)
        older, later = iter(loader), iter(loader)
        looked = [next(older).tolist(), next(later).tolist(), next(iter(loader)).tolist()]
        assert [expected[0]] * 3 == looked
        assert 2 == len(started)  # torchft's first step, and this one
        assert manager.should_commit()
        got = [expected[0]]
        for batches in (older, later, loader):
            for batch in batches:
                got.append(batch.tolist())
                assert manager.should_commit()
                if len(got) % 3 == 0:
                    break
    assert expected[: len(got)] == got
    assert len(got) == len(expected)


@pytest.mark.parametrize("use_async_quorum", [False, True])
def test_a_step_that_live_does_not_hear_of_is_refused(use_async_quorum: bool) -> None:
    """It counts for torchft, and the next step would read its samples again."""
    with alone(use_async_quorum=use_async_quorum) as manager:
        loader = LiveLoader(DATASET, PLAN, manager)
        batches = iter(loader)
        next(batches)
        assert manager.should_commit()
        manager.start_quorum()  # which the loader does, and no step is open
        assert manager.should_commit()
        with pytest.raises(ip.IndexPlanError, match=r"must be 2, as .* got 3; read a batch"):
            next(batches)


def test_steps_that_fail_are_no_steps_that_were_missed() -> None:
    """A failed step is not counted, and the next one is not refused."""
    with alone() as manager:
        loader = LiveLoader(DATASET, PLAN, manager)
        for number in range(12):
            next(iter(loader))
            if number % 3 == 1:
                manager.report_error(RuntimeError("a peer was lost"))
            assert (number % 3 != 1) == manager.should_commit()
        assert 9 == manager.current_step()
        cursor = loader.cursor
    assert 8 == cursor.step


def test_states_of_other_steps_and_plans() -> None:
    """The state and the manager's must be of one checkpoint, or the manager counts anew."""
    saved: dict[str, Any] = {}
    with alone() as manager:
        loader = LiveLoader(DATASET, PLAN, manager)
        for number, _ in enumerate(loader, 1):
            manager.should_commit()
            if number == 4:
                break
        saved = loader.state_dict()
    assert 5 == saved["step"]

    def first(state: Any, step: int, plan: ip.Plan = PLAN, **options: Any) -> int:
        """Return at which step the first batch is read, with the manager's step."""
        with alone() as manager:
            loader = LiveLoader(DATASET, plan, manager)
            manager.load_state_dict({"step": step, "batches_committed": step})
            if state is not None:
                loader.load_state_dict(state, **options)
            next(iter(loader))
            return loader.cursor.step

    for step in (0, 5):
        assert 4 == first(saved, step)
    assert [0, 0] == [first(None, step) for step in (0, 1)]
    with pytest.raises(ip.IndexPlanError, match=r"must be 5 or 0, of the state .* got 6; load"):
        first(saved, 6)
    with pytest.raises(ip.IndexPlanError, match=r"must be 0 or 1, where a run .* got 5; load the"):
        first(None, 5)
    older = {"cursor": saved["cursor"]}
    assert 4 == first(older, 77)
    assert 4 == first(None, 77, PLAN.resume(ip.Cursor.from_dict(saved["cursor"])))
    other = PLAN.replace(global_batch_size=6)
    with pytest.raises(ip.IndexPlanError, match=r"live run's state must be of the plan .*other_pl"):
        first(saved, 5, other)
    assert 4 == first(saved, 5, other, other_plan=True)
    assert 4 == first(older, 5, other)
    with pytest.raises(ip.IndexPlanError, match="other_plan must be True or False"):
        first(saved, 5, other_plan="no")
    with pytest.raises(ip.IndexPlanError, match="a live run's step must be an integer"):
        first({**saved, "step": "5"}, 5)


def test_a_loop_can_weight_what_it_reads() -> None:
    """Sums of gradients times `world_size / step_size`, over three ranks, are the step's mean."""
    plan = PLAN.replace(remainder="pad")
    column = torch.randn(101, dtype=torch.float64)
    whole = PLAN.replace(world_size=1, remainder="pad")
    units = [whole.units(0, step=step, rank=0) for step in whole.steps(0)]
    expected = [float(column[each.samples[: each.num_valid]].mean()) for each in units]
    shares = list[list[float]]()
    for rank in range(5):
        with alone() as manager:
            loader = LiveLoader(DATASET, plan, manager, inner_rank=rank, inner_size=5, num_epochs=1)
            for name in ("world_size", "step_size", "num_valid"):
                with pytest.raises(ip.IndexPlanError, match=f"{name} must be asked for inside"):
                    getattr(loader, name)
            shares.append([])
            for batch in loader:
                assert 5 == loader.world_size
                losses = column[batch[: loader.num_valid]]
                shares[-1].append(float(losses.sum() * loader.world_size / loader.step_size))
                assert manager.should_commit()
    assert torch.tensor(shares, dtype=torch.float64).mean(0).tolist() == pytest.approx(expected)


def test_what_would_go_wrong_is_refused() -> None:
    """A loop that never steps, and what cannot be right at the start."""
    with alone() as manager:
        loader = LiveLoader(DATASET, PLAN, manager)
        assert repr(loader).endswith(": ranks not known yet, at epoch 0, step 0>")
        batches = iter(loader)
        next(batches)
        with pytest.raises(ip.IndexPlanError, match=re.escape("by manager.should_commit(), or")):
            next(batches)
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"inner_size": 0}, "inner_size must be an integer from 1"),
        ({"inner_rank": 1}, "inner_rank must be the integer 0"),
        ({"max_world": 12}, "max_world must be a number of ranks"),
        ({"num_epochs": 0}, "num_epochs must be an integer from 1"),
        ({"shuffle": True}, "shuffle must be left out of a LiveLoader"),
        ({"again": 2}, "again must be left out of a LiveLoader, whose ranks are the manager's and"),
        ({"ledger": "run.ledger"}, r"ledger must be left out .*; use Ledger\.record\(plan\."),
        ({"rank": 0}, "rank must be left out"),
        ({"world_size": 2}, "world_size must be left out"),
        ({"mesh": None}, "mesh must be left out"),
        ({"partial": True}, "partial must be left out"),
        ({"compare": False}, "compare must be left out"),
        ({"batch_sampler": None}, "batch_sampler must be left out"),
        ({"batch_size": 3}, "batch_size must be left out"),
    ]
    for options, said in wrong:
        with alone() as manager, pytest.raises(ip.IndexPlanError, match=said):
            LiveLoader(DATASET, PLAN, manager, **options)
    with alone() as manager, pytest.raises(ip.IndexPlanError, match="dataset must hold 101"):
        LiveLoader(DATASET[:9], PLAN, manager)
