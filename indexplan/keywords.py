"""Refuse keywords that a call does not have, and say where they belong.

A decorator does it, so the signatures that type checkers and editors see stay exact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from inspect import CO_VARKEYWORDS
from typing import Any, TypeVar

from indexplan.errors import IndexPlanError, did_you_mean, shown

CallType = TypeVar("CallType", bound=Callable[..., Any])

_PLAN = "indexplan.Plan(order, {}=...)"
_LOADER = "indexplan_torch.PlanLoader(dataset, plan, {}=...)"
_SHARDED = "indexplan_torch.ShardedDataset(shards, open_shard, cache_dir=..., {}=...)"

# what people type at another place than this library's, or know from torch, and where it belongs
PLACES = {
    "seed": "give it to the order: indexplan.Shuffle(num_samples, seed=...)",
    "generator": "give a seed to the order: indexplan.Shuffle(num_samples, seed=...)",
    "shuffle": "choose the order: indexplan.Shuffle(num_samples), or Sequential without shuffling",
    "drop_last": 'say it in the plan: indexplan.Plan(order, batch_size=..., remainder="drop")',
    "replacement": "choose the order: indexplan.Weighted(weights) reads samples several times",
    "sampler": "leave it out: the plan says what is read, by its order",
    "batch_sampler": "leave it out: the plan says what is read, by its order",
    "num_replicas": "say world_size=...: indexplan.Plan(order, world_size=..., batch_size=...)",
    "rank": "ask for a rank: plan.batch(epoch, step=..., rank=...), or PlanLoader finds it",
    "num_samples": "give it to the order: indexplan.Shuffle(num_samples)",
    "weights": "give them to the order: indexplan.Weighted(weights), or Mixture(sources, weights)",
    "dataset": "give it to the loader: indexplan_torch.PlanLoader(dataset, plan)",
    "epoch": "name it in each call: plan.batch(epoch, step=..., rank=...)",
    "epochs": "loop over them: for epoch in range(epochs)",
    "num_epochs": "loop over them: for epoch in range(num_epochs)",
    **{
        name: f"give it to the plan: {_PLAN.format(name)}"
        for name in ("world_size", "batch_size", "global_batch_size", "sub_epochs", "remainder")
    },
    "balance": "give it to the plan: indexplan.Plan(order, batch_size=..., balance=...)",
    "order": "give it to the plan: indexplan.Plan(order, batch_size=...)",
    **{
        name: f"give it to the loader: {_LOADER.format(name)}"
        for name in (
            *("num_workers", "collate_fn", "pin_memory", "timeout", "worker_init_fn"),
            *("multiprocessing_context", "prefetch_factor", "persistent_workers", "in_order"),
            *("mesh", "nested", "item", "as_array", "keep_bins", "partial", "compare", "again"),
            "ledger",
        )
    },
    **{
        name: f"give it to the dataset: {_SHARDED.format(name)}"
        for name in ("ranks_per_node", "cache_bytes", "ahead")
    },
    "cache_dir": f"give it to the dataset: {_SHARDED.replace(', {}=...', '')}",
}


class UnknownKeywordError(IndexPlanError, TypeError):
    """Raised for a keyword that a call does not have; a `TypeError` too, as Python's own is."""


def unknown(call: str, name: str, value: object, known: Iterable[str]) -> UnknownKeywordError:
    """Return the error of a keyword that a call does not have: where it belongs, or what is near.

    Parameters
    ----------
    call
        The name of the class or function that was called.
    name, value
        The keyword and what it was given.
    known
        The keywords that the call does have.
    """
    names = [each for each in known if each[0] != "_"]
    near = did_you_mean(name, names)
    if name in PLACES and not (near and "epoch" in name):
        return UnknownKeywordError(name, f"must be left out of {call}", shown(value), PLACES[name])
    cure = f"{near}it takes {', '.join(names)}" if names else "it takes none"
    return UnknownKeywordError(name, f"must be a keyword of {call}", shown(value), cure)


def check(call: str, given: Mapping[str, Any], known: Iterable[str]) -> None:
    """Raise `IndexPlanError` for the first keyword of a call that is not among the known ones."""
    for name in given:
        if name not in (names := [*known]):
            raise unknown(call, name, given[name], names)


def named(call: CallType) -> CallType:
    """Let a class or function refuse unknown keywords with where they belong; a decorator.

    Of a class, it is put outside `dataclass`, whose `__init__` it wraps. `register` puts it around
    each kind of order.
    """
    is_class = isinstance(call, type)
    function: Any = getattr(call, "__init__") if is_class else call  # noqa: B009 (of a class)
    code = getattr(function, "__code__", None)
    if code is None or code.co_flags & CO_VARKEYWORDS or hasattr(function, "__wrapped__"):
        return call  # it takes any keyword, or refuses some already
    first = 1 if is_class else 0
    count = code.co_argcount + code.co_kwonlyargcount
    names = tuple(code.co_varnames[max(first, code.co_posonlyargcount) : count])
    known, title = frozenset(names), call.__name__

    @wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        if not kwargs.keys() <= known:
            check(title, kwargs, names)
        return function(*args, **kwargs)

    if is_class:
        setattr(call, "__init__", checked)  # noqa: B010 (as dataclass did)
        return call
    return checked  # type: ignore[return-value]  # of the same signature
