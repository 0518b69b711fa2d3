"""Plans in Grain, in one process: tests/through/grain_checks.py has workers, JAX and Orbax."""

from __future__ import annotations

import gc
import json
import pickle
import random
from collections.abc import Iterator
from typing import Any

import grain
import numpy as np
import pytest

import indexplan as ip
from indexplan_jax.grain import PlanIterDataset, PlanSampler
from indexplan_jax.steps import Steps
from tests.support.grain_histories import draw, of_datasets, of_loaders, run
from tests.support.planned import planned, replaced

PLAN = ip.Plan(ip.Shuffle(100, seed=1), global_batch_size=12, remainder="carry")


@pytest.mark.parametrize("number", range(25))
def test_every_step_of_a_dataset_is_the_plans(number: int) -> None:
    """Whatever the order, remainder, processes, batch size and threads of each leg."""
    try:
        assert run(of_datasets, *draw(f"tests {number}", ["spread", "carry", "drop", "pad"])) >= 0
    except ip.IndexPlanError as error:
        assert "each step must hold a unit for every rank" in str(error)  # noqa: PT017 (or none)


@pytest.mark.parametrize("number", range(25))
def test_every_step_of_a_loader_is_the_plans(number: int) -> None:
    """Grain's DataLoader batches, and its own state resumes on others."""
    assert run(of_loaders, *draw(f"tests {number}", ["carry", "drop", "pad"])) >= 0


def datasets(world_size: int, plan: ip.Plan = PLAN, **options: Any) -> list[PlanIterDataset]:
    """Return the datasets of all processes."""
    samples = options.pop("samples", range(plan.order.num_samples))
    return [
        PlanIterDataset(samples, plan, grain.sharding.ShardOptions(rank, world_size), **options)
        for rank in range(world_size)
    ]


def samplers(world_size: int, plan: ip.Plan = PLAN, **options: Any) -> list[PlanSampler]:
    """Return the samplers of all processes."""
    return [
        PlanSampler(plan, grain.sharding.ShardOptions(rank, world_size), **options)
        for rank in range(world_size)
    ]


def read_as_workers(sampler: PlanSampler, num_steps: int) -> Iterator[list[int]]:
    """Yield batches as DataLoader's workers make them: each of every worker_count-th sample."""
    workers, rank = max(sampler.worker_count, 1), sampler._shard_options.shard_index
    for step in range(num_steps):
        first = step // workers * sampler.batch_size * workers + step % workers
        local = range(first, first + sampler.batch_size * workers, workers)
        ranks = sampler._shard_options.shard_count
        yield [sampler[each * ranks + rank].record_key for each in local]


@pytest.mark.parametrize("workers", [0, 1, 2, 3, 5])
def test_batches_are_the_same_with_any_number_of_workers(workers: int) -> None:
    """Grain's Batch is in each worker; the sampler gives it whole steps."""
    for rank, sampler in enumerate(samplers(3, worker_count=workers)):
        expected = [*PLAN.replace(world_size=3).batches(0, rank=rank)][:8]
        found = [*read_as_workers(sampler, 8)]
        assert [batch.tolist() for batch in expected] == found


def test_random_map_draws_by_epoch_and_sample() -> None:
    """A sample of an epoch looks the same on any number of processes and in any batch."""

    class Noise(grain.transforms.RandomMap):
        def random_map(self, element: int, rng: np.random.Generator) -> tuple[int, float]:
            return element, rng.random()

    plan = PLAN.replace(remainder="drop", global_batch_size=10)

    def looks(world_size: int, size: int, seed: int) -> list[dict[int, float]]:
        """Return how each sample looks in each of two epochs, through either API."""
        sized = plan.replace(global_batch_size=size)
        found: list[dict[int, float]] = [{}, {}, {}, {}]
        noisy = grain.MapDataset.range(100).random_map(Noise(), seed=seed)
        for dataset in datasets(world_size, sized, samples=noisy, num_epochs=2):
            for number, (numbers, noise) in enumerate(dataset):
                epoch = number * size // 100
                found[epoch] |= dict(zip(numbers.tolist(), noise.tolist(), strict=True))
        for sampler in samplers(world_size, sized, num_epochs=2, seed=seed):
            batch = grain.transforms.Batch(sampler.batch_size)
            loader = grain.DataLoader(
                data_source=range(100), sampler=sampler, operations=[Noise(), batch]
            )
            for number, (numbers, noise) in enumerate(loader):
                epoch = 2 + number * size // 100
                found[epoch] |= dict(zip(numbers.tolist(), noise.tolist(), strict=True))
        return found

    one, other = looks(1, 20, seed=3), looks(5, 10, seed=3)
    assert one == other
    assert [100] * 4 == [len(each) for each in one]
    assert 400 == len({look for each in one for look in each.values()})
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
    """Iterators of both kinds, by the files that Grain writes."""
    handler = grain.checkpoint.CheckpointHandler()
    sampler = samplers(1)[0]
    batch = grain.transforms.Batch(12)
    loader = grain.DataLoader(data_source=range(100), sampler=sampler, operations=[batch])
    for number, made in enumerate((loader, datasets(1)[0])):
        folder = tmp_path / str(number)
        folder.mkdir()
        first = iter(made)
        next(first)
        handler.save(folder, first)
        second = handler.restore(folder, iter(made))
        assert next(first).tolist() == next(second).tolist()
        (saved,) = folder.iterdir()
        assert "process_0-of-1.json" == saved.name
    assert 12 == sampler.cursor((tmp_path / "0/process_0-of-1.json").read_text()).position


def test_grain_refuses_a_state_of_another_sampler() -> None:
    """By the sampler's repr; resume takes it instead."""
    four, three = samplers(4)[0], samplers(3)[0]
    iterators = [
        iter(grain.DataLoader(data_source=range(100), sampler=each)) for each in (four, three)
    ]
    for _ in range(3):
        next(iterators[0])
    state = iterators[0].get_state()
    with pytest.raises(ValueError, match="Sampler in checkpoint does not match"):
        iterators[1].set_state(state)
    assert 12 == three.resume(state).plan.start.position
    assert repr(four) == repr(samplers(4)[3])  # so a process may load any other's state


def test_four_three_and_two_processes_read_the_epoch_once() -> None:
    """The state of a resumed run tells where the whole run stands."""
    order = ip.Shuffle(100, seed=1)
    state, read = None, []
    for world_size, num_steps in ((4, 3), (3, 4), (2, 1)):
        ranks = samplers(world_size, num_epochs=1)
        ranks = ranks if state is None else [each.resume(state) for each in ranks]
        iterators = [
            iter(
                grain.DataLoader(
                    data_source=range(100),
                    sampler=each,
                    operations=[grain.transforms.Batch(each.batch_size)],
                )
            )
            for each in ranks
        ]
        read += [next(each).tolist() for _ in range(num_steps) for each in iterators]
        state = iterators[-1].get_state()
    assert order.take(0, 0, 96).tolist() == sum(read, [])


def test_a_mixture_may_change_after_the_place_of_a_state() -> None:
    """Both kinds of state know the order, and only what was read of it has to agree."""
    sources = {"a": ip.Shuffle(50), "b": ip.Shuffle(60, seed=1)}
    mixture = ip.Mixture(sources, {"a": 1, "b": 1})
    plan = ip.Plan(mixture, global_batch_size=12, remainder="carry")
    later = ip.Plan(mixture.with_phase(24, {"a": 1, "b": 3}), global_batch_size=4)
    early = ip.Plan(mixture.with_phase(12, {"a": 1, "b": 3}), global_batch_size=4)
    (sampler,), (dataset,) = samplers(2, plan)[:1], datasets(1, plan)
    loader = iter(grain.DataLoader(data_source=range(110), sampler=sampler))
    iterator = iter(dataset)
    for _ in range(12):
        next(loader)
    next(iterator), next(iterator)
    for changed in (later, early):
        carried = samplers(1, changed.replace(remainder="carry"))[0]
        new = iter(datasets(1, changed)[0])
        if changed is later:
            assert 24 == carried.resume(loader.get_state()).plan.start.position
            new.set_state(iterator.get_state())
        else:
            with pytest.raises(ip.IndexPlanError, match="since which the weights are others"):
                carried.resume(loader.get_state())
            with pytest.raises(ip.IndexPlanError, match="since which the weights are others"):
                new.set_state(iterator.get_state())


def test_a_plan_may_be_open_or_resumed() -> None:
    """An open world size is Grain's; a cursor says where either begins."""
    resumed = PLAN.resume(PLAN.replace(world_size=5).cursor(0, step=2))
    opened, given = samplers(3, resumed)[1], samplers(3)[1]
    assert 24 == opened.plan.start.position
    assert repr(given) == repr(samplers(3, PLAN.replace(world_size=3))[1])
    batch = next(iter(datasets(3, resumed)[1]))
    assert PLAN.order.take(0, 28, 32).tolist() == batch.tolist()
    assert opened[1].record_key == batch[0]


def test_a_sampler_is_small_when_pickled_and_knows_its_end() -> None:
    """Grain pickles it for each worker; a resumed one continues there."""
    plan = PLAN.replace(remainder="drop").resume(PLAN.replace(world_size=1).cursor(0, step=3))
    (sampler,) = samplers(1, plan, num_epochs=2, seed=5)
    sampler[0]
    again = pickle.loads(pickle.dumps(sampler))  # noqa: S301 (its own)
    assert repr(sampler) == repr(again)
    assert 1000 > len(pickle.dumps(sampler))
    assert (8 - 3 + 8) * 12 == len(again)
    assert sampler[155].record_key == again[155].record_key
    for outside in (156, -1):
        with pytest.raises(IndexError):
            again[outside]
    (over,) = samplers(1, PLAN.resume(PLAN.cursor_at(1200)), num_epochs=12)
    assert 0 == len(over) == len(list(datasets(1, over.plan, num_epochs=12)[0]))


def test_many_epochs_are_counted_once() -> None:
    """An endless run is asked for any step."""
    sampler = samplers(1, ip.Plan(ip.Sequential(4), batch_size=4, remainder="drop"))[0]
    assert [0, 1, 2, 3] == [sampler[4 * 1000 + each].record_key for each in range(4)]


def test_options_that_grain_refuses_leave_nothing_to_close() -> None:
    """The error is Grain's alone, and no second one comes when the iterator is deleted."""
    (dataset,) = datasets(1, read_options="fast")
    with pytest.raises(AttributeError, match="num_threads"):
        iter(dataset)
    gc.collect()


@pytest.mark.parametrize("number", range(40))
def test_steps_of_a_long_run_are_those_that_are_counted(number: int) -> None:
    """By arithmetic or sub-epoch by sub-epoch, there are as many, at the same places."""
    draw = random.Random(f"steps {number}")  # noqa: S311 (no secret)
    size: Any = draw.choice([7, 12, (2, 3)])
    sized = {"global_batch_size": size} if draw.random() < 0.5 else {"batch_size": size}
    remainder = draw.choice(["spread", "carry", "drop", "pad"])
    plan = planned(
        ip.Shuffle(draw.choice([1, 3, 50, 101])),
        world_size=draw.randrange(1, 4),
        remainder=remainder,
        sub_epochs=draw.randrange(1, 4),
        **sized,
    )
    where = draw.randrange(3), draw.randrange(plan.sub_epochs)
    steps = plan.steps(*where)
    if draw.random() < 0.7 and steps:
        plan = plan.resume(plan.cursor(*where, step=draw.randrange(len(steps) + 1)))
        plan = replaced(plan, world_size=2).resume(plan.start)
    start = plan.start
    places = [(e, s) for e in range(start.epoch, 7) for s in range(plan.sub_epochs)]
    expected = [
        (*place, step)
        for place in places
        if place >= (start.epoch, start.sub_epoch)
        for step in plan.steps(*place)
    ]
    found = Steps(plan, 7)
    assert len(expected) == len(found)
    assert expected == [found[at] for at in range(len(expected))]
    with pytest.raises(IndexError):
        found[len(expected)]


@pytest.mark.parametrize("remainder", ["spread", "carry", "drop", "pad"])
def test_a_run_of_a_billion_epochs_is_not_counted_through(remainder: str) -> None:
    """Its length and its last step come by arithmetic."""
    plan = PLAN.replace(remainder=remainder, world_size=2, sub_epochs=2)
    steps = Steps(plan, 10**9)
    each = {"spread": 10, "carry": 100 / 12, "drop": 8, "pad": 10}[remainder]
    assert -(-each * 10**9 // 1) == len(steps)
    assert (10**9 - 1, 1) == steps[len(steps) - 1][:2]
