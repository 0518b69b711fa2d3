"""What is refused is refused by every question, however it is asked, and leaves plans as they were.

So are integers, flags and keywords, by every call. The sentences themselves are in errors.txt.
"""

from __future__ import annotations

import copy
import inspect
import json
import pickle
import re
from typing import Any

import numpy as np
import pytest
import torch

import indexplan as ip
import indexplan_fetch
import indexplan_torch
from indexplan.errors import in_file, invalid
from indexplan.keywords import PLACES, named
from indexplan_torch import endless
from tests.errors.catalogue.made import OPEN
from tests.errors.catalogue.numbers import RIGHT
from tests.support.refusals import CURSOR, PLAN, refuses

REWRITE = "restore what was written, or read it with the version of indexplan that wrote it"


@pytest.mark.parametrize("name", [name for name in dir(ip.Order) if name.startswith("ip_")])
def test_a_field_named_like_what_the_library_asks(name: str) -> None:
    """It would answer in place of the method, and batches would be others."""
    message = (
        "a field of Odd must be given another name, as orders have a method or property of that "
        f"name; got '{name}'; call it {name}_ or another word"
    )
    refuses(message, type, "Odd", (ip.Order,), {"__annotations__": {name: "int"}})
    assert type("Even", (ip.Order,), {"__annotations__": {f"{name}_": "int", "ip_of": "str"}})


@pytest.mark.parametrize("kind", [ip.Plan, ip.Cursor])
def test_strict_json(kind: Any) -> None:
    """Plans and cursors are read from objects with each of their fields, once, and no other."""
    right = json.loads((PLAN if kind is ip.Plan else CURSOR).to_json())
    what = f"a {kind.__name__.lower()}"
    for name in right:
        data = {key: value for key, value in right.items() if key != name}
        message = f"{what} must have the fields ['{name}']; got only {sorted(data)}; {REWRITE}"
        refuses(message, kind.from_json, json.dumps(data))
    message = f"{what} must have only the fields {sorted(right)}; got ['x']; {REWRITE}"
    refuses(message, kind.from_json, json.dumps({**right, "x": 1}))


INTEGERS = [
    (name, argument)
    for name, (_, given) in RIGHT.items()
    for argument, value in given.items()
    if type(value) is int
]
# text for a schedule is taken for a batch size, but not for a number
REBUILT = ("Plan of all", "PlanBatchSampler")  # the latter takes what trainers pass
NOT_WHOLE: list[Any] = ["1", "32", " 2 ", b"1", bytearray(b"2"), True, np.True_, 1.0, 2.5, 1e3]
NOT_WHOLE += [np.float64(2), float("nan"), 1j, "one", [None], object()]


@pytest.mark.parametrize("name", RIGHT)
def test_the_calls_are_right(name: str) -> None:
    """As they are, and with NumPy's integers; every integer that a call takes is among them."""
    call, given = RIGHT[name]
    call(**given)
    call(**{key: np.int64(each) if type(each) is int else each for key, each in given.items()})
    for parameter in inspect.signature(call).parameters.values():
        if parameter.annotation in ("int", "int | None") and name not in REBUILT:
            assert parameter.name in given


@pytest.mark.parametrize(("name", "argument"), INTEGERS)
def test_what_is_no_whole_number_is_refused(name: str, argument: str) -> None:
    """By the name of the argument, with what was given."""
    call, given = RIGHT[name]
    for value in NOT_WHOLE:
        with pytest.raises(ip.IndexPlanError):
            call(**{**given, argument: value})


@pytest.mark.parametrize(("name", "argument"), INTEGERS)
def test_what_is_out_of_range_is_refused(name: str, argument: str) -> None:
    """Right below the first number that the error names, and right above the last."""
    call, given = RIGHT[name]
    with pytest.raises(ip.IndexPlanError) as caught:
        call(**{**given, argument: "x"})
    found = re.search(r" from ([-0-9]+)(?: to ([-+*0-9 ]+[0-9]))?", caught.value.rule)
    if found is None:  # an index, or an array of them
        return
    first, last = (None if end is None else eval(end) for end in found.groups())  # noqa: S307
    for value in (first - 1, *(() if last is None else (last + 1,))):
        with pytest.raises(ip.IndexPlanError, match=f"; got {value}; "):
            call(**{**given, argument: value})


def test_integers_in_lists_are_integers() -> None:
    """Of any kind; an empty list too."""
    for values in ([1, np.int8(2)], [[1], [2]], [torch.tensor(2)], [np.array([3])], [], [[]]):
        assert ip.Shuffle(10).locate(0, values).shape == np.asarray(values).shape


# not ours to refuse: they take any keyword, or their class's __init__ is Python's or a tuple's
OTHERS = {"IndexPlanError", "PlanFileError", "Order", "Layer", "Column", "Dataset"}
OTHERS |= {"Shards", "register", "worker_seed"}

CALLS: dict[str, Any] = {
    **{name: getattr(ip, name) for name in ip.__all__ if callable(getattr(ip, name))},
    **{f"plot.{name}": getattr(ip.plot, name) for name in ip.plot.__all__},
    **{
        name: getattr(indexplan_torch, name)
        for name in ("PlanLoader", "PlanBatchSampler", "PlanSampler")
    },
    "Bins": indexplan_torch.Bins,
    "ShardedDataset": indexplan_torch.ShardedDataset,
    "PlanIterator": endless.PlanIterator,
    "ShardLoader": indexplan_fetch.ShardLoader,
}
CALLS = {name: call for name, call in CALLS.items() if name not in OTHERS}

POSITIONAL: dict[str, tuple[Any, ...]] = {
    "PlanLoader": (range(10), OPEN),
    "PlanIterator": (range(10), OPEN.order),
}
NEEDED: dict[str, dict[str, Any]] = {
    "PlanIterator": {"micro_batch_size": 2, "consumed_samples": 0, "rank": 0, "world_size": 1}
}
TORCHS = ("drop_last", "shuffle", "sampler", "batch_sampler", "num_replicas", "seed")


def refusal(name: str, keyword: str) -> ip.IndexPlanError:
    """Return how a call refuses a keyword."""
    with pytest.raises(ip.IndexPlanError) as caught:
        CALLS[name](*POSITIONAL.get(name, ()), **NEEDED.get(name, {}), **{keyword: 3})
    return caught.value


@pytest.mark.parametrize("name", CALLS)
def test_an_unknown_keyword_is_refused_by_every_call(name: str) -> None:
    """With the names that there are; it is a TypeError too, which Python itself raises."""
    error = refusal(name, "zzz")
    assert isinstance(error, TypeError)
    short = name.removeprefix("plot.")
    assert ("zzz", f"must be a keyword of {short}", "3") == (error.what, error.rule, error.got)
    has = [each for each in inspect.signature(CALLS[name]).parameters if each[0] != "_"]
    assert all(each in error.cure for each in has if each not in ("options", "batch_sampler"))


@pytest.mark.parametrize("keyword", [*TORCHS, "ranks_per_node", "num_workers", "batch_size"])
def test_a_keyword_of_another_call_is_refused_with_its_place(keyword: str) -> None:
    """Those of torch's loaders and samplers, and of others of ours, by every call without it."""
    for name, call in CALLS.items():
        of_workers = keyword == "num_workers" and name in ("PlanLoader", "PlanIterator")
        if keyword not in inspect.signature(call).parameters and not of_workers:
            error = refusal(name, keyword)
            assert PLACES[keyword] == error.cure, (name, str(error))


def test_signatures_are_those_that_were_written() -> None:
    """For editors and help: the decorator leaves them as they are."""
    assert ["num_samples", "seed"] == [*inspect.signature(ip.Shuffle).parameters]
    assert ["order", "world_size"] == [*inspect.signature(ip.Plan).parameters][:2]
    assert "plan" in inspect.signature(ip.plot.reading).parameters

    def anything(**given: Any) -> Any:
        return given

    assert named(anything) is anything


# What an error says, in parts, wherever it travels.

PARTS = ("size", "must be an integer", "'two'", "pass 2")
TEXT = "size must be an integer; got 'two'; pass 2"


def parts(error: ip.IndexPlanError) -> tuple[str, str, str | None, str]:
    """Return the parts of an error."""
    return error.what, error.rule, error.got, error.cure


@pytest.mark.parametrize("kind", [ip.IndexPlanError, ip.PlanFileError])
@pytest.mark.parametrize("travel", [lambda error: error, copy.copy, copy.deepcopy, pickle.dumps])
def test_parts(kind: type[ip.IndexPlanError], travel: object) -> None:
    """An error, its copy and its pickle have the same kind, parts and sentence."""
    error = travel(kind(*PARTS))
    error = pickle.loads(error) if isinstance(error, bytes) else error  # noqa: S301 (our own)
    assert (kind, PARTS, TEXT) == (type(error), parts(error), str(error))


def test_an_error_without_a_value() -> None:
    """Where nothing was got, nothing is said of it."""
    error = ip.IndexPlanError("verb", "needs PLAN", None, "see help")
    assert "verb needs PLAN; see help" == str(error)
    assert None is error.got


def test_what_is_not_text() -> None:
    """Paths and numbers are written as text; a value that is shown, as Python writes it."""
    assert ("3", "must be", "4", "go") == parts(ip.IndexPlanError(3, "must be", 4, "go"))
    assert TEXT == str(invalid("size", "an integer", "two", "pass 2"))


def test_a_text_alone() -> None:
    """A text is the whole message, as in a kind of order of one's own."""
    error = pickle.loads(pickle.dumps(ip.IndexPlanError("stop\nthere")))  # noqa: S301 (our own)
    assert ("stop\nthere", "", None, "") == parts(error)
    assert r"stop\nthere" == str(error)


def test_an_error_about_a_part_of_a_file() -> None:
    """A file's name comes before what is wrong in it, and the rest stays."""
    error = in_file("a.json", ip.IndexPlanError(*PARTS))
    assert ip.PlanFileError is type(error)
    assert ("a.json: size", *PARTS[1:]) == parts(error)
    assert f"a.json: {TEXT}" == str(error)
    assert "a.json: stop" == str(in_file("a.json", ip.IndexPlanError("stop")))
