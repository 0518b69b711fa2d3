"""Steps of a fixed composition: `show` says whether they have it, and what gives it."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import indexplan as ip
from indexplan.reports.show import show_plan
from tests.support.examples import examples
from tests.support.planned import phase_at


def compositions(plan: ip.Plan, epochs: int = 3) -> list[list[int]]:
    """Return how much of each source the steps of some epochs read over all ranks."""
    found = []
    for epoch in range(epochs):
        for part in range(plan.sub_epochs):
            for step in plan.steps(epoch, part):
                ranks = range(plan.world_size or 1)
                read = [plan.batch(epoch, part, step=step, rank=rank) for rank in ranks]
                groups = plan.order.group_of(np.concatenate(read))
                found.append(np.bincount(groups, minlength=len(plan.order.group_names)).tolist())
    return found


def said_of(plan: ip.Plan) -> tuple[dict[str, Any] | None, str]:
    """Return what `show` says, as data and in words."""
    shown = show_plan(plan, None, None, None)
    lines = [line for line in str(shown).splitlines() if line.startswith("each step ")]
    return shown.to_dict().get("composition"), "".join(lines)


@st.composite
def plans(draw: st.DrawFn) -> ip.Plan:
    """Draw a plan whose global batch is a multiple of the sum of shares, or almost."""
    shares = draw(st.lists(st.integers(1, 4), min_size=2, max_size=3))
    names = [f"s{i}" for i in range(len(shares))]
    sources = {name: ip.Shuffle(20 + i, seed=i) for i, name in enumerate(names)}
    places = draw(st.sampled_from([[0], [0], [0, 24], [0, 35]]))
    weights = [(at, dict(zip(names, np.roll(shares, at % 2), strict=True))) for at in places]
    each = draw(st.integers(1, 3)) * sum(shares) + draw(st.sampled_from([0, 0, 0, 1]))
    size = draw(st.sampled_from([each * 4, each * 5, 71]))
    sub_epochs = draw(st.sampled_from([1, 2]))
    size = max(size, each * sub_epochs)  # so that each sub-epoch has a step under "drop", too
    order = ip.Mixture(sources, weights, epoch_size=size, seed=draw(st.integers(0, 9)))
    return ip.Plan(
        order,
        global_batch_size=each,
        world_size=draw(st.integers(1, 3)),
        sub_epochs=sub_epochs,
        remainder=draw(st.sampled_from(["spread", "drop", "pad", "carry"])),
    )


@examples(300)
@given(plans())
def test_what_is_said_of_steps_is_true(plan: ip.Plan) -> None:
    """Exact steps are so in all epochs; else some is not, and the named epoch size helps."""
    found, words = said_of(plan)
    (size,) = {phase.size for phase in [phase_at(plan, 0, 0, 0)]}
    order: Any = plan.order
    if size % sum(order.shares):
        assert found is None
        return
    assert found is not None
    last = compositions(plan)[-1:]
    if found["exact"]:
        allowed = [[s * size // sum(shares) for s in shares] for _, shares in order.weights]
        assert all(row in allowed for row in compositions(plan))
        assert last == [found["counts"]]
        assert f"each step    exactly {' : '.join(map(str, found['counts']))}" == words
    elif found["epoch_size"] != order.epoch_size:
        assert f"epoch_size={found['epoch_size']}" in words
        if plan.remainder == "spread":  # has smaller steps; others may fit by chance
            assert any(row != found["counts"] for row in compositions(plan))
        cured = ip.Mixture(
            order.sources, order.weights, epoch_size=found["epoch_size"], seed=order.seed
        )
        again, _ = said_of(plan.replace(order=cured))
        assert again is not None
        assert again["epoch_size"] == cured.epoch_size
        assert again["exact"] == all(at % size == 0 for at, _ in order.weights)
    else:
        assert f"begin at multiples of {size} units" in words
