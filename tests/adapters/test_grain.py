"""Plans in Grain, in one process: tests/through/test_grain.py has workers, JAX and Orbax."""

from __future__ import annotations

import gc
import json
from typing import Any

import grain
import numpy as np
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

import indexplan as ip
from indexplan_jax.grain import PlanIterDataset
from indexplan_jax.steps import Steps
from tests.support.examples import examples
from tests.support.planned import planned
from tests.support.strategies import epochs_of, plans, steps_of

PLAN = ip.Plan(ip.Shuffle(100, seed=1), global_batch_size=12, remainder="carry")


AHEAD = [
    None,
    grain.ReadOptions(num_threads=0, prefetch_buffer_size=0),
    grain.ReadOptions(num_threads=2, prefetch_buffer_size=3),
]
ORDERS: list[ip.Order] = [
    ip.Shuffle(61, seed=3),
    ip.Repeat(ip.Shuffle(23, seed=3), copies=2),
    ip.Mixture({"a": ip.Shuffle(40, seed=3), "b": ip.Shuffle(9, seed=4)}, {"a": 2, "b": 1}),
    ip.Shuffle(7, seed=3),
]
# of a job its processes, its batch size, its part of the steps that are left, and its threads
JOBS = st.tuples(
    st.integers(1, 4),
    st.tuples(st.sampled_from(["batch_size", "global_batch_size"]), st.integers(1, 6)),
    st.floats(0, 1),
    st.sampled_from(AHEAD),
)


@examples(50)
@given(
    st.sampled_from(ORDERS),
    st.sampled_from(["spread", "carry", "drop", "pad"]),
    st.integers(1, 2),
    st.integers(1, 3),
    st.lists(JOBS, min_size=1, max_size=4),
)
def test_every_step_of_a_dataset_is_the_plans(
    order: ip.Order, remainder: str, sub_epochs: int, num_epochs: int, jobs: list[Any]
) -> None:
    """Whatever reads ahead, and through the states of other processes and batch sizes."""
    fields: dict[str, Any] = {"remainder": remainder, "sub_epochs": sub_epochs}
    state, cursor = "", None
    for world_size, (kind, size), part, ahead in [*jobs, (1, ("batch_size", 5), 1, None)]:
        size *= world_size if kind == "global_batch_size" else 1  # noqa: PLW2901
        plan = planned(order, world_size=world_size, **{**fields, kind: size})
        loops = [
            iter(each)
            for each in datasets(world_size, plan, num_epochs=num_epochs, read_options=ahead)
        ]
        if cursor is not None:
            plan = plan.resume(cursor)
            for loop in loops:
                loop.set_state(json.loads(state))
        left = [where for where in steps_of(plan, num_epochs) if where[0] < num_epochs]
        for epoch, sub_epoch, step in left[: round(part * len(left))]:
            batches = [plan.batch(epoch, sub_epoch, step=step, rank=r) for r in range(world_size)]
            if not all(map(len, batches)):
                reject()  # each step must hold a unit for every rank
            assert [each.tolist() for each in batches] == [next(loop).tolist() for loop in loops]
            cursor = plan.cursor(epoch, sub_epoch, step=step + 1)
        if part == 1:
            assert [None] * world_size == [next(loop, None) for loop in loops]
        states = [loop.get_state() for loop in loops]
        assert all(each == states[0] for each in states)
        cursor = plan.start if cursor is None else cursor
        assert cursor == ip.Cursor.from_dict(states[0]["cursor"])
        state = json.dumps(states[0])


def datasets(world_size: int, plan: ip.Plan = PLAN, **options: Any) -> list[PlanIterDataset]:
    """Return the datasets of all processes."""
    samples = options.pop("samples", range(plan.order.num_samples))
    return [
        PlanIterDataset(samples, plan, grain.sharding.ShardOptions(rank, world_size), **options)
        for rank in range(world_size)
    ]


def test_random_map_draws_by_epoch_and_sample() -> None:
    """A sample of an epoch looks the same on any number of processes and in any batch."""

    class Noise(grain.transforms.RandomMap):
        def random_map(self, element: int, rng: np.random.Generator) -> tuple[int, float]:
            return element, rng.random()

    plan = PLAN.replace(remainder="drop", global_batch_size=10)

    def looks(world_size: int, size: int, seed: int) -> list[dict[int, float]]:
        """Return how each sample looks in each of two epochs."""
        sized = plan.replace(global_batch_size=size)
        found: list[dict[int, float]] = [{}, {}]
        noisy = grain.MapDataset.range(100).random_map(Noise(), seed=seed)
        for dataset in datasets(world_size, sized, samples=noisy, num_epochs=2):
            for number, (numbers, noise) in enumerate(dataset):
                epoch = number * size // 100
                found[epoch] |= dict(zip(numbers.tolist(), noise.tolist(), strict=True))
        return found

    one, other = looks(1, 20, seed=3), looks(5, 10, seed=3)
    assert one == other
    assert [100] * 2 == [len(each) for each in one]
    assert 200 == len({look for each in one for look in each.values()})
    assert not {*one[0].values()} & {*looks(1, 20, seed=4)[0].values()}


def test_bins_and_parts_of_samples_are_lists_for_batch_fn() -> None:
    """A bin is a list of samples; where the order cuts samples, each comes with its part."""
    texts = [list(range(length)) for length in (5, 3, 9, 4)]
    windows = ip.Plan(ip.DocumentWindows([5, 3, 9, 4], 10), global_batch_size=2)
    (dataset,) = datasets(1, windows, samples=texts, num_epochs=1)
    (batch,) = [*dataset]
    bins = windows.replace(world_size=1).units(0, step=0, rank=0).bins
    expected = [[(texts[row], start, stop) for row, start, stop in each.tolist()] for each in bins]
    assert expected == batch

    rows = ip.Plan(ip.TokenBudget([5, 3, 9, 4], max_tokens=12, num_buckets=1), global_batch_size=1)
    flat = datasets(1, rows, samples=texts, num_epochs=1, batch_fn=lambda bins: sum(bins[0], []))
    assert 21 == sum(len(batch) for batch in flat[0])


def test_batches_of_structures_are_stacked_as_grain_does() -> None:
    """Each leaf has a first dimension of the batch; transformations of batches may follow."""
    rows = grain.MapDataset.range(100).map(lambda n: {"n": n, "row": np.full(3, n)})
    (dataset,) = datasets(1, samples=rows, num_epochs=1)
    batch = next(iter(dataset.map(lambda batch: {**batch, "double": batch["n"] * 2})))
    assert (12,) == batch["n"].shape == batch["double"].shape
    assert (12, 3) == batch["row"].shape


def test_a_state_passes_through_later_transformations() -> None:
    """Grain's own iterators hand it on, and load it on others."""
    (two, _) = (iter(each.map(np.sort)) for each in datasets(2))
    for _ in range(3):
        next(two)
    state = json.loads(json.dumps(two.get_state()))
    assert PLAN.cursor_at(36).to_dict() == state["cursor"]
    (one,) = (iter(each.map(np.sort)) for each in datasets(1))
    one.set_state(state)
    assert sorted(PLAN.order.take(0, 36, 48).tolist()) == next(one).tolist()


def test_a_plan_may_be_open_or_resumed() -> None:
    """An open world size is Grain's; a cursor says where either begins."""
    resumed = PLAN.resume(PLAN.replace(world_size=5).cursor(0, step=2))
    batch = next(iter(datasets(3, resumed)[1]))
    assert PLAN.order.take(0, 28, 32).tolist() == batch.tolist()
    over = PLAN.resume(PLAN.cursor_at(1200))
    assert [] == list(datasets(1, over, num_epochs=12)[0])


def test_options_that_grain_refuses_leave_nothing_to_close() -> None:
    """The error is Grain's alone, and no second one comes when the iterator is deleted."""
    (dataset,) = datasets(1, read_options="fast")
    with pytest.raises(AttributeError, match="num_threads"):
        iter(dataset)
    gc.collect()


@given(plans())
def test_steps_of_a_long_run_are_those_that_are_counted(plan: ip.Plan) -> None:
    """There are as many, at the same places, of a run that begins or goes on."""
    last = epochs_of(plan) + 2
    expected = steps_of(plan, last)
    found = Steps(plan, last)
    assert len(expected) == len(found)
    assert expected == [found[at] for at in range(len(expected))]
    with pytest.raises(IndexError):
        found[len(expected)]


# What the page on coming from Grain says of Grain.


def test_slices_of_unequal_length() -> None:
    """Ranks of a sliced dataset have other numbers of batches; those of a plan have not."""
    whole = [grain.MapDataset.range(97).shuffle(seed=0)[rank::4].batch(4) for rank in range(4)]
    assert [7, 6, 6, 6] == [len(list(part)) for part in whole]
    spread = ip.Plan(ip.Shuffle(97, seed=0), world_size=4, batch_size=4)
    assert [7, 7, 7, 7] == [len(list(spread.batches(epoch=0, rank=rank))) for rank in range(4)]


def test_shuffles() -> None:
    """The first of two ranks reads the first half, by any seed; seed 5 in epoch 1 is 6 in epoch 0.

    Of 65,537 samples one is read twice, and one never.
    """
    shard = grain.sharding.ShardOptions(0, 2)
    for seed in (0, 1):
        sampler = grain.samplers.IndexSampler(100, shard, shuffle=True, num_epochs=1, seed=seed)
        assert list(range(50)) == sorted(sampler[i].record_key for i in range(0, 100, 2))
        halves = ip.Plan(ip.Shuffle(100, seed=seed), world_size=2, batch_size=50)
        assert halves.indices(0, rank=0).max() > 90
    five, six = (grain.MapDataset.range(1000).shuffle(seed=seed) for seed in (5, 6))
    assert [five[1000 + i] for i in range(1000)] == [six[i] for i in range(1000)]
    ours = [ip.Shuffle(1000, seed=seed).take(epoch, 0, 1000) for seed, epoch in ((5, 1), (6, 0))]
    assert (ours[0] != ours[1]).any()
    shuffled = grain.MapDataset.range(65_537).shuffle(seed=0)
    assert shuffled[0] == shuffled[65_536]
    assert 65_537 == len(np.unique(ip.Shuffle(65_537, seed=0).take(0, 0, 65_537)))


def test_mix_gives_one_rank_the_small_source() -> None:
    """Shares of 7 to 1 on eight ranks."""
    sources = [grain.MapDataset.range(700), grain.MapDataset.range(700, 800)]
    mixed = grain.MapDataset.mix(sources, [7, 1])
    assert [0] * 7 + [100] == [sum(x >= 700 for x in mixed[rank::8]) for rank in range(8)]
    mixture = ip.Mixture({"a": ip.Shuffle(700), "b": ip.Shuffle(100, seed=1)}, {"a": 7, "b": 1})
    shares = ip.Plan(mixture, world_size=8, batch_size=1)
    small = [int((shares.indices(0, rank=rank) >= 700).sum()) for rank in range(8)]
    assert 100 == sum(small)
    assert min(small) > 5


def test_random_maps_after_slicing() -> None:
    """All ranks draw the same numbers."""
    draws = [
        grain.MapDataset.range(100)[rank::2].random_map(lambda _, rng: rng.random(), seed=0)
        for rank in range(2)
    ]
    assert draws[0][5] == draws[1][5]
