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
from indexplan_torch import endless, live, token_rows

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
    "TokenRows": token_rows.TokenRows,
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


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("keyword", [*TORCHS, "ranks_per_node", "num_workers", "batch_size"])
def test_a_keyword_of_another_call_is_refused_with_its_place(name: str, keyword: str) -> None:
    """Those of torch's loaders and samplers, and of others of ours."""
    if keyword in inspect.signature(CALLS[name]).parameters or (
        keyword == "num_workers" and name in ("PlanLoader", "PlanIterator")
    ):
        return
    error = refusal(name, keyword)
    assert PLACES[keyword] == error.cure, str(error)


@pytest.mark.parametrize("keyword", PLACES)
def test_the_place_of_a_keyword_has_it(keyword: str) -> None:
    """Each place that is named is one where the keyword, or what is named instead, is taken."""
    cure = PLACES[keyword]
    calls = {
        "indexplan.Shuffle(": ip.Shuffle,
        "indexplan.Plan(": ip.Plan,
        "indexplan_torch.PlanLoader(": indexplan_torch.PlanLoader,
        "indexplan_torch.ShardedDataset(": indexplan_torch.ShardedDataset,
        "plan.batch(": ip.Plan.batch,
        "indexplan.Weighted(": ip.Weighted,
    }
    for start, call in calls.items():
        if start not in cure:
            continue
        inner = cure.partition(start)[2].partition(")")[0]
        words = [each.partition("=")[0].strip() for each in inner.split(",")]
        parameters = {*inspect.signature(call).parameters}
        if "options" in parameters:
            parameters |= {*indexplan_torch.loader.Options.__annotations__}
        assert {*words} <= parameters, (keyword, words)


def test_cures_work() -> None:
    """Each kind of place, followed."""
    order = ip.Shuffle(12, seed=3)
    plan = ip.Plan(order, world_size=2, batch_size=2, remainder="drop", sub_epochs=2)
    assert 2 == len(plan.batch(0, 0, step=0, rank=1))
    loader = indexplan_torch.PlanLoader(range(12), ip.Plan(order, batch_size=2), num_workers=0)
    assert 6 == len(list(loader))
    assert 9 == ip.Weighted([1, 2, 1], epoch_size=9).num_units(0)


def test_did_you_mean() -> None:
    """A slip of the pen is told the nearest name."""
    with pytest.raises(ip.IndexPlanError, match=r"did you mean batch_size\? it takes order"):
        ip.Plan(ip.Shuffle(9), batchsize=3)  # type: ignore[call-arg]
    with pytest.raises(ip.IndexPlanError, match=r"did you mean world_size\?"):
        PLAN.replace(worldsize=3)  # type: ignore[call-arg]
    with pytest.raises(ip.IndexPlanError, match=r"did you mean num_workers\?"):
        indexplan_torch.PlanLoader(range(12), PLAN, num_worker=3)  # type: ignore[call-arg]


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
