"""Whatever is passed for an argument, what comes out is an answer or an IndexPlanError.

Every argument of every public function, loader and sampler is replaced by every value that is none:
by what people pass by mistake, and by what breaks whoever looks at it.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from operator import attrgetter
from pathlib import Path
from types import GeneratorType
from typing import Any

import grain
import numpy as np
import pytest
import torch

import indexplan as ip
from indexplan.errors import LONGEST_MESSAGE
from indexplan.plan.plan import dict_of, plan_of
from indexplan.reports.benchmark import bench
from indexplan_fetch import ShardLoader
from indexplan_jax.grain import PlanIterDataset
from indexplan_torch import Bins, PlanBatchSampler, PlanLoader, PlanSampler, join
from indexplan_torch.megatron import PlanIterator
from indexplan_torch.ranks import discover
from indexplan_torch.seeding import SeedWorker
from tests.adapters.small import Identity, as_they_are
from tests.errors.catalogue.numbers import RIGHT
from tests.support.every_order import every_order


class Wrong:
    """An object of which every question is an error of its own."""

    def ask(self, *_: Any) -> Any:
        raise ZeroDivisionError

    __len__ = __index__ = __int__ = __float__ = __repr__ = __str__ = __iter__ = __fspath__ = ask
    __array__ = __bool__ = __getitem__ = __lt__ = __le__ = __gt__ = __ge__ = __contains__ = ask


def nested(depth: int) -> list[Any]:
    """Return a list in a list, and so on."""
    made: list[Any] = [1]
    for _ in range(depth):
        made = [made]
    return made


IN_ITSELF: list[Any] = []
IN_ITSELF.append(IN_ITSELF)
VALUES: list[Any] = [
    *(None, True, False, 0, -1, 7, 2**31, 2**63, 2**64, 10**5000, -(10**5000)),
    *(1.0, 0.5, 1e300, 1e-300, 2**40, 2**61, math.nan, math.inf, 1j),
    *(np.float64(2), np.int64(-3), np.uint64(2**63), np.True_),
    *("", "a", "a\0b", "\ud800", "\x1b[2J", "x" * 10**5, b"", b"a", bytearray(b"1"), "1", "4x4"),
    *([], (), {}, set(), [1, 2], (1, 2), (1.5,), [[1], [2, 3]], {1: 2, "a": 3}, {"a": Wrong()}),
    *(nested(900), nested(10**5), IN_ITSELF, [1] * 900, ["\ud800"], [None], [10**5000], range(3)),
    *(range(2**70), range(-3, 2**62), [2**40, 1, 1], {-1: 1}, [True, 2]),
    *(np.array(3), np.array([1.5]), np.array([]), np.array(["a"]), np.array([None]), np.zeros(3)),
    *(np.zeros((2, 2), np.int64), np.array([2**63], np.uint64), np.array([10**30], object)),
    *(Wrong(), object(), lambda *_: None, ..., iter([1, 2]), Path("nowhere"), ip.Sequential(3)),
    *(ip.Phase(at=0, size=2), ip.Plan(ip.Sequential(5), batch_size=2)),
]

ORDER = ip.BlockShuffle(50, block_size=4, window=3, seed=1)
PLAN = ip.Plan(ORDER, world_size=2, batch_size=[ip.Phase(0, (2, 2), {"a": 1})], sub_epochs=2)
CURSOR = PLAN.cursor(epoch=0, sub_epoch=0, step=1)
SOURCES = {"a": ip.Shuffle(5), "b": ip.Shuffle(6)}
MIXTURE = ip.Mixture(SOURCES, {"a": 1, "b": 2})

Call = tuple[str, Callable[..., Any], dict[str, Any]]


def read_plan(data: Any) -> ip.Plan:
    """Read a plan from what is in its JSON, or in a ledger's line or a directory's file."""
    return plan_of(data, None, None)


def functions() -> Iterator[Call]:
    """Yield every public function, with arguments that are right: those of RIGHT, and others."""
    for name, (call, right) in RIGHT.items():
        if not getattr(call, "__module__", "").startswith("indexplan_"):
            yield name, lambda call=call, **given: read_of(call(**given)), right
    arguments = {"sources": SOURCES, "weights": {"a": 1, "b": 2}, "epoch_size": 5, "seed": 1}
    yield "Mixture, all of it", ip.Mixture, arguments
    arguments = {"place": 3, "weights": {"a": 1, "b": 1, "c": 1}, "planned": "drop"}
    yield "with_phase", MIXTURE.with_phase, {**arguments, "sources": {"c": ip.Shuffle(7)}}
    yield "split", MIXTURE.split, {"indices": [1, 2]}
    arguments = {"labels": [1, 2, 2], "epoch_size": 7, "weights": [1, 2], "seed": 1}
    yield "ClassBalanced, weighted", ip.ClassBalanced, arguments
    extremes = lambda first, second: ip.ClassBalanced([1, 2], 5, [first, second])  # noqa: E731
    yield "ClassBalanced of weights", extremes, {"first": 1e300, "second": 1e300}
    subset = {"order": ip.Shuffle(3), "indices": [1, 2, 3], "num_samples": 5}
    yield "Subset, read", lambda **given: read_of(ip.Subset(**given)), subset
    of_shards = {"plan": PLAN, "shards": [20, 30]}
    where = {"epoch": 0, "sub_epoch": 0, "start_step": 0, "stop_step": 2, "ranks": [0, 1]}
    yield "reads", ip.reads, {**of_shards, **where, "most": 2}
    yield "traffic", ip.traffic, {**of_shards, "ranks_per_node": 1, "epochs": [0]}
    yield "Phase", ip.Phase, {"at": (1, 0), "size": (2, 3), "parameters": {"a": 1}}
    yield "Phase.to_dict", lambda **fields: ip.Phase(**fields).to_dict(), {"parameters": {"a": 1}}
    yield "Phase[]", lambda name: ip.Phase(parameters={"a": 1})[name], {"name": "a"}
    fields = {name: getattr(PLAN, name) for name in ("order", "world_size", "batch_size")}
    fields |= {"sub_epochs": 2, "remainder": "drop", "_resumed": None}
    yield "Plan, all of it", lambda **given: ip.Plan(**given).to_json(), fields
    yield "plan.replace", PLAN.replace, fields
    yield "resume", PLAN.resume, {"cursor": CURSOR}
    yield "diff", ip.diff, {"a": PLAN, "b": PLAN, "epochs": [0]}
    yield "explain", ip.explain, {"plan": PLAN, "index": 3, "epochs": [0]}
    yield "verify", ip.verify, {"plan": PLAN, "epochs": [0], "progress": None}
    yield "bench", bench, {"plan": None}
    for name in ("reading", "mixing"):
        yield f"plot.{name}", getattr(ip.plot, name), {"plan": None, "epoch": -1}
    yield from readers()
    yield from files()


def readers() -> Iterator[Call]:
    """Yield what reads JSON and dicts: whole, and with each field replaced."""
    mixed = ip.Plan(MIXTURE, world_size=1, batch_size=2)
    wholes: list[tuple[Callable[[Any], Any], dict[str, Any]]] = [
        (read_plan, dict_of(PLAN)),
        (ip.Cursor.from_dict, CURSOR.to_dict()),
        (lambda order: read_plan({**dict_of(mixed), "order": order}), MIXTURE.to_dict()),
        (
            lambda order: ip.Cursor.from_dict({**mixed.start.to_dict(), "order": order}),
            MIXTURE.to_dict(),
        ),
        (ip.Dataset.from_dict, ip.Dataset.scan("data").to_dict()),
    ]
    for number, (read, whole) in enumerate(wholes):
        yield f"fields of {number}", lambda read=read, **data: read(data), whole
    yield "Cursor.from_dict", ip.Cursor.from_dict, {"data": CURSOR.to_dict()}
    yield "Dataset.from_dict", ip.Dataset.from_dict, {"data": ip.Dataset.scan("data").to_dict()}
    for kind, right in ((ip.Plan, PLAN), (ip.Cursor, CURSOR)):
        yield f"{kind.__name__}.from_json", kind.from_json, {"text": right.to_json()}
    given = {"text": PLAN.to_json(), "order": PLAN.order}
    yield "Plan.from_json of an order", ip.Plan.from_json, given


def files() -> Iterator[Call]:
    """Yield what reads and writes files and plan directories."""
    yield "Dataset.scan", ip.Dataset.scan, {"path": "data", "pattern": "*"}
    dataset = ip.Dataset.scan("data")
    yield "check_same", dataset.check_same, {"built_for": dataset}
    given = {"path": "data", "kind": "npy", "whole_files": False, "count": False, "num_threads": 2}
    yield "shard_sizes", ip.shard_sizes, {**given, "progress": None}
    right: dict[str, Any] = {"plan": PLAN, "path": "right.plan", "epochs": [0], "dataset": None}
    right |= {"executor": None, "part": None, "progress": None, "units_per_chunk": 2**26}
    yield "save", ip.save, right
    yield "load", ip.load, {"path": "right.plan", "dataset": None}
    yield "Stored", ip.types.Stored, {"path": "right.plan"}
    export = {"plan": PLAN, "out": "exported", "epochs": [0], "format": "npy"}
    yield "export", ip.export, export


def read_of(made: Any) -> None:
    """Ask of what a call returns what a plan and a report ask."""
    if isinstance(made, ip.Order):
        num = made.num_units(0)
        made.take(0, 0, min(num, 3))
        made.offsets(1, num - 1, num)
        made.locate(0, [0])
        made.group_of([0])
        ip.Plan(made, batch_size=2).to_json()
    elif isinstance(made, ip.Plan):
        made.to_json()
    elif isinstance(made, GeneratorType):
        list(made)


def questions() -> Iterator[Call]:
    """Yield the questions that orders answer: those that all check alike, of a few orders."""
    runs, samples = {"epoch": 0, "starts": [0], "stops": [1]}, {"epoch": 0, "indices": [1]}
    orders = every_order()
    few = {"stored": ip.types.Stored("right.plan")}
    few |= {each: orders[each] for each in ("shuffle-v1", "document-windows-v1", "mixture-v1")}
    for name, order in few.items():
        for question in ("take", "offsets", "spans"):
            yield f"{name}.{question}", getattr(order, question), runs
        for question in ("locate", "locate_all", "count"):
            yield f"{name}.{question}", getattr(order, question), samples
    for name, order in orders.items():
        yield f"{name}.num_units", order.num_units, {"epoch": 0}
        yield f"{name}.group_of", order.group_of, {"indices": [1]}
        yield f"{name}.group_shares", order.group_shares, {"epoch": 0, "start": 0, "stop": 1}
        saved = {"saved": order.to_dict(), "epoch": 0, "position": 0}
        yield f"{name}.continues", order.continues, saved


TWELVE = ip.Plan(ip.Sequential(12), batch_size=2, sub_epochs=2, remainder="drop")
RANKS = {"rank": 0, "world_size": 2}
FORM = {"nested": False, "item": None, "as_array": False, "keep_bins": True}
TOLD = {"partial": False, "compare": False}


def read(kind: Callable[..., Any]) -> Callable[..., Any]:
    """Return what makes a loader or sampler, and reads a pass of it."""
    return lambda **given: list(kind(**given))


def loader(**given: Any) -> PlanLoader:
    """Make a loader that leaves samples as they are."""
    right: dict[str, Any] = {"dataset": Identity(12), "plan": TWELVE, **RANKS, **given}
    return PlanLoader(**right, collate_fn=as_they_are)


def sampler() -> PlanBatchSampler:
    """Make a sampler."""
    return PlanBatchSampler(TWELVE, rank=0, world_size=2)


def iterator(**given: Any) -> PlanIterator:
    """Make an iterator of Megatron's."""
    right: dict[str, Any] = {"micro_batch_size": 2, "consumed_samples": 0, **RANKS, **given}
    return PlanIterator(range(12), TWELVE.order, **right)


def after(make: Callable[[], Any], method: str) -> Callable[..., Any]:
    """Return what calls a method of something new, and reads what comes."""

    def called(**given: Any) -> Any:
        made = make()
        attrgetter(method)(made)(**given)
        return len(made), made.cursor, list(made)

    return called


def adapters() -> Iterator[Call]:
    """Yield what the adapters for torch make, and ask of it."""
    every: dict[str, Any] = {"plan": TWELVE, **RANKS, "mesh": None, **FORM, **TOLD}
    yield "PlanBatchSampler", read(PlanBatchSampler), every
    yield "PlanBatchSampler, discovering", read(PlanBatchSampler), {"plan": TWELVE, **FORM, **TOLD}
    again = {"batch_size": None, "drop_last": False, "sampler": None}
    yield "PlanBatchSampler, anew", read(PlanBatchSampler), {"plan": TWELVE, **again}
    yield "PlanSampler", read(PlanSampler), {"plan": TWELVE, **RANKS, "mesh": None, **TOLD}
    yield "PlanLoader", read(loader), {**every, "batch_sampler": None, "in_order": True}
    yield "PlanLoader, unread", loader, {"dataset": range(12)}  # when read, its errors are its own
    yield "discover", discover, {**RANKS, "mesh": None}
    state = loader().state_dict()
    for kind in (loader, sampler):
        name = kind.__name__
        yield f"{name}.set_epoch", after(kind, "set_epoch"), {"epoch": 1}
        yield f"{name}.sampler.set_epoch", after(kind, "sampler.set_epoch"), {"epoch": 1}
        load = after(kind, "load_state_dict")
        yield f"{name}.load_state_dict", load, {"state": state}
        of = lambda load=load, **state: load(state=state)  # noqa: E731
        yield f"{name}.load_state_dict of", of, {**state, "pass": 1}
        of = lambda load=load, **cursor: load(state={**state, "cursor": cursor})  # noqa: E731
        yield f"{name}.load_state_dict of a cursor of", of, state["cursor"]
    saved = iterator().save_state()
    counted = {"micro_batch_size": 2, "consumed_samples": 4}
    yield "PlanIterator", lambda **given: next(iterator(**given)), counted
    yield "PlanIterator.load_state", lambda state: iterator().load_state(state), {"state": saved}
    yield "PlanIterator.load_state of", lambda **state: iterator().load_state(state), saved
    seeded = {"run": loader().run, "worker": 0}
    yield "SeedWorker", lambda run, worker: SeedWorker(run)(worker), seeded
    yield "Bins", Bins, {"dataset": range(12), "join": list}
    yield "join", join, {"samples": [[1, 2], [3]]}
    more = lambda value: join([{"input_ids": [1, 2], "more": value}])  # noqa: E731
    yield "join of a field", more, {"value": 3}
    left_out = object()
    names = ("batch_size", "shuffle", "sampler", "drop_last", "num_replicas")
    of = lambda **given: loader(**{n: v for n, v in given.items() if v is not left_out})  # noqa: E731
    yield "PlanLoader of torch's", of, dict.fromkeys(names, left_out)


SHARD = grain.sharding.ShardOptions(0, 2)


def of_grain(**given: Any) -> Any:
    """Read the beginning of a dataset of Grain's; its own errors are those of its own options."""
    options = {"read_options": grain.ReadOptions(num_threads=0, prefetch_buffer_size=0)}
    iterator = iter(PlanIterDataset(range(12), **{**options, **given}))
    return [*islice(iterator, 2)], iterator.get_state()


def resumed(state: Any) -> Any:
    """Continue a dataset from a state."""
    iterator = iter(PlanIterDataset(range(12), TWELVE, SHARD, num_epochs=1))
    iterator.set_state(state)
    return [*iterator]


def adapters_for_grain() -> Iterator[Call]:
    """Yield what the adapter for Grain makes, and ask of it."""
    state = iter(PlanIterDataset(range(12), TWELVE, SHARD)).get_state()
    yield (
        "grain.PlanIterDataset",
        of_grain,
        {"plan": TWELVE, "shard_options": SHARD, "num_epochs": 3},
    )
    yield "grain.set_state", resumed, {"state": state}
    yield "grain.set_state of", lambda **given: resumed(given), state
    of = lambda **cursor: resumed({**state, "cursor": cursor})  # noqa: E731
    yield "grain.set_state of a cursor of", of, state["cursor"]


def shard_loaders() -> Iterator[Call]:
    """Yield what fetches shards."""
    np.save("a.npy", np.arange(20))

    def made(**given: Any) -> Any:
        with ShardLoader(**given) as loader:
            return next(loader), loader.cursor

    plan = ip.Plan(ip.Shuffle(20), world_size=2, batch_size=2)
    right = {"shards": ip.shard_sizes("*.npy"), "open_shard": lambda file: np.load(file.path)}
    right |= {"plan": plan, "rank": 0, "num_epochs": 1, "cache_dir": "cache", "cache_bytes": 10**6}
    right |= {"ranks_per_node": 2, "ahead": 2, "num_threads": 1, "tries": 1}
    yield "ShardLoader", made, {**right, "stall_timeout": 5.0, "keep_open": 3}


@pytest.fixture
def _right(here: Path) -> Iterator[None]:
    """Stand in a folder with a dataset and a plan directory, and put random states back."""
    (here / "data").mkdir()
    (here / "data/one").write_text("1")
    ip.save(PLAN, "right.plan")
    states = random.getstate(), np.random.get_state(), torch.get_rng_state()  # noqa: NPY002
    yield
    random.setstate(states[0])
    np.random.set_state(states[1])  # noqa: NPY002
    torch.set_rng_state(states[2])


def problem_of(call: Callable[[], Any]) -> str | None:
    """Return what is wrong with what a call ends with, if anything is."""
    try:
        call()
    except ip.IndexPlanError as error:
        text = str(error)
        if len(text) > LONGEST_MESSAGE + 10 or not text.isprintable():
            return f"a message that nobody can read: {text[:99]!a}"
        if not re.search(r"; [^;]*$", text):
            return f"a message without a cure: {text[:99]!a}"
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:99]!a}"
    return None


def named(value: object) -> str:
    """Write a value for whoever mends what it broke."""
    try:
        return repr(value)[:60]
    except Exception:
        return type(value).__name__


@pytest.mark.usefixtures("_right")
@pytest.mark.filterwarnings("ignore:cache_bytes must be at least 4096")  # if in time
@pytest.mark.parametrize(
    "calls", [functions, questions, adapters, adapters_for_grain, shard_loaders]
)
def test_every_argument(calls: Callable[[], Iterable[Call]]) -> None:
    """Nothing but an IndexPlanError, of one readable line with a cure, comes of a wrong value."""
    problems = set()
    for name, function, right in calls():
        if calls not in (functions, questions):
            function(**right)  # is no error, so that what follows meets the value that is wrong
        for argument in right:
            for value in VALUES:
                problem = problem_of(lambda: function(**{**right, argument: value}))  # noqa: B023
                problems |= {f"{name}({argument}={named(value)}): {problem}"} if problem else set()
    assert not problems, "\n".join(sorted(problems))
