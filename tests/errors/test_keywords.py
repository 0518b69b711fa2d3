"""Keywords that a call does not have are refused by name, with where they belong."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

import indexplan as ip
import indexplan_fetch
import indexplan_torch
from indexplan.keywords import PLACES, named
from indexplan_torch import endless, live

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

PLAN = ip.Plan(ip.Shuffle(12), batch_size=2)
POSITIONAL: dict[str, tuple[Any, ...]] = {
    "PlanLoader": (range(12), PLAN),
    "PlanIterator": (range(12), ip.Shuffle(12)),
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


def test_a_live_loader_says_it_too() -> None:
    """Before it looks at its plan or manager."""
    call: Callable[..., Any] = live.LiveLoader
    with pytest.raises(ip.IndexPlanError, match=r"^ranks_per_node must be left out of LiveLoader"):
        call(range(12), PLAN, None, ranks_per_node=8)
