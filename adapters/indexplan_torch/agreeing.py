"""Do all ranks read the same plan? Compared once, when they begin their first pass together.

They compare through the process group's store, not by a collective: that needs no device, and
disturbs no communicator. Each rank makes a few requests, however many ranks there are.
"""

from __future__ import annotations

import json
import zlib
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch.distributed

from indexplan import IndexPlanError, Plan
from indexplan_torch.versions import private

if TYPE_CHECKING:
    from collections.abc import Iterator

_SWITCH = "pass compare=False to a loader that not all ranks read"


@contextmanager
def compared(
    plan: Plan,
    place: tuple[int, int],
    ranks: tuple[int, ...],
    again: int = 1,
    *,
    ledger: bool = False,
) -> Iterator[None]:
    """Wait for all of these ranks, and check that each begins the same pass of the same plan.

    What ranks tell each other through the store as they begin belongs into this context. Rank 0,
    whose process usually has the store, leaves it when all others have left: it may have nothing
    more to read, or an error, and end.

    Parameters
    ----------
    plan : Plan
        With its world_size.
    place : (int, int)
        (epoch, sub_epoch) of the pass that begins.
    ranks : tuple of int
        The ranks of the process group that read the plan.
    again : int
        How often each step is read.
    ledger : bool
        Whether the loader keeps one.

    Raises
    ------
    IndexPlanError
        On all of them, if they do not agree, or do not all arrive before the store's timeout.
    """
    store = private("torch", torch.distributed.distributed_c10d, "_get_default_store")()
    me = torch.distributed.get_rank()
    group = f"indexplan/{zlib.crc32(repr(ranks).encode()):08x}"
    meeting = f"{group}/{store.add(f'{group}/rank-{me}', 1)}"  # this rank's first, second, ...
    mine = f"{plan.fingerprint} {place} {again} {ledger}"
    given = {"pass": place, "again": again, "ledger": ledger}
    details = json.dumps({"rank": me, **given, **plan.to_dict()})
    if store.add(f"{meeting}/first", 1) == 1:
        store.set(f"{meeting}/details", details)
        store.set(f"{meeting}/plan", mine)
    elif store.get(f"{meeting}/plan").decode() != mine:
        store.set(f"{meeting}/other", details)
    _gather(store, f"{meeting}/came", len(ranks), waits=True)
    try:
        if store.check([f"{meeting}/other"]):
            one, other = (json.loads(store.get(f"{meeting}/{key}")) for key in ("details", "other"))
            raise IndexPlanError(
                "ranks",
                "must read the same plan",
                _difference(one, other),
                f"make the plan from the same arguments on every rank, or {_SWITCH}",
            )
        yield
    finally:
        _gather(store, f"{meeting}/left", len(ranks), waits=me == 0)


def _gather(store: Any, key: str, num: int, *, waits: bool) -> None:
    """Count this rank under a key, and wait until all are counted."""
    if store.add(key, 1) == num:
        store.set(f"{key}/all", "")
    if not waits:
        return
    try:
        store.wait([f"{key}/all"])
    except RuntimeError:  # the timeout; TCP stores raise a subclass
        raise IndexPlanError(
            "ranks",
            "must begin their first pass together, to compare plans",
            f"{store.add(key, 0)} of {num} before the timeout of the process group",
            _SWITCH,
        ) from None


def _difference(one: dict[str, Any], other: dict[str, Any]) -> str:
    """Return what differs between two ranks' plans, with long values cut."""
    # the dict of a plan without balance has no such key
    names = [name for name in {**one, **other} if one.get(name) != other.get(name)]
    names.remove("rank")
    first, second = (
        ", ".join(f"{name}={each.get(name)!r:.200}" for name in names) + f" on rank {each['rank']}"
        for each in (one, other)
    )
    return f"{first}, and {second}"
