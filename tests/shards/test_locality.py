"""Locality: where nothing is said against it, nodes keep their lanes, counted place by place."""

from __future__ import annotations

import math

from hypothesis import event, given
from hypothesis import strategies as st

import indexplan as ip
from indexplan.shards.locality import fitting, locality
from tests.support.examples import examples
from tests.support.planned import reading


@st.composite
def sharded(draw: st.DrawFn) -> tuple[ip.Plan, int]:
    """Draw a plan of lanes, which may fit or not, perhaps gone on with; and the ranks of a node."""
    nodes, ranks = draw(st.integers(1, 3)), draw(st.integers(1, 2))
    steps, each = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    lanes = nodes * each * steps
    step = math.lcm(nodes * ranks, lanes) * draw(st.integers(1, 2))
    stripe = step * steps * draw(st.sampled_from([1, 1, 2, 3]))
    sizes = [draw(st.integers(1, 30)), *draw(st.lists(st.integers(0, 30), max_size=20))]
    kept = ("drop", "epoch"), ("pad", "epoch"), ("carry", "stream")
    others = ("carry", "epoch"), ("spread", "epoch"), ("drop", "stream")
    remainder, grid = draw(st.sampled_from([*kept, *others]))
    order = ip.ShardShuffle(
        sizes, lanes=lanes, stripe=stripe, grid=grid, seed=draw(st.integers(0, 9))
    )
    fields = {"world_size": nodes * ranks, "remainder": remainder}
    sub_epochs = draw(st.sampled_from([1, 1, 2]))
    plan = reading(lambda: ip.Plan(order, global_batch_size=step, sub_epochs=sub_epochs, **fields))
    if draw(st.booleans()):
        size = draw(st.sampled_from([step, nodes * ranks, 7]))
        before = reading(lambda: plan.replace(global_batch_size=size))
        stop = draw(st.integers(0, before.steps(0, 0).stop))
        plan = plan.resume(before.cursor(0, 0, step=stop))
    return plan, ranks


@examples(80)
@given(sharded())
def test_nodes_keep_their_lanes(drawn: tuple[ip.Plan, int]) -> None:
    """No advice means that of each epoch, a node reads no more than its part of the lanes."""
    plan, ranks = drawn
    order, nodes = plan.order, (plan.world_size or 0) // ranks
    assert isinstance(order, ip.ShardShuffle)
    n, stripe = order.num_samples, order.stripe
    for epoch in range(plan.start.epoch, plan.start.epoch + 2):
        said = bool(locality(plan, ranks, [epoch]))
        event(f"{plan.remainder}, {order.grid}: advice {said}")
        if said:
            continue
        positions = order.locate(epoch, range(n)).tolist()
        where = plan.locate(range(n), epoch)
        shift = epoch * n if order.grid == "stream" else 0
        lanes_of: list[set[int]] = [set() for _ in range(nodes)]
        found = zip(positions, where.rank.tolist(), where.epoch.tolist(), strict=True)
        for position, rank, owner in found:
            if rank >= 0 and owner == epoch:
                lane = (position + shift) % stripe // (stripe // order.lanes)
                lanes_of[rank // ranks].add(lane)
        assert all(len(lanes) <= order.lanes // nodes for lanes in lanes_of)


def test_what_would_do_does() -> None:
    """Lanes and a stripe that are suggested leave nothing to say."""
    for lanes, batch, world in ((64, 48, 32), (10, 7, 12), (3, 5, 16)):
        order = ip.ShardShuffle([100] * 300, lanes=lanes, stripe=lanes * 8)
        plan = ip.Plan(order, world_size=world, batch_size=batch, remainder="drop")
        assert locality(plan, 4, [0])
        found = fitting(lanes, lanes * 8, [batch * world], world // 4)
        assert found is not None
        better = ip.ShardShuffle([100] * 300, lanes=found[0], stripe=found[1])
        assert () == locality(plan.replace(order=better), 4, [0])
