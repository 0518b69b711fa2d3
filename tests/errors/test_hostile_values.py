"""Whatever is passed for an argument, what comes out is an answer or an IndexPlanError.

Every argument of every public function is replaced by every value that is none: by what people pass
by mistake, and by what breaks whoever looks at it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import GeneratorType
from typing import Any

import numpy as np
import pytest

import indexplan as ip
from indexplan.errors import LONGEST_MESSAGE
from indexplan.plan.plan import dict_of, plan_of
from indexplan.reports.benchmark import bench
from tests.errors.catalogue.numbers import RIGHT
from tests.support.every_order import every_order


class Wrong:
    """An object of which every question is an error of its own."""

    def ask(self, *_: Any) -> Any:
        raise ZeroDivisionError

    __len__ = __index__ = __int__ = __float__ = __repr__ = __str__ = __iter__ = __fspath__ = ask
    __array__ = __bool__ = __getitem__ = __lt__ = __le__ = __gt__ = __ge__ = __contains__ = ask


def read_plan(data: Any) -> ip.Plan:
    """Read a plan from what is in its JSON, or in a ledger's line or a directory's file."""
    return plan_of(data, None, None)


def nested(depth: int) -> list[Any]:
    """Return a list in a list, and so on."""
    made: list[Any] = [1]
    for _ in range(depth):
        made = [made]
    return made


def in_itself() -> list[Any]:
    """Return a list that holds itself."""
    made: list[Any] = []
    made.append(made)
    return made


VALUES: list[Any] = [
    *(None, True, False, 0, -1, 7, 2**31, 2**63, 2**64, 10**5000, -(10**5000)),
    *(
        1.0,
        0.5,
        1e300,
        1e-300,
        2**40,
        2**61,
        math.nan,
        math.inf,
        1j,
        np.float64(2),
        np.int64(-3),
        np.uint64(2**63),
        np.True_,
    ),
    *("", "a", "a\0b", "\ud800", "\x1b[2J", "x" * 10**5, b"", b"a", bytearray(b"1"), "1", "4x4"),
    *([], (), {}, set(), [1, 2], (1, 2), (1.5,), [[1], [2, 3]], {1: 2, "a": 3}, {"a": Wrong()}),
    *(nested(900), nested(10**5), in_itself(), [1] * 900, ["\ud800"], [None], [10**5000], range(3)),
    *(range(2**70), range(-3, 2**62), [2**40, 1, 1], {-1: 1}, [True, 2]),
    *(np.array(3), np.array([1.5]), np.array([]), np.array(["a"]), np.array([None]), np.zeros(3)),
    *(np.zeros((2, 2), np.int64), np.array([2**63], np.uint64), np.array([10**30], object)),
    *(Wrong(), object(), lambda *_: None, ..., iter([1, 2]), Path("nowhere"), ip.Sequential(3)),
    *(ip.Phase(at=0, size=2), ip.Plan(ip.Sequential(5), batch_size=2)),
]

ORDER = ip.BlockShuffle(50, block_size=4, window=3, seed=1)
PLAN = ip.Plan(ORDER, world_size=2, batch_size=[ip.Phase(0, (2, 2), {"a": 1})], sub_epochs=2)
CURSOR = PLAN.cursor(epoch=0, sub_epoch=0, step=1)
WHERE = {"epoch": 0, "sub_epoch": 0}
STEPS = {**WHERE, "rank": 0, "start_step": 0, "stop_step": 2}

Call = tuple[str, Callable[..., Any], dict[str, Any]]


def calls() -> Iterator[Call]:
    """Yield every public function, with arguments that are right: those of RIGHT, and others."""
    for name, (call, right) in RIGHT.items():
        if not getattr(call, "__module__", "").startswith("indexplan_"):
            yield name, lambda call=call, **given: read_of(call(**given)), right
    sources = {"a": ip.Shuffle(5), "b": ip.Shuffle(6)}
    mixture = ip.Mixture(sources, {"a": 1, "b": 2})
    arguments = {"sources": sources, "weights": {"a": 1, "b": 2}, "epoch_size": 5, "seed": 1}
    yield "Mixture, all of it", ip.Mixture, arguments
    arguments = {"place": 3, "weights": {"a": 1, "b": 1, "c": 1}, "planned": "drop"}
    yield "with_phase", mixture.with_phase, {**arguments, "sources": {"c": ip.Shuffle(7)}}
    yield "split", mixture.split, {"indices": [1, 2]}
    yield "group_of", mixture.group_of, {"indices": [1, 2]}
    arguments = {"labels": [1, 2, 2], "epoch_size": 7, "weights": [1, 2], "seed": 1}
    yield "ClassBalanced, weighted", ip.ClassBalanced, arguments
    subset = {"order": ip.Shuffle(3), "indices": [1, 2, 3], "num_samples": 5}
    yield "Subset, read", lambda **given: read_of(ip.Subset(**given)), subset
    mixed = ip.Plan(mixture, world_size=1, batch_size=2)
    arguments = {"plan": PLAN, "shards": [20, 30], **STEPS, "ranks": [0, 1], "most": 2}
    del arguments["rank"]
    yield "reads", ip.reads, arguments
    arguments = {"plan": PLAN, "shards": [20, 30], "ranks_per_node": 1, "epochs": [0]}
    yield "traffic", ip.traffic, arguments
    for name, value in mixture.to_dict().items():
        fields = dict_of(mixed), mixed.cursor(0, step=1).to_dict()
        for read, whole in zip((read_plan, ip.Cursor.from_dict), fields, strict=True):
            edit = lambda value, name=name, read=read, whole=whole: read(  # noqa: E731
                {**whole, "order": {**whole["order"], name: value}}
            )
            yield f"{read.__name__} of an order's {name}", edit, {"value": value}
    extremes = lambda first, second: ip.ClassBalanced([1, 2], 5, [first, second])  # noqa: E731
    yield "ClassBalanced of weights", extremes, {"first": 1e300, "second": 1e300}
    for each in every_order().values():
        yield from questions(each)
    for order in (ORDER, ip.Shuffle(50), ip.Sequential(50), ip.types.Stored("right.plan")):
        yield f"{order}.take", order.take, {"epoch": 0, "starts": [1, 2], "stops": [3, 4]}
        yield f"{order}.take at", order.take, {"epoch": 0, "starts": [1, 2]}
        yield f"{order}.offsets", order.offsets, {"epoch": 0, "starts": 1, "stops": 3}
        yield f"{order}.locate", order.locate, {"epoch": 0, "indices": [1, 2]}
    yield "Phase", ip.Phase, {"at": (1, 0), "size": (2, 3), "parameters": {"a": 1}}
    yield "Phase.to_dict", lambda **fields: ip.Phase(**fields).to_dict(), {"parameters": {"a": 1}}
    yield "Phase[]", lambda name: ip.Phase(parameters={"a": 1})[name], {"name": "a"}
    fields = {name: getattr(PLAN, name) for name in ("order", "world_size", "batch_size")}
    fields |= {"sub_epochs": 2, "remainder": "drop", "_resumed": None}
    yield "Plan", ip.Plan, fields
    yield "Plan of batches", lambda **f: ip.Plan(**f).to_json(), fields
    yield "Plan of global batches", ip.Plan, {"order": ORDER, "global_batch_size": 8}
    yield "plan.replace", PLAN.replace, fields
    stored = ip.load("right.plan")
    yield "account", stored.account, WHERE
    for name in ("batch", "units"):
        yield name, getattr(stored, name), {**WHERE, "step": 0, "rank": 0}
    yield "batches", lambda **where: list(stored.batches(**where)), STEPS
    yield "indices", stored.indices, STEPS
    yield "locate", stored.locate, {"index": [1, 2], "epoch": 0}
    yield "resume", PLAN.resume, {"cursor": CURSOR}
    for kind, right in ((ip.Plan, PLAN), (ip.Cursor, CURSOR)):
        yield f"{kind.__name__}.from_json", kind.from_json, {"text": right.to_json()}
    given = {"text": PLAN.to_json(), "order": PLAN.order}
    yield "Plan.from_json of an order", ip.Plan.from_json, given
    for read, right in ((read_plan, dict_of(PLAN)), (ip.Cursor.from_dict, CURSOR.to_dict())):
        if read is not read_plan:  # text that is no object is refused before
            yield f"{read.__name__}", read, {"data": right}
        for name in right:
            edit = lambda value, read=read, right=right, name=name: read(  # noqa: E731
                {**right, name: value}
            )
            yield f"{read.__name__} of {name}", edit, {"value": right[name]}
    yield "diff", ip.diff, {"a": PLAN, "b": PLAN, "epochs": [0]}
    yield "explain", ip.explain, {"plan": PLAN, "index": 3, "epochs": [0]}
    yield "verify", ip.verify, {"plan": PLAN, "epochs": [0], "progress": None}
    yield "bench", bench, {"plan": None}
    yield "Dataset.scan", ip.Dataset.scan, {"path": "data", "pattern": "*"}
    dataset = ip.Dataset.scan("data")
    yield "Dataset.from_dict", ip.Dataset.from_dict, {"data": dataset.to_dict()}
    for name, value in dataset.to_dict().items():
        edit = lambda value, name=name: ip.Dataset.from_dict(  # noqa: E731
            {**dataset.to_dict(), name: value}
        )
        yield f"Dataset.from_dict of {name}", edit, {"value": value}
    given = {"path": "data", "kind": "npy", "whole_files": False, "count": False, "num_threads": 2}
    yield "shard_sizes", ip.shard_sizes, {**given, "progress": None}
    yield "check_same", dataset.check_same, {"built_for": dataset}
    right: dict[str, Any] = {"plan": PLAN, "path": "right.plan", "epochs": [0], "dataset": None}
    right |= {"executor": None, "part": None, "progress": None, "units_per_chunk": 2**26}
    yield "save", ip.save, right
    yield "load", ip.load, {"path": "right.plan", "dataset": None}
    yield "Stored", ip.types.Stored, {"path": "right.plan"}
    export = {"plan": PLAN, "out": "exported", "epochs": [0], "format": "npy"}
    yield "export", ip.export, export
    for name in ("reading", "mixing"):
        yield f"plot.{name}", getattr(ip.plot, name), {"plan": None, "epoch": -1}


def read_of(made: Any) -> None:
    """Ask of what a call returns what a plan and a report ask."""
    if isinstance(made, ip.Order):
        look_at(made)
    elif isinstance(made, ip.Plan):
        made.to_json()
    elif isinstance(made, GeneratorType):
        list(made)


def look_at(order: ip.Order) -> None:
    """Ask of an order what a plan and a report ask."""
    num = order.num_units(0)
    order.take(0, 0, min(num, 3))
    order.offsets(1, num - 1, num)
    order.locate(0, [0])
    order.group_of([0])
    ip.Plan(order, batch_size=2).to_json()


def questions(order: ip.Order) -> Iterator[Call]:
    """Yield the questions that any order answers."""
    runs, samples = {"epoch": 0, "starts": 0, "stops": 1}, {"epoch": 0, "indices": [1]}
    asked: dict[str, dict[str, Any]] = {
        "num_units": {"epoch": 0},
        "group_of": {"indices": [1]},
        "take": runs,
        "offsets": runs,
        "spans": runs,
        "locate": samples,
        "locate_all": samples,
        "count": samples,
        "group_shares": {"epoch": 0, "start": 0, "stop": 1},
        "continues": {"saved": order.to_dict(), "epoch": 0, "position": 0},
    }
    for name, right in asked.items():
        yield f"{order.algorithm} {name}", getattr(order, name), right


@pytest.fixture
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand in a folder with a dataset and a plan directory."""
    monkeypatch.chdir(tmp_path)
    Path("data").mkdir()
    Path("data/one").write_text("1")
    ip.save(PLAN, "right.plan")


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


@pytest.mark.usefixtures("_here")
def test_every_argument_of_every_function() -> None:
    """Nothing but an IndexPlanError, of one readable line with a cure, comes of a wrong value."""
    problems = {
        f"{name}({argument}={named(value)}): {problem}"
        for name, function, right in calls()
        for argument in right
        for value in VALUES
        if (problem := problem_of(lambda: function(**{**right, argument: value})))  # noqa: B023
    }
    assert not problems, "\n".join(sorted(problems))
