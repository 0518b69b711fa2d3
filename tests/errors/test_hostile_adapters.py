"""Whatever is passed to a loader or sampler: what it reads is an answer, or an IndexPlanError.

As tests/errors/test_hostile_values.py does for the package itself, with its values.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import Any

import grain
import numpy as np
import pytest
import torch

import indexplan as ip
from indexplan_fetch import ShardLoader
from indexplan_jax.grain import PlanIterDataset
from indexplan_torch import (
    Bins,
    PlanBatchSampler,
    PlanLoader,
    PlanSampler,
    join,
)
from indexplan_torch.megatron import PlanIterator
from indexplan_torch.ranks import discover
from indexplan_torch.seeding import SeedWorker
from tests.adapters.small import Identity, as_they_are
from tests.errors.test_hostile_values import VALUES, Call, named, problem_of

PLAN = ip.Plan(ip.Sequential(12), batch_size=2, sub_epochs=2, remainder="drop")
RANKS = {"rank": 0, "world_size": 2}
FORM = {"nested": False, "item": None, "as_array": False, "keep_bins": True}
TOLD = {"partial": False, "compare": False}
STATE = PlanLoader(range(PLAN.order.num_samples), PLAN, rank=0, world_size=2).state_dict()


def read(kind: Callable[..., Any]) -> Callable[..., Any]:
    """Return what makes a loader or sampler, and reads a pass of it."""
    return lambda **given: list(kind(**given))


def loader(**given: Any) -> PlanLoader:
    """Make a loader that leaves samples as they are."""
    right: dict[str, Any] = {"dataset": Identity(12), "plan": PLAN, **RANKS, **given}
    return PlanLoader(**right, collate_fn=as_they_are)


def calls() -> Iterator[Call]:
    """Yield what the adapters make, and ask of it, with arguments that are right."""
    every: dict[str, Any] = {"plan": PLAN, **RANKS, "mesh": None, **FORM, **TOLD}
    yield "PlanBatchSampler", read(PlanBatchSampler), every
    yield "PlanBatchSampler, discovering", read(PlanBatchSampler), {"plan": PLAN, **FORM, **TOLD}
    again = {"batch_size": None, "drop_last": False, "sampler": None}
    yield "PlanBatchSampler, anew", read(PlanBatchSampler), {"plan": PLAN, **again}
    yield "PlanSampler", read(PlanSampler), {"plan": PLAN, **RANKS, "mesh": None, **TOLD}
    yield "PlanLoader", read(loader), {**every, "batch_sampler": None, "in_order": True}
    yield (
        "PlanLoader, unread",
        loader,
        {"dataset": range(12)},
    )  # what it raises when read is its own
    yield "discover", discover, {**RANKS, "mesh": None}
    for kind in (loader, sampler):
        name = kind.__name__
        yield f"{name}.set_epoch", after(kind, "set_epoch"), {"epoch": 1}
        yield f"{name}.sampler.set_epoch", after(kind, "sampler.set_epoch"), {"epoch": 1}
        where = {"epoch": 0, "sub_epoch": 1}
        yield f"{name}.set_epoch_and_sub_epoch", after(kind, "set_epoch_and_sub_epoch"), where
        load = after(kind, "load_state_dict")
        yield f"{name}.load_state_dict", load, {"state": STATE}
        of = lambda load=load, **state: load(state=state)  # noqa: E731
        yield f"{name}.load_state_dict of", of, {**STATE, "pass": 1}
        of = lambda load=load, **cursor: load(state={**STATE, "cursor": cursor})  # noqa: E731
        yield f"{name}.load_state_dict of a cursor of", of, STATE["cursor"]
    saved = iterator().save_state()
    counted = {"micro_batch_size": 2, "consumed_samples": 4}
    yield "PlanIterator", lambda **given: next(iterator(**given)), counted
    yield "PlanIterator.load_state", lambda state: iterator().load_state(state), {"state": saved}
    yield "PlanIterator.load_state of", lambda **state: iterator().load_state(state), saved
    yield "SeedWorker", lambda run, worker: SeedWorker(run)(worker), SEEDED
    yield "Bins", Bins, {"dataset": range(12), "join": list}
    yield "join", join, {"samples": [[1, 2], [3]]}
    yield (
        "join of a field",
        lambda value: join([{"input_ids": [1, 2], "more": value}]),
        {"value": 3},
    )


def iterator(**given: Any) -> PlanIterator:
    """Make an iterator of Megatron's."""
    right: dict[str, Any] = {"micro_batch_size": 2, "consumed_samples": 0, **RANKS, **given}
    return PlanIterator(range(12), PLAN.order, **right)


def sampler() -> PlanBatchSampler:
    """Make a sampler."""
    return PlanBatchSampler(PLAN, rank=0, world_size=2)


SEEDED = {"run": loader().run, "worker": 0}


def after(make: Callable[[], Any], method: str) -> Callable[..., Any]:
    """Return what calls a method of something new, and reads what comes."""

    def called(**given: Any) -> Any:
        made = make()
        attrgetter(method)(made)(**given)
        return len(made), made.cursor, list(made)

    return called


@pytest.mark.filterwarnings("ignore:cache_bytes must be at least 4096")  # if in time
def test_every_argument_of_a_shard_loader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is passed where shards are fetched: the same errors alone."""
    monkeypatch.chdir(tmp_path)
    np.save(tmp_path / "a.npy", np.arange(20))
    right = {
        "shards": ip.shard_sizes(tmp_path / "*.npy"),
        "open_shard": lambda file: np.load(file.path),
        "plan": ip.Plan(ip.Shuffle(20), world_size=2, batch_size=2),
        "rank": 0,
        "num_epochs": 1,
        "cache_dir": tmp_path / "cache",
        "cache_bytes": 10**6,
        "ranks_per_node": 2,
        "ahead": 2,
        "num_threads": 1,
        "tries": 1,
        "stall_timeout": 5.0,
        "keep_open": 3,
    }

    def made(**given: Any) -> Any:
        with ShardLoader(**given) as loader:
            return next(loader), loader.cursor

    made(**right)
    problems = {
        f"{argument}={named(value)}: {problem}"
        for argument in right
        for value in VALUES
        if (problem := problem_of(lambda: made(**{**right, argument: value})))  # noqa: B023
    }
    assert not problems, "\n".join(sorted(problems))


def of_grain(**given: Any) -> Any:
    """Read the beginning of a dataset of Grain's; its own errors are those of its own options."""
    options = {"read_options": grain.ReadOptions(num_threads=0, prefetch_buffer_size=0)}
    iterator = iter(PlanIterDataset(**{**options, **given}))
    return [*islice(iterator, 2)], iterator.get_state()


def resumed(state: Any) -> Any:
    """Continue a dataset from a state."""
    iterator = iter(PlanIterDataset(range(12), PLAN, SHARD, num_epochs=1))
    iterator.set_state(state)
    return [*iterator]


SHARD = grain.sharding.ShardOptions(0, 2)
GRAINS = {"plan": PLAN, "shard_options": SHARD, "num_epochs": 3}


def grain_calls() -> Iterator[Call]:
    """Yield what the adapter for Grain makes, and ask of it, with arguments that are right."""
    state = iter(PlanIterDataset(range(12), PLAN, SHARD)).get_state()
    yield "grain.PlanIterDataset", of_grain, {**GRAINS, "dataset": range(12)}
    yield "grain.set_state", resumed, {"state": state}
    yield "grain.set_state of", lambda **given: resumed(given), state
    of = lambda **cursor: resumed({**state, "cursor": cursor})  # noqa: E731
    yield "grain.set_state of a cursor of", of, state["cursor"]


def test_every_argument_of_the_adapter_for_grain() -> None:
    """What is passed where Grain reads: the same errors alone."""
    problems = set()
    for name, function, right in grain_calls():
        function(**right)
        for argument in right:
            for value in VALUES:
                if name == "grain.PlanIterDataset" and argument == "dataset":
                    value = [value] * 11  # noqa: PLW2901 (what no source is, is Grain's to refuse)
                problem = problem_of(lambda: function(**{**right, argument: value}))  # noqa: B023
                problems |= {f"{name}({argument}={named(value)}): {problem}"} if problem else set()
    assert not problems, "\n".join(sorted(problems))


@pytest.fixture
def _same_streams() -> Iterator[None]:
    """Put back the random states of this process."""
    states = random.getstate(), np.random.get_state(), torch.get_rng_state()  # noqa: NPY002
    yield
    random.setstate(states[0])
    np.random.set_state(states[1])  # noqa: NPY002
    torch.set_rng_state(states[2])


@pytest.mark.usefixtures("_same_streams")
def test_every_argument_of_the_adapters() -> None:
    """Nothing but an IndexPlanError, of one readable line with a cure, comes of a wrong value."""
    for _, function, right in calls():
        function(**right)  # is no error, so that what follows meets the value that is wrong
    problems = {
        f"{name}({argument}={named(value)}): {problem}"
        for name, function, right in calls()
        for argument in right
        for value in VALUES
        if (problem := problem_of(lambda: function(**{**right, argument: value})))  # noqa: B023
    }
    for name in ("batch_size", "shuffle", "sampler", "drop_last", "num_replicas"):
        problems |= {
            f"PlanLoader({name}={named(value)}): {problem}"
            for value in VALUES
            if (problem := problem_of(lambda: loader(**{name: value})))  # noqa: B023
        }
    assert not problems, "\n".join(sorted(problems))
