"""Do all ranks read the same plan, and each its own part? Compared once, at their first pass.

They compare through the process group's store, not by a collective: that needs no device, and
disturbs no communicator. Each rank makes a few requests, however many ranks there are.
"""

from __future__ import annotations

import json
import zlib
from contextlib import suppress
from datetime import timedelta
from typing import Any

import torch.distributed

from indexplan import IndexPlanError, Plan
from indexplan.errors import difference_in_words
from indexplan_torch.versions import private

_SWITCH = "pass compare=False to a loader that not all ranks read"
_MOVES = "move to it at the same step, "
_LEAVING = timedelta(seconds=10)  # a rank's last requests take milliseconds


def compare(
    plan: Plan,
    rank: int,
    ranks: tuple[int, ...],
    alike: dict[str, Any],
) -> None:
    """Wait for all of these ranks, and check that each begins the same pass of the same plan.

    Parameters
    ----------
    plan : Plan
        With its world_size.
    rank : int
        Whose part of the plan this process reads.
    ranks : tuple of int
        The ranks of the process group that read the plan.
    alike : dict
        What else has to be equal, of JSON types, by the name that an error gives it.

    Raises
    ------
    IndexPlanError
        On all of them, if they do not agree, if more of them read the same part than a mesh has
        peers, or if they do not all arrive before the store's timeout.
    """
    store, here = meeting("plan", ranks)
    mine = f"{plan.fingerprint} {json.dumps(alike)}"
    told = json.dumps({"rank": torch.distributed.get_rank(), **alike, **json.loads(plan.to_json())})
    if store.add(f"{here}/first", 1) == 1:
        store.set(f"{here}/details", told)
        store.set(f"{here}/plan", mine)
    elif store.get(f"{here}/plan").decode() != mine:
        store.set(f"{here}/other", told)
    if store.add(f"{here}/part-{rank}", 1) > len(ranks) // (plan.world_size or 1):
        store.set(f"{here}/alike", str(rank))
    came = store.add(f"{here}/came", 1)
    if came == len(ranks):
        store.set(f"{here}/all", "")
    try:
        store.wait([f"{here}/all"])
    except RuntimeError as error:  # the timeout, or a lost store; TCP stores raise a subclass
        try:
            got = f"{store.add(f'{here}/came', 0)} of {len(ranks)} before the timeout of "
            got += "the process group"
        except RuntimeError:
            got = f"{came} of {len(ranks)}, and then the process that has the store was gone"
        rule = "must begin their first pass together, to compare plans"
        raise IndexPlanError("ranks", rule, got, _SWITCH) from error
    differ = store.check([f"{here}/other"])
    details = [store.get(f"{here}/{key}") for key in ("details", "other")] if differ else []
    alike = store.check([f"{here}/alike"])
    part = store.get(f"{here}/alike").decode() if alike else ""
    leave(store, here, ranks)
    if differ:
        # the lower rank first, whichever of the two came first
        one, other = sorted(map(json.loads, details), key=lambda each: int(each["rank"]))
        raise IndexPlanError(
            "ranks",
            "must read the same plan",
            _difference(one, other),
            f"make the plan from the same arguments on every rank, {_MOVES}or {_SWITCH}",
        )
    if alike:
        raise IndexPlanError(
            "ranks",
            "must read different parts of a plan, unless a mesh makes them peers",
            f"rank={part}, world_size={plan.world_size} on several processes",
            "leave rank= and world_size= out, or pass mesh= if they share samples",
        )


def meeting(kind: str, ranks: tuple[int, ...]) -> tuple[Any, str]:
    """Return the process group's store, and the key of these ranks' next meeting of a kind."""
    store = private("torch", torch.distributed.distributed_c10d, "_get_default_store")()
    group = f"indexplan/{kind}/{zlib.crc32(repr(ranks).encode()):08x}"
    # this rank's first, second, ...
    return store, f"{group}/{store.add(f'{group}/rank-{torch.distributed.get_rank()}', 1)}"


def leave(store: Any, meeting: str, ranks: tuple[int, ...]) -> None:
    """Say that this rank asks the store no more; return on rank 0 when all ranks have said so.

    Rank 0's process usually has the store, and may have nothing more to read, or an error, and end.
    A rank that does not leave in time has died or hangs, which is seen later, and not held against
    those that did.
    """
    with suppress(RuntimeError):  # the timeout, or a store that is gone
        if store.add(f"{meeting}/left", 1) == len(ranks):
            store.set(f"{meeting}/all left", "")
        if torch.distributed.get_rank() == 0:
            store.wait([f"{meeting}/all left"], _LEAVING)


def _difference(one: dict[str, Any], other: dict[str, Any]) -> str:
    """Return what differs between two ranks' plans."""
    ranks = one.pop("rank"), other.pop("rank")
    return f"{difference_in_words(one, other)} (rank {ranks[0]}, not rank {ranks[1]})"
