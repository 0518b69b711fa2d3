"""LiveLoader with a real manager of torchft, alone in its quorum, and a short storm."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from random import Random
from typing import Any

import pytest
import torch
from torch.distributed import TCPStore
from torchft import Manager, Optimizer, ProcessGroupGloo
from torchft.coordination import LighthouseServer

import indexplan as ip
from indexplan_torch import Bins, PlanLoader
from indexplan_torch.live import LiveLoader
from tests.histories.groups import live
from tests.histories.stories import Given, Story
from tests.runs.row import Numbered

# torchft logs by a deprecated method, and an error there makes every step fail
pytestmark = [
    pytest.mark.live,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning"),
]

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


@pytest.mark.parametrize("use_async_quorum", [False, True])
@pytest.mark.parametrize("num_workers", [0, 2])
def test_a_drawn_run_reads_as_a_loader_does(num_workers: int, use_async_quorum: bool) -> None:
    """L4, L5: to the bit, in two epochs, from a cursor, whatever fails and whatever is left.

    A batch that is looked at comes again; one that is stepped on after `break` counts, once. Each
    step that is decided, and torchft's first, has one quorum.
    """
    expected, got, cursor = [], list[list[int]](), None
    fixed, random = PlanLoader(DATASET, PLAN), Random(num_workers)  # noqa: S311
    for _ in range(2):
        expected += [batch.tolist() for batch in fixed]
    for stop in (7, len(expected)):
        with alone(use_async_quorum=use_async_quorum) as manager:
            plan = PLAN if cursor is None else PLAN.resume(cursor)
            loader = LiveLoader(DATASET, plan, manager, num_epochs=2, num_workers=num_workers)
            optimizer, started, before, fails = optimizer_of(manager), counted_calls(manager), 0, 0
            before = len(got)
            while len(got) < stop:
                what = ""
                for batch in loader:
                    assert expected[len(got)] == batch.tolist()
                    what = random.choice(["look", "fail", "leave", "step", "step", "step"])
                    if what == "look":
                        break
                    optimizer.zero_grad()
                    if what == "fail":
                        fails += 1
                        manager.report_error(RuntimeError("a peer was lost"))
                    else:
                        got.append(batch.tolist())
                    if what == "leave":
                        break
                    optimizer.step()
                    if len(got) == stop:
                        break
                if what == "leave":
                    optimizer.step()
            cursor = loader.cursor
            assert 1 + len(got) - before == manager.current_step()
            assert 1 + len(got) - before + fails == len(started)
    assert expected == got
    assert 2 == loader.epoch
    assert [] == [*loader]


def test_workers_stay_until_a_step_fails() -> None:
    """What they have fetched ahead is read while the groups stay, and thrown away where not."""
    with alone() as manager:
        fetching = Numbered(101, lambda _: os.getpid())  # of each sample, who has fetched it
        loader = LiveLoader(fetching, PLAN, manager, num_workers=1)
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
    assert 4 == first(saved, 5, other, other_plan=True)
    assert 4 == first(older, 5, other)


@pytest.mark.parametrize("number", [2, 3])  # of the sync quorum, and of the async one
def test_a_short_storm_loses_nothing(number: int) -> None:
    """Of the steps that count, each whole epoch reads each sample once, as the ledger has it."""
    story = Story(number)
    live(story, Given(steps=3))
    assert [] == story.wrong
