"""Plans in Grain, in one process: tests/through/grain_checks.py has workers, JAX and Orbax."""

from __future__ import annotations

import gc
import json
from typing import Any

import grain
import numpy as np
import pytest
from hypothesis import given

import indexplan as ip
from indexplan_jax.grain import PlanIterDataset
from indexplan_jax.steps import Steps
from tests.support.grain_histories import draw, run
from tests.support.strategies import epochs_of, plans, steps_of

PLAN = ip.Plan(ip.Shuffle(100, seed=1), global_batch_size=12, remainder="carry")


@pytest.mark.parametrize("number", range(25))
def test_every_step_of_a_dataset_is_the_plans(number: int) -> None:
    """Whatever the order, remainder, processes, batch size and threads of each leg."""
    try:
        assert run(*draw(f"tests {number}")) >= 0
    except ip.IndexPlanError as error:
        assert "each step must hold a unit for every rank" in str(error)  # noqa: PT017 (or none)


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


def test_an_error_loses_no_batch() -> None:
    """The next call returns what the failed one would have, threads or none."""

    class Failing:
        def __init__(self) -> None:
            self.failed = 0

        def __len__(self) -> int:
            return 100

        def __getitem__(self, index: int) -> int:
            if index in {7, 50} and self.failed < 5:
                self.failed += 1
                raise OSError("the disk is away")
            return index

    for ahead in (None, grain.ReadOptions(num_threads=0, prefetch_buffer_size=0)):
        (dataset,) = datasets(1, samples=Failing(), num_epochs=1, read_options=ahead)
        (right,) = datasets(1, num_epochs=1)
        iterator, found, failed = iter(dataset), [], 0
        while True:
            try:
                found.append(next(iterator).tolist())
            except OSError:
                failed += 1
            except StopIteration:
                break
        assert failed >= 2
        assert [batch.tolist() for batch in right] == found


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


def test_grains_checkpoint_handler_saves_and_restores(tmp_path: Any) -> None:
    """By the files that Grain writes."""
    handler, (made,) = grain.checkpoint.CheckpointHandler(), datasets(1)
    first = iter(made)
    next(first)
    handler.save(tmp_path, first)
    second = handler.restore(tmp_path, iter(made))
    assert next(first).tolist() == next(second).tolist()
    (saved,) = tmp_path.iterdir()
    assert "process_0-of-1.json" == saved.name


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
