"""Plans under Megatron-LM: iterators for `--dataloader-type external`, and its samples.

Megatron asks an external loader for `next` alone, without an end, and keeps how many samples the
run has consumed. That count is a place in a plan, so nothing else has to be kept.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

from indexplan import IndexPlanError, Ledger, Order
from indexplan.errors import shown, wrong
from indexplan_torch.endless import PlanIterator
from indexplan_torch.loader import Options
from indexplan_torch.megatron_ledgers import keeping, load_saved

if TYPE_CHECKING:
    from typing import Unpack

    from indexplan_torch.megatron_samples import Samples

__all__ = ["PlanIterator", "Samples", "datasets_provider"]


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
    ledger: str | os.PathLike[str] | Ledger | Literal[False] | None = None,
    **options: Unpack[Options],
) -> Callable[..., tuple[Any, ...]]:
    """Return what Megatron's `pretrain` takes as its provider of datasets, under external loaders.

    Megatron calls it on each rank, once for each virtual pipeline stage, when the checkpoint is
    loaded. Its attribute `is_distributed` is set, so all ranks of a tensor-parallel group make
    iterators; they are one data-parallel rank, and read the same. Each stage gets its own iterator
    over every micro-batch.

    Parameters
    ----------
    train, valid, test : (dataset, order)
        What `PlanIterator` takes; None if there is none. Validation resumes where the last one
        stopped, by `args.consumed_valid_samples`, and tests start at the first sample. Under
        `--full-validation` each evaluation reads all of valid, which is a list of pairs under
        `--multiple-validation-sets`.
    args : object, optional
        With `micro_batch_size`, `consumed_train_samples`, `consumed_valid_samples` and
        `num_workers`; `eval_micro_batch_size` and `eval_global_batch_size` if evaluation has
        others; `global_batch_size` under `full_validation`; `dataloader_save` and `iteration` with
        a ledger. If left out, what `megatron.training.get_args()` returns when Megatron calls the
        provider.
    ledger : str, path-like, Ledger or False, optional
        The file in which the training records what it has read, as for `PlanIterator`. It needs
        `--dataloader-save`: Megatron's checkpoints then hold the ledger's hash, with which the
        provider continues.
    **options
        DataLoader's own. num_workers is that of `args` unless it is given.

    Raises
    ------
    IndexPlanError
        If one is not such a pair. When Megatron calls it: if `--dataloader-type` is not external;
        if there are phases; if valid or test do not fit `--full-validation` and
        `--multiple-validation-sets`; with a ledger, if there are virtual stages, or checkpoints do
        not save its hash; or without args, if megatron.training cannot be imported.
    """
    _check_pairs("train", [train])
    _check_pairs("valid", valid if isinstance(valid, list) else [] if valid is None else [valid])
    _check_pairs("test", [] if test is None else [test])

    def provider(
        _: Any = None,
        vp_stage: int | None = None,
    ) -> tuple[Any, ...]:
        asked = _args() if args is None else args
        _check_args(asked)
        _check_evaluated(asked, valid, test)
        kept = keeping(ledger, asked, vp_stage)
        from megatron.core import parallel_state

        ours: dict[str, Any] = {"num_workers": asked.num_workers, **options}
        ours["rank"] = parallel_state.get_data_parallel_rank()
        ours["world_size"] = parallel_state.get_data_parallel_world_size()
        size = asked.micro_batch_size
        evaluated = getattr(asked, "eval_micro_batch_size", None) or size

        def read(pair: Pair | None, size: int, consumed: int, **more: Any) -> PlanIterator | None:
            given = {"micro_batch_size": size, "consumed_samples": consumed, **ours, **more}
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
        training = read(train, size, asked.consumed_train_samples, **kept)
        if training is not None and kept["ledger"] is not False:
            load_saved(training, ledger, asked)
        return training, validating, read(test, evaluated, 0)

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
            "pip install megatron-core, and pass args=, with the numbers that "
            "datasets_provider names",
        ) from error
    return get_args()


def _check_args(args: Any) -> None:
    """Refuse options with which Megatron would not read an iterator to where it is told."""
    kind = getattr(args, "dataloader_type", "external")
    if kind != "external":
        cure = "start Megatron with --dataloader-type external"
        raise wrong("dataloader_type", "external, as a plan deals the batches", kind, cure)
    if phases := getattr(args, "phase_transition_iterations", None):
        rule = "left out, as its phases are jobs that each count their samples from 0"
        cure = "leave it out, and change a Mixture's weights with with_phase"
        raise wrong("--phase-transition-iterations", rule, phases, cure)


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
