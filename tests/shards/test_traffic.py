"""Traffic: what nodes download, against sets of what their batches hold."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import indexplan as ip
from indexplan.shards import downloads as module
from indexplan.shards.locality import fits, fitting
from tests.support.examples import examples
from tests.support.reading_oracle import orders_of_all_kinds, read_in, shards_of
from tests.support.strategies import balanced_plans, plans, start_of


def steps_in(plan: ip.Plan, epoch: int) -> list[tuple[int, int]]:
    """Return what is left of an epoch: sub-epochs and steps."""
    first = start_of(plan)[1] if epoch == start_of(plan)[0] else 0
    return [
        (part, step) for part in range(first, plan.sub_epochs) for step in plan.steps(epoch, part)
    ]


def nodes_of(plan: ip.Plan, each: int) -> list[range]:
    """Return the ranks of each node."""
    world = plan.world_size or 0
    return [range(low, min(low + each, world)) for low in range(0, world, each)]


@examples(50)
@given(
    plans(orders_of_all_kinds()) | balanced_plans(orders_of_all_kinds()),
    st.integers(1, 9),
    st.data(),
)
def test_traffic_is_that_of_the_batches(plan: ip.Plan, each: int, data: st.DataObject) -> None:
    """Downloads, live shards and mixing are those of sets, however the steps are cut."""
    sizes = data.draw(shards_of(plan.order.num_samples))
    first = start_of(plan)[0]
    epochs = [first, first + 1]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BLOCK", data.draw(st.sampled_from([256, 2560, 2**20])))
        found = ip.traffic(plan, sizes, ranks_per_node=each, epochs=epochs)
    for i, epoch in enumerate(epochs):
        steps = steps_in(plan, epoch)
        mixed = [
            {shard for node in nodes for shard in node}
            for nodes in (
                [read_in(plan, sizes, epoch, *step, ranks) for ranks in nodes_of(plan, each)]
                for step in steps
            )
        ]
        counts = list(map(len, mixed))
        mean = sum(counts) / max(len(counts), 1)
        assert (min(counts, default=0), mean, max(counts, default=0)) == found.different[i]
        assert len(steps) == found.num_steps[i]
        for node, ranks in enumerate(nodes_of(plan, each)):
            of_steps = [set(read_in(plan, sizes, epoch, *step, ranks)) for step in steps]
            needed = set().union(*of_steps)
            assert sum(sizes[shard] for shard in needed) == found.downloads[i, node]
            until = [set().union(*of_steps[: t + 1]) for t in range(len(steps))]
            live = [until[t] & set().union(*of_steps[t:]) for t in range(len(steps))]
            assert max(map(len, live), default=0) == found.live[i, node]
            most = max((sum(sizes[shard] for shard in each) for each in live), default=0)
            assert most == found.live_samples[i, node]
    assert json.loads(json.dumps(found.to_dict())) == found.to_dict()
    n = plan.order.num_samples
    assert found.times == tuple(sum(row) / n for row in found.downloads.tolist())


def order(**fields: object) -> ip.ShardShuffle:
    """Return an order whose lanes fit 4 nodes of 2 ranks, batch 8: G = 64, Z = 256, L = 32."""
    sizes = np.arange(200) % 7 + 30
    return ip.ShardShuffle(sizes, **{"lanes": 32, "stripe": 256, **fields})  # type: ignore[arg-type]


def asked(of: ip.Order | None = None, **fields: object) -> tuple[str, ...]:
    """Return what is said of a plan of 4 nodes of 2 ranks."""
    given = {"world_size": 8, "batch_size": 8, "remainder": "drop", **fields}
    return ip.traffic(ip.Plan(of or order(), **given), ranks_per_node=2).advice  # type: ignore[arg-type]


def stopped(step: int) -> ip.Plan:
    """Return a plan that was stopped under batches of 5, and goes on with 8."""
    plan = ip.Plan(order(), world_size=8, batch_size=5, remainder="drop")
    return plan.replace(batch_size=8).resume(plan.cursor(0, step=step))


CHANGE = ", so nodes will switch lanes; "
ADVICE: dict[str, tuple[Callable[[], tuple[str, ...]], str]] = {
    "drop": (asked, ""),
    "pad": (lambda: asked(remainder="pad"), ""),
    "carry": (lambda: asked(order(grid="stream"), remainder="carry"), ""),
    "carry, cut": (lambda: asked(order(grid="stream"), remainder="carry", sub_epochs=7), ""),
    "no lanes": (lambda: asked(ip.Repeat(order(), 1), remainder="spread"), ""),
    "resumed at a step": (
        lambda: ip.traffic(stopped(8), ranks_per_node=2).advice,
        "",
    ),
    "resumed inside one": (
        lambda: ip.traffic(stopped(9), ranks_per_node=2).advice,
        "epoch 0: the run went on at position 360, in the middle of a step"
        + CHANGE
        + "stop runs after full steps of a global batch that divides both",
    ),
    "nodes of other sizes": (
        lambda: asked(world_size=7),
        "7 ranks in nodes of 2 leave a node of fewer, so that nodes cut lanes in the middle; fill "
        "all nodes",
    ),
    "shares that move": (
        lambda: asked(batch_size=None, global_batch_size=60),
        "the global batch (60) isn't a multiple of 8 ranks, so shares move from step to step; "
        "choose one that is",
    ),
    "stripe": (
        lambda: asked(batch_size=12),
        f"stripe=256 isn't a multiple of the global batch (96){CHANGE}use lanes=32, stripe=192",
    ),
    "lanes": (
        lambda: asked(order(lanes=16, stripe=768)),
        f"lanes=16 isn't a multiple of the 12 steps of a stripe{CHANGE}use lanes=16, stripe=256",
    ),
    "lanes of a step": (
        lambda: asked(order(lanes=12, stripe=768)),
        f"4 nodes cannot evenly share the lanes of a step, 1{CHANGE}use lanes=12, stripe=192",
    ),
    "spread": (
        lambda: asked(remainder="spread"),
        f"epoch 0: spread's steps are smaller than the global batch, and drift{CHANGE}use "
        'remainder="drop" or "pad", or "carry" and grid="stream", or 6,592 samples, 2 fewer, '
        "whose steps are full",
    ),
    "sub-epochs": (
        lambda: asked(sub_epochs=3),
        f'epoch 0: 3 sub-epochs begin in the middle of steps{CHANGE}use remainder="carry" and '
        'grid="stream"',
    ),
    "carry without the stream": (
        lambda: (
            ip.traffic(
                ip.Plan(order(), world_size=8, batch_size=8, remainder="carry"),
                ranks_per_node=2,
                epochs=[1],
            ).advice
        ),
        "epoch 1: carry's steps run through the epochs, and lanes begin anew in each"
        f'{CHANGE}use grid="stream"',
    ),
    "the stream without carry": (
        lambda: (
            ip.traffic(
                ip.Plan(order(grid="stream"), world_size=8, batch_size=8, remainder="drop"),
                ranks_per_node=2,
                epochs=[1],
            ).advice
        ),
        f'epoch 1: grid="stream" is for carry; under drop epochs begin elsewhere{CHANGE}use '
        'grid="epoch", or remainder="carry"',
    ),
    "a phase": (
        lambda: asked(batch_size=[ip.Phase(0, 8), ip.Phase(32, 16)]),
        f"epoch 0: a phase begins in the middle of a step{CHANGE}begin it where one ends",
    ),
}


@pytest.mark.parametrize("name", ADVICE)
def test_advice(name: str) -> None:
    """What keeps nodes from their lanes is said, and what would do; else nothing is."""
    given, expected = ADVICE[name]
    assert (expected,) * bool(expected) == given()


@pytest.mark.parametrize(
    ("lanes", "stripe", "sizes", "nodes", "expected"),
    [
        (192, 12_288, [2048, 3072, 4096], 8, True),  # 64, 96 and 128 ranks of batch 32
        (192, 12_288, [3072], 12, True),
        (64, 4096, [4096], 16, True),
        (64, 4096, [3072], 12, False),  # the stripe is cut
        (64, 4096, [4096], 12, False),  # a lane belongs to two nodes
        (60, 15_360, [1024], 4, True),
        (60, 15_360, [1024], 8, False),  # four lanes a step
        (60, 4096, [4096], 4, False),  # the stripe is not of whole turns
    ],
)
def test_what_fits(lanes: int, stripe: int, sizes: list[int], nodes: int, expected: bool) -> None:
    """The law of locality, by its words; what is suggested keeps it."""
    assert expected == fits(lanes, stripe, sizes, nodes)
    found = fitting(lanes, stripe, sizes, nodes)
    assert (sizes[0] % nodes > 0) == (found is None)  # nodes that cannot share a step
    if found is not None:
        assert fits(*found, sizes, nodes)
        assert not expected or found == (lanes, stripe)


def test_samples_that_spread_takes() -> None:
    """With as many samples as the advice says, nodes keep their lanes under spread, too."""
    sizes = [20] * 1000
    lanes: dict[str, int] = {"lanes": 16, "stripe": 256}
    plan = ip.Plan(ip.ShardShuffle([*sizes, 1], **lanes), global_batch_size=128, world_size=16)
    plan = plan.replace(remainder="spread")
    found = ip.traffic(plan, ranks_per_node=4)
    said = re.search(r"or ([\d,]+) samples, 33 fewer, whose steps are full$", found.advice[0])
    assert said is not None
    num = int(said[1].replace(",", ""))
    assert 20_000 - 32 == num
    fewer = ip.ShardShuffle([*sizes[:-2], num - 998 * 20], **lanes)
    full = ip.traffic(plan.replace(order=fewer), ranks_per_node=4)
    assert () == full.advice
    assert found.times[0] > 1.25
    assert full.times[0] < 1.1
