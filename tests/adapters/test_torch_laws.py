"""The law of going on, over drawn plans: each sample once, and no pass read twice or skipped.

In one process and without workers; tests/trainers/test_torchdata_passes.py has those.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from torchdata.stateful_dataloader import StatefulDataLoader

import indexplan as ip
from indexplan.partition.remainders import REMAINDERS
from indexplan_torch import PlanBatchSampler, PlanLoader
from tests.adapters.small import Identity, as_they_are
from tests.support.planned import reading

pytestmark = pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")  # torchdata calls it

EPOCHS = 2
# how a loop names its passes, and whether it begins with the one that the run was stopped in, the
# one after it if that was at its end, or the first sub-epoch of that epoch
LOOPS = ["nothing", "stopped", "next", "restarted", "trainer"]


def loader_of(kind: str, plan: ip.Plan, rank: int, world_size: int) -> Any:
    """One rank's loader, PlanLoader or torchdata's."""
    data, ranks = Identity(plan.order.num_samples), {"rank": rank, "world_size": world_size}
    if kind == "PlanLoader":
        return PlanLoader(data, plan, collate_fn=as_they_are, **ranks)
    sampler = PlanBatchSampler(plan, **ranks)
    return StatefulDataLoader(data, batch_sampler=sampler, collate_fn=as_they_are)


def numbers(
    kind: str, loop: str, stopped_in: int, ended: bool, num_passes: int, sub_epochs: int
) -> Any:
    """The passes that a loop names, in turn; None where it names none."""
    if kind == "StatefulDataLoader" and loop != "nothing":
        return range(stopped_in, num_passes)  # it refuses to begin with another
    first = {
        "stopped": stopped_in,
        "next": stopped_in + ended,
        "trainer": stopped_in + ended,
        "restarted": stopped_in - stopped_in % sub_epochs,
    }
    if loop == "nothing":  # a finished pass may come as an empty one
        return [None] * (num_passes - stopped_in)
    return range(first[loop], num_passes)


def go_on(loader: Any, loop: str, passes: Any, stop: int, *, inside: bool) -> Any:
    """Read up to `stop` batches; return them, the state, the pass and whether it was at its end."""
    batches = loader.batch_sampler
    read: list[list[int]] = []
    state = loader.state_dict()
    stopped_in = ended = 0
    for number in passes:
        if loop == "trainer":
            batches.sampler.set_epoch(number)
        elif loop == "restarted":
            batches.set_epoch_and_sub_epoch(*divmod(number, batches.run.plan.sub_epochs))
        elif number is not None:
            batches.set_epoch(number)
        for batch in loader:
            read.append(batch)
            begun = batches.run.reading
            stopped_in, ended = begun.number, begun.finished
            if len(read) == stop and (inside or not ended):
                return read, loader.state_dict(), stopped_in, ended
        state = loader.state_dict()
        if len(read) == stop:
            break
    return read, state, stopped_in, ended


@given(data=st.data())
@pytest.mark.parametrize("kind", ["PlanLoader", "StatefulDataLoader"])
def test_any_stop_and_any_loop_read_each_batch_once(kind: str, data: st.DataObject) -> None:
    """Stopped anywhere and gone on with as often as you like, by any loop, on any ranks."""
    order = ip.Shuffle(data.draw(st.integers(6, 60)), seed=1)
    sub_epochs = data.draw(st.integers(1, 4))
    remainder = data.draw(st.sampled_from(["spread", *REMAINDERS]))
    num_passes = EPOCHS * sub_epochs
    cursor = ip.Plan(order, batch_size=2, sub_epochs=sub_epochs, world_size=1).cursor(
        0, None if sub_epochs == 1 else 0, step=0
    )
    state, stopped_in, ended, seen = None, 0, False, Counter[int]()
    for leg in range(3):
        world_size, batch_size = data.draw(st.integers(1, 3)), data.draw(st.integers(2, 6))
        plan = ip.Plan(order, batch_size=batch_size, sub_epochs=sub_epochs, remainder=remainder)
        whole = reading(lambda: plan.replace(world_size=world_size).resume(cursor))  # noqa: B023
        where = [divmod(number, sub_epochs) for number in range(num_passes)]
        where = [each for each in where if each >= (cursor.epoch, cursor.sub_epoch)]
        accounts = [reading(partial(whole.account, *each)) for each in where]
        assume(all(each.min_batch_size or not each.num_steps for each in accounts))
        num_left = sum(whole.steps(*each).stop - whole.steps(*each).start for each in where)
        stop = num_left if leg == 2 else data.draw(st.integers(0, num_left))
        if not stop:
            continue
        loop, inside = data.draw(st.sampled_from(LOOPS)), data.draw(st.booleans())
        for rank in range(world_size):
            loader = loader_of(kind, plan, rank, world_size)
            if state is not None:
                loader.load_state_dict(state)
            told = numbers(kind, loop, stopped_in, ended, num_passes, sub_epochs)
            read, saved, left_in, at_end = go_on(loader, loop, told, stop, inside=inside)
            expected = [b.tolist() for each in where for b in whole.batches(*each, rank=rank)]
            assert expected[:stop] == read
            seen.update(index for batch in read for index in batch)
        state, stopped_in, ended = saved, left_in, at_end
        found = state.get("_sampler_iter_state", state)["cursor"]
        cursor = ip.Cursor.from_dict(found)
    if remainder == "spread":
        assert dict.fromkeys(range(order.num_samples), EPOCHS) == seen
