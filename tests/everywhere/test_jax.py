"""Indices that JAX computes are the package's, under each transformation; with four devices.

.ci/run has the command; with --hypothesis-profile=thorough all known answers are compared.
"""

from __future__ import annotations

import doctest
import random
from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.sharding import Mesh, PartitionSpec

import indexplan as ip
import indexplan_jax
from indexplan_jax import rank_indices, shuffle, step_indices, traced
from tests.everywhere.drawn import Run, drawn
from tests.support.planned import planned
from tests.support.shuffle_cases import CASES

pytestmark = pytest.mark.jax

NONE = 2**31 - 1
PLAN = ip.Plan(ip.Shuffle(1003, seed=5), world_size=4, batch_size=6, remainder="drop")


def differences(runs: Sequence[Run]) -> int:
    """Return at how many positions JAX and the package differ."""
    num = 0
    for run in runs:
        positions = jnp.asarray(run.start + np.arange(run.num), jnp.uint32)
        num += int(
            (np.asarray(shuffle(run.n, run.seed, run.epoch, positions)) != run.indices()).sum()
        )
    return num


def test_known_answers() -> None:
    """Every twentieth of them that has 32 bits, as each is compiled; all in a thorough run."""
    every = 20 if settings().max_examples < 2000 else 1
    cases = [case for case in CASES if case.n < 2**31][::every]
    assert len(cases) > 24
    for n, seed, epoch, start, indices in cases:
        positions = jnp.asarray(start + np.arange(len(indices)), jnp.uint32)
        assert indices == shuffle(n, seed, epoch, positions).tolist()


def test_drawn_runs() -> None:
    """Of orders of all sizes."""
    assert differences(drawn(10**6, size_stop=2**31, most=2 * 10**5)) == 0


def drawn_plan(draw: random.Random) -> ip.Plan:
    """A plan of any kind that has formulas here."""
    n = draw.choice([1, 2, 3, 7, 50, 333, 5000, 9999, 10**6 + 3, 2**31 - 1])
    orders: list[ip.Order] = [ip.Shuffle(n, draw.getrandbits(128)), ip.Sequential(n)]
    remainder: Any = draw.choice(["drop", "pad", "carry"])
    batch_size, world_size = draw.choice([1, 2, (5, 3), 40]), draw.choice([1, 2, 3])
    order = draw.choice(orders)
    return planned(order, world_size=world_size, batch_size=batch_size, remainder=remainder)


@pytest.mark.parametrize("number", range(5))
def test_every_step_is_the_plans(number: int) -> None:
    """The first steps of an epoch, the last ones, and none past them; epoch and step are traced."""
    draw = random.Random(number)  # noqa: S311 (nothing secret)
    plan = drawn_plan(draw)
    of_a_step = jax.jit(partial(step_indices, plan))
    of_a_rank = jax.jit(partial(rank_indices, plan))
    for epoch in (0, draw.choice([1, 7, 2**32 - 10**5])):
        steps = plan.steps(epoch)
        for step in {0, len(steps) // 2, len(steps) - 1, len(steps), -1}:
            found = of_a_step(np.uint32(epoch), step)
            shares = [
                of_a_rank(np.uint32(epoch), step, rank) for rank in range(plan.world_size or 1)
            ]
            assert np.concatenate(shares).tolist() == found.tolist()
            if step in steps:
                ranks = range(plan.world_size or 1)
                read = [plan.batch(epoch, step=step, rank=rank) for rank in ranks]
                assert np.concatenate(read).tolist() == found.tolist()
                assert step_indices(plan, epoch, step).tolist() == found.tolist()
            else:
                assert {NONE} == {*found.tolist()}


SMALL = [ip.Shuffle(53, 3), ip.Sequential(53)]


@pytest.mark.parametrize("remainder", ["drop", "pad", "carry"])
@pytest.mark.parametrize("order", SMALL, ids=lambda order: type(order).__name__)
def test_all_steps_of_each_order_and_remainder(order: ip.Order, remainder: Any) -> None:
    """All ranks of all steps of three epochs, and none past them, from one compilation."""
    plan = ip.Plan(order, world_size=2, batch_size=4, remainder=remainder)
    of_ranks = jax.vmap(partial(rank_indices, plan), in_axes=(None, None, 0))
    of_steps = jax.vmap(of_ranks, in_axes=(None, 0, None))
    of_epochs = jax.jit(jax.vmap(of_steps, in_axes=(0, None, None)))
    epochs, steps = np.array([0, 5, 2**32 - 2], np.uint32), range(8)
    found = of_epochs(epochs, jnp.arange(len(steps)), jnp.arange(2))
    for epoch, of_epoch in zip(epochs.tolist(), found.tolist(), strict=True):
        read = [
            [plan.batch(epoch, step=step, rank=rank).tolist() for rank in range(2)]
            for step in plan.steps(epoch)
        ]
        assert read == of_epoch[: len(read)]
        assert {NONE} == {*np.ravel(of_epoch[len(read) :]).tolist()}


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**31 - 1), st.integers(1, 2**31 - 1))
def test_product_modulo(x: int, y: int, modulus: int) -> None:
    """What 64 bits would say."""
    assert x * y % modulus == int(traced._product_modulo(jnp.uint32(x), y, modulus))


def test_scan() -> None:
    """A loop over steps on the device."""
    steps = PLAN.steps(0)

    def walk(epoch: Any, step: Any) -> Any:
        return epoch, step_indices(PLAN, epoch, step)

    _, found = jax.jit(lambda epoch: jax.lax.scan(walk, epoch, jnp.arange(len(steps))))(3)
    one = PLAN.replace(world_size=1, global_batch_size=24)
    assert [*map(np.ndarray.tolist, one.batches(3, rank=0))] == found.tolist()


def test_each_device_computes_its_rank() -> None:
    """shard_map over four devices; ranks are places along the mesh, epochs may be too."""
    assert len(jax.devices()) == 4
    plan, mesh = PLAN, Mesh(np.array(jax.devices()), ("data",))

    @jax.jit
    @partial(jax.shard_map, mesh=mesh, in_specs=PartitionSpec(), out_specs=PartitionSpec("data"))
    def of_devices(step: Any) -> Any:
        return rank_indices(plan, 1, step, jax.lax.axis_index("data"))

    expected = np.concatenate([plan.batch(1, step=9, rank=rank) for rank in range(4)])
    assert expected.tolist() == of_devices(9).tolist()

    @jax.jit
    @partial(jax.shard_map, mesh=mesh, in_specs=PartitionSpec(), out_specs=PartitionSpec("data"))
    def of_epochs(step: Any) -> Any:
        return step_indices(plan, jax.lax.axis_index("data"), step)

    one = plan.replace(world_size=1, global_batch_size=24)
    expected = np.concatenate([one.batch(epoch, step=9, rank=0) for epoch in range(4)])
    assert expected.tolist() == of_epochs(9).tolist()


def test_numbers_outside() -> None:
    """Of any type of integers, whatever its width; answers have the shape of the question."""
    row = ip.Shuffle(100, 3).take(2, 0, 100)
    for kind in (jnp.int8, jnp.uint8, jnp.int16, jnp.int32, jnp.uint32):
        found = shuffle(100, 3, 2, jnp.array([[0, 99], [100, 127]], kind))
        assert found.dtype == jnp.int32
        assert [[row[0], row[99]], [NONE, NONE]] == found.tolist()
    assert [NONE] == shuffle(100, 3, 2, jnp.array([-1])).tolist()
    assert [NONE] == shuffle(100, 3, 2, jnp.array([2**32 - 1], jnp.uint32)).tolist()
    with jax.enable_x64(True):
        assert [NONE, row[5]] == shuffle(100, 3, 2, jnp.array([2**32 + 5, 5], jnp.int64)).tolist()
        assert {NONE} == {*jax.jit(partial(step_indices, PLAN))(0, jnp.int64(2**32)).tolist()}
    assert [] == shuffle(100, 3, 2, jnp.arange(0)).tolist()
    assert row[7] == shuffle(100, 3, 2, 7)
    assert {NONE} == {
        *jax.vmap(partial(rank_indices, PLAN, 0, 0))(jnp.array([4, -1])).ravel().tolist()
    }


def test_wide_numbers_that_are_not_of_jax() -> None:
    """JAX would cut them to 32 bits, and find an index; NumPy and Python have all bits of them."""
    first = shuffle(100, 3, 2, jnp.array([5]))[0]
    for numbers in (
        np.array([2**32 + 5, 5, -1, 5 - 2**32]),
        np.array([2**63 + 5, 5, 2**32 + 5, 2**64 - 1], np.uint64),
        [2**32 + 5, 5, -1, 100],
        (2**31, np.int8(5), np.int64(2**32 + 5), -(2**63)),
        [2**31 - 1, jnp.int32(5), -1, -(2**31)],
    ):
        assert [NONE, first, NONE, NONE] == shuffle(100, 3, 2, numbers).tolist()
        of_jit = jax.jit(lambda epoch, numbers=numbers: shuffle(100, 3, epoch, numbers))
        assert [NONE, first, NONE, NONE] == of_jit(2).tolist()
    assert first == jax.jit(lambda epoch: shuffle(100, 3, epoch, [epoch + 3, 7]))(2)[0]


def test_traced_numbers_of_any_width() -> None:
    """What is no epoch, step or rank has no answers, and no other's; 8 bits hold small ranks."""
    plan = PLAN.replace(world_size=200, batch_size=5)
    of_a_rank = jax.jit(partial(rank_indices, plan))
    expected = plan.batch(3, step=0, rank=5).tolist()
    for kind in (jnp.int8, jnp.uint8, jnp.int16, jnp.uint32):
        assert expected == of_a_rank(kind(3), kind(0), kind(5)).tolist()
    with jax.enable_x64(True):
        assert expected == of_a_rank(jnp.uint64(3), jnp.int64(0), jnp.int64(5)).tolist()
        for wrong in [(2**32 + 3, 0, 5), (3, 2**32, 5), (3, 0, 2**32 + 5), (-1, 0, 5)]:
            assert {NONE} == {*of_a_rank(*map(jnp.int64, wrong)).tolist()}
        assert [NONE] == jax.jit(partial(shuffle, 100, 3))(2**32 + 3, jnp.arange(1)).tolist()
    assert [NONE] == jax.jit(partial(shuffle, 100, 3))(-1, jnp.arange(1)).tolist()
    assert {NONE} == {*of_a_rank(-1, 0, 5).tolist()}


def test_the_last_epoch_under_carry() -> None:
    """Its last step reads on: `plan.batch` refuses that, and nothing begins anew with epoch 0."""
    last = 2**32 - 1
    plan = ip.Plan(ip.Shuffle(100), world_size=2, batch_size=3, remainder="carry")
    step = plan.steps(last)[-1]
    said = "reads on into the next; use another remainder for the last epoch"
    first = plan.batch(last, step=step, rank=0).tolist()
    for wrong in (
        lambda: plan.batch(last, step=step, rank=1),
        lambda: rank_indices(plan, last, step, 1),
        lambda: step_indices(plan, np.uint32(last), step),
    ):
        with pytest.raises(ip.IndexPlanError, match=said):
            wrong()
    assert first == rank_indices(plan, last, step, 0).tolist()
    found = jax.jit(partial(step_indices, plan))(jnp.uint32(last), step).tolist()
    left = ip.Shuffle(100).take(last, 96, 100).tolist()
    assert [*left, NONE, NONE] == found
    of_ranks = jax.vmap(partial(rank_indices, plan, last, step))
    assert found == of_ranks(jnp.arange(2)).ravel().tolist()


def test_what_is_refused_where_it_is_not_traced() -> None:
    """Numbers out of range, and positions that are no integers."""
    for wrong in (
        lambda: shuffle(2**31, 0, 0, jnp.arange(3)),
        lambda: shuffle(10, -1, 0, jnp.arange(3)),
        lambda: shuffle(10, 0, 2**32, jnp.arange(3)),
        lambda: shuffle(10, 0, 0, jnp.arange(3.0)),
        lambda: shuffle(10, 0, 0, [0.0, 1.0]),
        lambda: shuffle(10, 0, 0, [2**64]),
        lambda: shuffle(10, 0, 0, [[1], [1, 2]]),
        lambda: shuffle(10, 0, 0, [jnp.int32(1), 2**32]),
        lambda: shuffle(10, 0, 0, jax.random.key(0)),
        lambda: shuffle(10, 0, 0, None),
        lambda: shuffle(10, 0, np.arange(3), jnp.arange(3)),
        lambda: step_indices(PLAN, 0, jnp.arange(3)),
        lambda: step_indices(PLAN, 0, 41),
        lambda: rank_indices(PLAN, 0, 0, 4),
        lambda: jax.jit(lambda epoch: step_indices(PLAN, epoch, 41))(0),
        lambda: step_indices(PLAN.replace(remainder="spread"), 0, 0),
    ):
        with pytest.raises(ip.IndexPlanError):
            wrong()


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (jnp.arange(4), r"an array of shape \(4,\); use jax.vmap"),
        (jnp.zeros((1, 1), int), r"an array of shape \(1, 1\); use jax.vmap"),
        (jnp.float32(1.5), "dtype float32"),
        (jnp.bool(True), "dtype bool"),
    ],
)
def test_what_is_refused_where_it_is_traced(values: Any, said: str) -> None:
    """By shape and type: in silence it would be spread over the lanes, or lose its fraction."""
    for name, call in {
        "epoch": lambda epoch: shuffle(100, 3, epoch, jnp.arange(4)),
        "epoch ": lambda epoch: step_indices(PLAN, epoch, 0),
        "step": lambda step: step_indices(PLAN, 0, step),
        "rank": lambda rank: rank_indices(PLAN, 0, 0, rank),
    }.items():
        message = f"^{name.strip()} must be a single integer; got {said}"
        with pytest.raises(ip.IndexPlanError, match=message):
            jax.jit(call)(values)


def test_examples() -> None:
    """Those of the docstrings; every public name has one."""
    assert 0 == doctest.testmod(traced).failed
    for name in indexplan_jax.__all__:
        assert ">>>" in getattr(indexplan_jax, name).__doc__
