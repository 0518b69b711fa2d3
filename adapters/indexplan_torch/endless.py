"""Batches without an end, as Megatron and torchtitan read them; their state is a count of samples.

That count is a place in a plan, so nothing else has to be kept.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from indexplan import Order, Plan
from indexplan.errors import integer, invalid
from indexplan_torch.arguments import check_state, count
from indexplan_torch.loader import Options, PlanLoader, check_options
from indexplan_torch.ranks import given

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
        Map-style, with as many samples as the order.
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
        If a size, a count or the rank is out of range, or an option belongs to the plan.

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
        **options: Unpack[Options],
    ) -> None:
        cure = "pass Megatron's micro_batch_size"
        size = integer("micro_batch_size", micro_batch_size, 1, 2**62, cure)
        self._rank, ranks = given(rank, world_size)
        if "ledger" in options:
            rule = "left out of a PlanIterator, whose state is a count that a ledger can be given"
            cure = "use ledger.record(plan, plan.cursor_at(consumed)) where you save"
            raise invalid("ledger", rule, options["ledger"], cure)  # type: ignore[typeddict-item]
        check_options(PlanIterator, options)
        if options.get("num_workers"):
            options.setdefault("persistent_workers", True)
        self.plan = Plan(order, world_size=ranks, batch_size=size, remainder="carry")
        self._step = ranks * size
        self.consumed_samples = count("consumed_samples", consumed_samples)
        rest = self.plan.resume(self.plan.cursor_at(self.consumed_samples))
        ours: dict[str, Any] = {"rank": self._rank, "world_size": ranks, **options}
        self._loader = PlanLoader(dataset, rest, **ours)
        self._batches: Generator[Any, None, None] | None = None

    def __repr__(self) -> str:
        who = f"rank {self._rank} of {self.plan.world_size}"
        return f"<PlanIterator of {self.plan}: {who}, {self.consumed_samples} samples consumed>"

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        """Return the rank's next micro-batch; after an error, the same one once more."""
        if self._batches is None:
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
        that `load_state` can compare it.
        """
        return {
            "version": STATE_VERSION,
            "consumed_samples": self.consumed_samples,
            "order": self.plan.order.to_dict(),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Continue where a run stood, on any number of ranks and with any micro-batch size.

        Raises
        ------
        IndexPlanError
            If it is not a state, or one of another order, which this one does not continue.
        """
        fields = {"version", "consumed_samples", "order"}
        cure = "pass what save_state returned"
        check_state(state, fields, STATE_VERSION, "must be a PlanIterator's", cure)
        consumed = count("a state's consumed_samples", state["consumed_samples"])
        cursor = replace(self.plan.cursor_at(consumed), order=state["order"])
        rest = self.plan.resume(cursor)
        place = {"cursor": cursor.to_dict(), "pass": cursor.epoch}
        self._loader.load_state_dict({"version": STATE_VERSION, **place})
        self.close()
        self.plan = self.plan.replace(order=rest.order)  # whose past is that of the saved one
        self.consumed_samples = consumed


def endless(loader: PlanLoader) -> Generator[Any, None, None]:
    """Yield a loader's batches, one pass after another."""
    while True:
        yield from loader
