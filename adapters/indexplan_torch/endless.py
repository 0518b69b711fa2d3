"""Batches without an end, as Megatron and torchtitan read them; their state is a count of samples.

That count is a place in a plan, so nothing else has to be kept.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import torch.distributed

from indexplan import IndexPlanError, Ledger, Order, Plan
from indexplan.errors import as_integer, integer, invalid, shown
from indexplan_torch.arguments import count
from indexplan_torch.loader import Options, PlanLoader, check_options
from indexplan_torch.ranks import given, process_group_runs

if TYPE_CHECKING:
    from typing import Self, Unpack

STATE_VERSION = 1


class PlanIterator:
    """An endless iterator of a data-parallel rank's micro-batches, as Megatron reads them.

    Each micro-batch is full: at an epoch's end it is filled with the next epoch's first samples. An
    optimizer step that consumes n samples reads the next n places of the run, on any number of
    ranks, with any micro-batch size and any ramp-up of the global batch. Workers start at the first
    `next`, so a rank or a virtual pipeline stage that asks for no data loads none.

    Parameters
    ----------
    dataset : torch.utils.data.Dataset
        Map-style, with as many samples as the order; `Samples` for Megatron's own files.
    order : Order
        The sequence in which each epoch reads the samples, with as many units in every epoch but
        for those that `Without` leaves out.
    micro_batch_size : int
        Units in each rank's micro-batch, from 1.
    consumed_samples : int
        Where to start: the units that all ranks together have consumed since the start of the run,
        as Megatron's `args.consumed_train_samples` counts them.
    rank, world_size : int
        The data-parallel rank and how many there are: of `mpu.get_data_parallel_rank()` and
        `mpu.get_data_parallel_world_size()`. Ranks that differ only in tensor, context or pipeline
        parallelism have the same.
    ledger : str, path-like, Ledger or False, optional
        The file in which the run records what it has read, as for `PlanLoader`: when a state is
        saved, and when the iterator or the process ends. A run that starts with `consumed_samples`
        and loads no state continues where the ledger stood at that count, and what was recorded
        after it becomes void. False leaves the ledger of a state for good.
    ledger_ranks : sequence of int, optional
        The ranks of the process group that read the run and save its states; the first of them
        writes the ledger. Others pass ledger=False. If left out, all of the process group, which
        are then as many as world_size.
    **options
        Options of DataLoader: num_workers, pin_memory, collate_fn and so on. With workers,
        `persistent_workers` is True unless you set it.

    Attributes
    ----------
    plan : Plan
        What is read: its remainder is "carry", and its step is a micro-batch of each rank.
    consumed_samples : int
        Units that all ranks have consumed when each has received as many micro-batches as this one.

    Raises
    ------
    IndexPlanError
        If a size, a count or the rank is out of range, or an option belongs to the plan. At the
        first `next`, if the run can't continue in the ledger.

    Notes
    -----
    Megatron's checkpoint doesn't contain the order. If you resume with another seed or other
    lengths, you read other samples without an error, unless you load the state of `save_state`,
    which knows the order.

    Examples
    --------
    >>> import indexplan as ip
    >>> from indexplan_torch.megatron import PlanIterator
    >>> order = ip.Sequential(10)
    >>> two = [PlanIterator(range(10), order, micro_batch_size=2, consumed_samples=0,
    ...                     rank=rank, world_size=2) for rank in range(2)]
    >>> [next(iterator).tolist() for iterator in two for _ in range(2)]
    [[0, 1], [4, 5], [2, 3], [6, 7]]

    8 samples were consumed. A single rank resumes there, in micro-batches of 4:

    >>> one = PlanIterator(range(10), order, micro_batch_size=4, rank=0, world_size=1,
    ...                    consumed_samples=two[0].consumed_samples)
    >>> next(one).tolist(), next(one).tolist()
    ([8, 9, 0, 1], [2, 3, 4, 5])
    """

    def __init__(
        self,
        dataset: Any,
        order: Order,
        *,
        micro_batch_size: int,
        consumed_samples: int,
        rank: int,
        world_size: int,
        ledger: str | os.PathLike[str] | Ledger | Literal[False] | None = None,
        ledger_ranks: Iterable[int] | None = None,
        **options: Unpack[Options],
    ) -> None:
        cure = "pass Megatron's micro_batch_size"
        size = integer("micro_batch_size", micro_batch_size, 1, 2**62, cure)
        self._rank, ranks = given(rank, world_size)
        check_options(PlanIterator, options)
        if options.get("num_workers"):
            options.setdefault("persistent_workers", True)
        self.plan = Plan(order, world_size=ranks, batch_size=size, remainder="carry")
        self._step = ranks * size
        self._readers = None if ledger_ranks is None else _ranks_of(ledger_ranks)
        self.consumed_samples = count("consumed_samples", consumed_samples)
        rest = self.plan.resume(self.plan.cursor_at(self.consumed_samples))
        ours: dict[str, Any] = {"rank": self._rank, "world_size": ranks, "ledger": ledger}
        self._loader = PlanLoader(dataset, rest, **ours, **options)
        self._batches: Generator[Any, None, None] | None = None

    def __repr__(self) -> str:
        who = f"rank {self._rank} of {self.plan.world_size}"
        return f"<PlanIterator of {self.plan}: {who}, {self.consumed_samples} samples consumed>"

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        """Return the rank's next micro-batch; after an error, the same one once more."""
        if self._batches is None:
            run = self._loader.run
            if run.recorder:
                run.read_by(self._together())
            self._loader.run.move(self._loader.plan)  # the rest of a pass that an error has ended
            self._batches = endless(self._loader)
        try:
            batch = next(self._batches)
        except BaseException:  # Ctrl-C too: a generator that has raised is at its end
            self._batches = None
            raise
        self.consumed_samples += self._step
        return batch

    def close(self) -> None:
        """End the workers; a later `next` starts others, and reads on."""
        if self._batches is not None:
            self._batches.close()
        self._batches = None
        self._loader._iterator = None  # noqa: SLF001 (persistent workers, which torch keeps there)

    def save_state(self) -> dict[str, Any]:
        """Return where the run stands, equal on all ranks; Megatron's `--dataloader-save` asks it.

        A checkpoint of Megatron's holds `consumed_samples` already; this one has the order too, so
        that `load_state` can compare it. With a ledger, what was read is written to it, and the
        state has the hash of its last line.
        """
        state = {
            "version": STATE_VERSION,
            "consumed_samples": self.consumed_samples,
            "order": self.plan.order.to_dict(),
        }
        kept = self._loader.state_dict()
        return {**state, "ledger": kept["ledger"]} if "ledger" in kept else state

    def load_state(self, state: dict[str, Any]) -> None:
        """Continue where a run stood, on any number of ranks and with any micro-batch size.

        Raises
        ------
        IndexPlanError
            If it is not a state, or one of another order, which this one does not continue; or if
            it is that of a run with a ledger, and this one has none.
        """
        named = {"version", "consumed_samples", "order"}
        if not isinstance(state, dict) or {*state} - {"ledger"} != named:
            got = f"a dict of {shown(list(state))}" if isinstance(state, dict) else shown(state)
            cure = "pass what save_state returned"
            raise IndexPlanError("state", "must be a PlanIterator's", got, cure)
        if as_integer(state["version"]) != STATE_VERSION:
            cure = "load it with the version of indexplan that saved it"
            raise invalid("state", f"of version {STATE_VERSION}", state["version"], cure)
        consumed = count("a state's consumed_samples", state["consumed_samples"])
        cursor = replace(self.plan.cursor_at(consumed), order=state["order"])
        rest = self.plan.resume(cursor)
        kept = {name: state[name] for name in ("ledger",) if name in state}
        place = {"cursor": cursor.to_dict(), "pass": cursor.epoch}
        self._loader.load_state_dict({"version": STATE_VERSION, **place, **kept})
        self.close()
        self.plan = self.plan.replace(order=rest.order)  # whose past is that of the saved one
        self.consumed_samples = consumed

    def _together(self) -> tuple[int, ...]:
        """Return the ranks of the process group that keep the ledger; () if there is none."""
        if not process_group_runs():
            return ()
        me, num = torch.distributed.get_rank(), torch.distributed.get_world_size()
        world_size = self.plan.world_size or 1
        if self._readers is None and num != world_size:
            raise IndexPlanError(
                "ledger_ranks",
                "must be passed where ranks of the process group read the same, as one of them "
                "writes the ledger",
                f"none, with {num} in the process group and world_size={world_size}",
                "pass the ranks whose states are saved, and ledger=False on the others",
            )
        ranks = tuple(range(num)) if self._readers is None else self._readers
        if me not in ranks or len(ranks) % world_size:
            raise IndexPlanError(
                "ledger_ranks",
                f"must have rank {me}, which keeps the ledger, and {world_size} ranks or a "
                "multiple, the world_size",
                shown(ranks),
                "pass the ranks whose states are saved, and ledger=False on the others",
            )
        return ranks if len(ranks) > 1 else ()


def _ranks_of(ranks: Any) -> tuple[int, ...]:
    """Check which ranks of the process group keep a ledger, and return them in sequence."""
    found = [as_integer(each) for each in ranks] if isinstance(ranks, Iterable) else []
    numbers = sorted({each for each in found if each is not None and each >= 0})
    if not found or len(numbers) != len(found):
        cure = "pass what torch.distributed.get_process_group_ranks(group) returns"
        raise invalid("ledger_ranks", "ranks of the process group, each once", ranks, cure)
    return tuple(numbers)


def endless(loader: PlanLoader) -> Generator[Any, None, None]:
    """Yield a loader's batches, one pass after another."""
    while True:
        yield from loader
