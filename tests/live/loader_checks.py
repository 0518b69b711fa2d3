"""LiveLoader and Live with a real manager of torchft, alone in its quorum."""

from __future__ import annotations

import gc
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
from indexplan_torch import PlanLoader
from indexplan_torch.live import Live, LiveLoader

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


def test_the_ledger_is_written_at_checkpoints(tmp_path: Path) -> None:
    """It says what was read in the steps that count, through a stop between two checkpoints."""
    path, got = tmp_path / "run.ledger", list[list[int]]()
    saved: dict[str, Any] = {}
    for last in (11, 7):
        with alone() as manager:
            loader = LiveLoader(DATASET, PLAN, manager, ledger=path)
            if saved:
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
                    saved = {"state": loader.state_dict(), "step": len(got)}
                    ledger = ip.Ledger(path)
                    assert ledger.hash == saved["state"]["ledger"]
                    steps = range(ledger.step)
                    assert got == [ledger.batch(step, rank=0).tolist() for step in steps]
                if number == last:
                    break
    assert ip.Ledger(path).verify().ok
    with alone() as manager:
        live = Live(PLAN, manager, ledger=path)
        for state in (3, {}, {**saved["state"], "more": 1}):
            with pytest.raises(ip.IndexPlanError, match="a live run's state must be a dict"):
                live.load_state_dict(state)  # type: ignore[arg-type]


def read(loader: LiveLoader, manager: Any, steps: int) -> list[list[int]]:
    """Read and commit some steps."""
    got, optimizer = [], optimizer_of(manager)
    for batch in loader:
        optimizer.zero_grad()
        optimizer.step()
        got.append(batch.tolist())
        if len(got) == steps:
            break
    return got


def test_a_ledger_is_left_for_good_or_not_at_all(tmp_path: Path) -> None:
    """What was read without it is taken for nothing that it says."""
    path = tmp_path / "run.ledger"
    with alone() as manager:
        loader = LiveLoader(DATASET, PLAN, manager, ledger=path)
        first = read(loader, manager, 4)
        kept = loader.state_dict()
        read(loader, manager, 4)
        loader.state_dict()
        del loader
    before = path.read_bytes()
    with alone() as manager:
        loader = LiveLoader(DATASET, PLAN, manager)
        with pytest.raises(ip.IndexPlanError, match="ledger must be passed to the loader, as the"):
            loader.load_state_dict(kept)
    with alone() as manager:
        loader = LiveLoader(DATASET, PLAN, manager, ledger=False)
        loader.load_state_dict(kept)
        read(loader, manager, 2)
        left = loader.state_dict()
    assert left["ledger"] is None
    with alone() as manager:
        loader = LiveLoader(DATASET, PLAN, manager, ledger=path)
        with pytest.raises(ip.IndexPlanError, match="must be empty, or begin where the state"):
            loader.load_state_dict(left)
        assert before == path.read_bytes()
        loader.load_state_dict(kept)
        rest = read(loader, manager, 3)
        loader.state_dict()
        ledger = ip.Ledger(path)
        assert first + rest == [ledger.batch(step, rank=0).tolist() for step in range(7)]
        validation = PlanLoader(DATASET, PLAN, ledger=path)
        with pytest.raises(ip.IndexPlanError, match="must be kept by one loader"):
            next(iter(validation))
        assert ledger.hash == ip.Ledger(path).hash
        del validation, loader
    with alone() as manager:
        loader = LiveLoader(DATASET, PLAN, manager, ledger=tmp_path / "new.ledger")
        loader.load_state_dict(left)
        rest = read(loader, manager, 2)
        loader.state_dict()
        ledger = ip.Ledger(tmp_path / "new.ledger")
        assert rest == [ledger.batch(step, rank=0).tolist() for step in range(2)]
    other = tmp_path / "other.ledger"
    with alone() as manager:
        training = PlanLoader(DATASET, PLAN, ledger=other)
        next(iter(training))
        second = LiveLoader(DATASET, PLAN, manager, ledger=other)
        with pytest.raises(ip.IndexPlanError, match="must be kept by one loader"):
            second.state_dict()


@pytest.mark.parametrize("use_async_quorum", [False, True])
def test_a_loop_of_its_own(use_async_quorum: bool) -> None:
    """Live draws each step once while nothing changes (L6), bins as well, and groups of ranks."""
    plan = ip.Plan(ip.LengthGrouped([3, 5, 2, 8] * 9, batch_size=2), global_batch_size=6)
    alone_plan = plan.replace(world_size=2)
    with alone(use_async_quorum=use_async_quorum) as manager:
        live = Live(plan, manager, inner_rank=1, inner_size=2)
        assert f"<Live, ranks not known yet: {live.standing!r}>" == repr(live)
        for step in alone_plan.steps(0):
            manager.start_quorum()
            batch = live.begin(units=True)
            assert live.settled() is None
            want = alone_plan.units(0, step=step, rank=1)
            assert [each.tolist() for each in want.bins] == [each.tolist() for each in batch.bins]
            live.commit(manager.should_commit())
        assert f"<Live, rank 1 of 2: <Standing of {plan}: at epoch 1, step 0, position 0>>" == repr(
            live
        )
        assert 1 == live.epoch
        assert 1 + len(alone_plan.steps(0)) == manager.current_step()


def test_what_would_go_wrong_is_refused() -> None:
    """A step that counts unseen, a loop that never steps, and what cannot be right at the start."""
    with alone() as manager:
        live = Live(PLAN, manager)
        manager.start_quorum()
        live.begin()
        with pytest.raises(ip.IndexPlanError, match="commit must come once for each step, after"):
            live.commit(True)
    with alone() as manager:
        loader = LiveLoader(DATASET, PLAN, manager)
        assert repr(loader).startswith("<LiveLoader, ranks not known yet: <Standing of Plan(")
        batches = iter(loader)
        next(batches)
        with pytest.raises(ip.IndexPlanError, match=re.escape("by manager.should_commit(), or")):
            next(batches)
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"inner_size": 0}, "inner_size must be an integer from 1"),
        ({"inner_rank": 1}, "inner_rank must be the integer 0"),
        ({"max_world": 12}, "max_world must be a number of ranks"),
        ({"num_epochs": 0}, "num_epochs must be an integer from 1"),
        ({"shuffle": True}, "shuffle must be left out"),
    ]
    for options, said in wrong:
        with alone() as manager, pytest.raises(ip.IndexPlanError, match=said):
            LiveLoader(DATASET, PLAN, manager, **options)
    with alone() as manager, pytest.raises(ip.IndexPlanError, match="dataset must hold 101"):
        LiveLoader(DATASET[:9], PLAN, manager)
