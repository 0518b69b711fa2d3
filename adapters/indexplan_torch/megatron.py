"""Plans under Megatron-LM: iterators for `--dataloader-type external`, and its samples.

Megatron asks an external loader for `next` alone, without an end, and keeps how many samples the
run has consumed. That count is a place in a plan, so nothing else has to be kept.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from indexplan import IndexPlanError, Order, Plan
from indexplan.errors import as_integer, integer, shown, wrong
from indexplan_torch.arguments import count
from indexplan_torch.loader import Options, PlanLoader
from indexplan_torch.ranks import given

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from indexplan_torch.megatron_samples import Samples

__all__ = ["PlanIterator", "Samples", "datasets_provider"]

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
        The sequence in which each epoch reads the samples, with as many units in every epoch.
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
        DataLoader's own: num_workers, pin_memory, collate_fn and so on. With workers,
        `persistent_workers` is True unless it is given.

    Attributes
    ----------
    plan : Plan
        What is read: its remainder is "carry", and its step is a micro-batch of each rank.
    consumed_samples : int
        Units that all ranks have consumed when each has received as many micro-batches as this one.

    Raises
    ------
    IndexPlanError
        If an argument is not as described above, or an option belongs to the plan.

    Notes
    -----
    Nothing in Megatron's checkpoint tells the order. To resume with another seed, or other lengths,
    reads other samples, unless the state of `save_state` is loaded, which knows the order.

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
        self._dataset, self._options = dataset, options
        if options.get("num_workers"):
            self._options.setdefault("persistent_workers", True)
        self.plan = Plan(order, world_size=ranks, batch_size=size, remainder="carry")
        self._step = ranks * size
        self._read_from(self.plan, count("consumed_samples", consumed_samples))

    def _read_from(self, plan: Plan, consumed: int, *, compare: bool = True) -> None:
        """Read on where so many samples are consumed."""
        rest = plan.resume(plan.cursor_at(consumed))
        ours: dict[str, Any] = {"rank": self._rank, "world_size": plan.world_size}
        self._batches = _endless(
            PlanLoader(self._dataset, rest, compare=compare, **ours, **self._options)
        )
        self.consumed_samples = consumed

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        """Return the rank's next micro-batch; after an error, the same one once more."""
        try:
            batch = next(self._batches)
        except BaseException:  # Ctrl-C too: a generator that has raised would be at its end
            # other ranks may read on without an error, so nobody is there to compare plans with
            self._read_from(self.plan, self.consumed_samples, compare=False)
            raise
        self.consumed_samples += self._step
        return batch

    def close(self) -> None:
        """End the workers; a later `next` starts others, and reads on."""
        self._batches.close()
        self._read_from(self.plan, self.consumed_samples, compare=False)

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
        if not isinstance(state, dict) or {*state} != {"version", "consumed_samples", "order"}:
            got = f"a dict of {shown(list(state))}" if isinstance(state, dict) else shown(state)
            cure = "pass what save_state returned"
            raise IndexPlanError("state", "must be a PlanIterator's", got, cure)
        if as_integer(state["version"]) != STATE_VERSION:
            cure = "load it with the version of indexplan that saved it"
            raise wrong("state", f"of version {STATE_VERSION}", state["version"], cure)
        consumed = count("a state's consumed_samples", state["consumed_samples"])
        self.plan.resume(replace(self.plan.cursor_at(consumed), order=state["order"]))
        self._read_from(self.plan, consumed)


def _endless(loader: PlanLoader) -> Generator[Any, None, None]:
    """Yield a loader's batches, one pass after another."""
    while True:
        yield from loader


class _Whole:
    """A validation set that each evaluation reads whole, for `--full-validation`.

    Megatron asks for its length, in iterations of evaluation, and iterates over it again and again.
    All micro-batches are full: what the last iteration lacks is filled with further samples.
    """

    def __init__(self, make: Callable[[], PlanIterator], num_micro_batches: int) -> None:
        self._make, self._num_micro_batches = make, num_micro_batches
        plan = make().plan
        each = num_micro_batches * plan.step_size(0, step=0)
        self._num_iterations = -(-plan.order.num_units(0) // each)

    def __len__(self) -> int:
        return self._num_iterations

    def __iter__(self) -> Iterator[Any]:
        return islice(self._make(), self._num_iterations * self._num_micro_batches)


Pair = tuple[Any, Order]  # a dataset, and in which order it is read


def datasets_provider(
    train: Pair,
    valid: Pair | list[Pair] | None = None,
    test: Pair | None = None,
    *,
    args: Any = None,
    **options: Unpack[Options],
) -> Callable[..., tuple[Any, ...]]:
    """Return what Megatron's `pretrain` takes as its provider of datasets, under external loaders.

    Megatron calls it on each rank, once for each virtual pipeline stage, when the checkpoint is
    loaded. It has `is_distributed`, so that all ranks of a tensor-parallel group make iterators: of
    one data-parallel rank, which read the same. Each stage gets an iterator of its own over every
    micro-batch.

    Parameters
    ----------
    train, valid, test : (dataset, order)
        What `PlanIterator` takes; None if there is none. Validation resumes where the last one
        stopped, by `args.consumed_valid_samples`, and tests start at the first sample. Under
        `--full-validation` each evaluation reads all of valid, which is a list of pairs under
        `--multiple-validation-sets`. Under `--phase-transition-iterations` train is that of the
        phase, and is read from the phase's start.
    args : object, optional
        With `micro_batch_size`, `consumed_train_samples`, `consumed_valid_samples` and
        `num_workers`; `eval_micro_batch_size` and `eval_global_batch_size` if evaluation has
        others; `global_batch_size` under `full_validation`; that, `iteration` and
        `phase_transition_iterations` if there are phases. If left out, what
        `megatron.training.get_args()` returns when Megatron calls the provider.
    **options
        DataLoader's own. num_workers is that of `args` unless it is given.

    Raises
    ------
    IndexPlanError
        If a pair is none. When Megatron calls it: if `--dataloader-type` is not external; if
        valid or test do not fit `--full-validation` and `--multiple-validation-sets`; if there are
        phases and the global batch size has changed; or without args, if megatron.training cannot
        be imported.
    """
    _check_pairs("train", [train])
    _check_pairs("valid", valid if isinstance(valid, list) else [] if valid is None else [valid])
    _check_pairs("test", [] if test is None else [test])

    def provider(
        _: Any = None,
        vp_stage: int | None = None,  # noqa: ARG001 (Megatron asks for a parameter of this name)
    ) -> tuple[Any, ...]:
        asked = _args() if args is None else args
        _check_args(asked)
        _check_evaluated(asked, valid, test)
        consumed_in_phase = _consumed_in_phase(asked)
        from megatron.core import parallel_state

        ours: dict[str, Any] = {"num_workers": asked.num_workers, **options}
        ours["rank"] = parallel_state.get_data_parallel_rank()
        ours["world_size"] = parallel_state.get_data_parallel_world_size()
        size = asked.micro_batch_size
        evaluated = getattr(asked, "eval_micro_batch_size", None) or size

        def read(pair: Pair | None, size: int, consumed: int) -> PlanIterator | None:
            given = {"micro_batch_size": size, "consumed_samples": consumed, **ours}
            return None if pair is None else PlanIterator(*pair, **given)

        def read_whole(pair: Any) -> _Whole:
            given = {**ours, "persistent_workers": False}
            make = partial(PlanIterator, *pair, micro_batch_size=evaluated, consumed_samples=0)
            samples = getattr(asked, "eval_global_batch_size", None) or asked.global_batch_size
            return _Whole(partial(make, **given), samples // (evaluated * ours["world_size"]))

        if not getattr(asked, "full_validation", False):
            validating: Any = read(valid, evaluated, asked.consumed_valid_samples)  # type: ignore[arg-type]
        else:
            validating = [*map(read_whole, valid)] if isinstance(valid, list) else read_whole(valid)
        return read(train, size, consumed_in_phase), validating, read(test, evaluated, 0)

    provider.is_distributed = True  # type: ignore[attr-defined]  # Megatron reads it
    return provider


def _check_pairs(name: str, pairs: list[Any]) -> None:
    """Refuse what is no dataset with its order."""
    for pair in pairs:
        if not (isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[1], Order)):
            raise wrong(name, "a pair of a dataset and an order", pair, "pass (dataset, order)")


def _args() -> Any:
    """Return Megatron's arguments."""
    try:
        from megatron.training import get_args
    except ImportError as error:
        raise IndexPlanError(
            "args",
            "must be passed where megatron.training cannot be imported",
            shown(error),
            "pass args=, with the numbers that datasets_provider names",
        ) from error
    return get_args()


def _consumed_in_phase(args: Any) -> int:
    """Return how many samples of the train order are consumed, as Megatron counts them.

    Each of its phases is a job of its own, whose dataset is read from the first sample on.
    """
    if not (starts := getattr(args, "phase_transition_iterations", None)):
        consumed: int = args.consumed_train_samples
        return consumed
    size: int = args.global_batch_size
    start: int = max(each for each in (0, *starts) if each <= args.iteration)
    if args.consumed_train_samples != args.iteration * size:
        rule = f"{args.iteration * size}, {args.iteration} iterations of {size}, with phases"
        cure = (
            "keep the global batch size, or leave --phase-transition-iterations out and change a "
            "Mixture's weights with with_phase"
        )
        raise wrong("consumed_train_samples", rule, args.consumed_train_samples, cure)
    in_phase: int = (args.iteration - start) * size
    return in_phase


def _check_args(args: Any) -> None:
    """Refuse options with which Megatron would not read an iterator to where it is told."""
    kind = getattr(args, "dataloader_type", "external")
    if kind != "external":
        cure = "start Megatron with --dataloader-type external"
        raise wrong("dataloader_type", "external, as a plan deals the batches", kind, cure)


def _check_evaluated(args: Any, valid: Any, test: Any) -> None:
    """Refuse what Megatron would fail on when it evaluates, hours later and in other words."""
    full, several = (
        bool(getattr(args, name, False)) for name in ("full_validation", "multiple_validation_sets")
    )
    if several and not full:
        rule, cure = "given with --full-validation, as Megatron asks", "add --full-validation"
        raise wrong("--multiple-validation-sets", rule, "it alone", cure)
    if isinstance(valid, list) != several or (full and not valid):
        kind = "a list of pairs (dataset, order)" if several else "one pair (dataset, order)"
        cure = "pass valid so, or change --multiple-validation-sets and --full-validation"
        raise wrong("valid", kind, valid, cure)
    if several and test is not None:
        rule = "None with --multiple-validation-sets, under which Megatron's test fails"
        raise wrong("test", rule, "a pair", "leave test out, and evaluate it in a job of its own")


def __getattr__(name: str) -> Any:
    if name != "Samples":  # which needs Megatron, as nothing else here does before it runs
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from indexplan_torch.megatron_samples import Samples

    return Samples
