"""Plans under Megatron-LM: iterators for `--dataloader-type external`, and its samples.

Megatron asks an external loader for `next` alone, without an end, and keeps how many samples the
run has consumed. That count is a place in a plan, so nothing else has to be kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from indexplan import IndexPlanError, Order
from indexplan.errors import invalid, shown
from indexplan_torch.endless import PlanIterator
from indexplan_torch.loader import Options

if TYPE_CHECKING:
    from typing import Unpack

    from indexplan_torch.megatron_samples import Samples

__all__ = ["PlanIterator", "Samples", "datasets_provider"]


Pair = tuple[Any, Order]  # a dataset, and in which order it is read


def datasets_provider(
    train: Pair,
    valid: Pair | None = None,
    test: Pair | None = None,
    *,
    args: Any = None,
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
        `--full-validation` leave valid out, and return loaders of your own for it.
    args : object, optional
        With `micro_batch_size`, `consumed_train_samples`, `consumed_valid_samples` and
        `num_workers`; `eval_micro_batch_size` if evaluation has another. If left out, what
        `megatron.training.get_args()` returns when Megatron calls the provider.
    **options
        DataLoader's own. num_workers is that of `args` unless it is given.

    Raises
    ------
    IndexPlanError
        If one is not such a pair. When Megatron calls it: if `--dataloader-type` is not external;
        if there are phases; if valid is given under `--full-validation`; or without args, if
        megatron.training cannot be imported.
    """
    _check_pair("train", train)
    for name, pair in (("valid", valid), ("test", test)):
        if pair is not None:
            _check_pair(name, pair)

    def provider(
        _: Any = None,
        vp_stage: int | None = None,  # noqa: ARG001 (Megatron's, for each of which it asks)
    ) -> tuple[Any, ...]:
        asked = _args() if args is None else args
        _check_args(asked, valid)
        from megatron.core import parallel_state

        ours: dict[str, Any] = {"num_workers": asked.num_workers, **options}
        ours["rank"] = parallel_state.get_data_parallel_rank()
        ours["world_size"] = parallel_state.get_data_parallel_world_size()
        size = asked.micro_batch_size
        evaluated = getattr(asked, "eval_micro_batch_size", None) or size

        def read(pair: Pair | None, size: int, consumed: int) -> PlanIterator | None:
            given = {"micro_batch_size": size, "consumed_samples": consumed, **ours}
            return None if pair is None else PlanIterator(*pair, **given)

        validating = read(valid, evaluated, asked.consumed_valid_samples)
        training = read(train, size, asked.consumed_train_samples)
        return training, validating, read(test, evaluated, 0)

    provider.is_distributed = True  # type: ignore[attr-defined]  # Megatron reads it
    return provider


def _check_pair(name: str, pair: Any) -> None:
    """Refuse what is no dataset with its order."""
    if not (isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[1], Order)):
        raise invalid(name, "a pair of a dataset and an order", pair, "pass (dataset, order)")


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


def _check_args(args: Any, valid: Any) -> None:
    """Refuse options with which Megatron would not read an iterator to where it is told."""
    kind = getattr(args, "dataloader_type", "external")
    if kind != "external":
        cure = "start Megatron with --dataloader-type external"
        raise invalid("dataloader_type", "external, as a plan deals the batches", kind, cure)
    if phases := getattr(args, "phase_transition_iterations", None):
        rule = "left out, as its phases are jobs that each count their samples from 0"
        cure = "leave it out, and change a Mixture's weights with with_phase"
        raise invalid("--phase-transition-iterations", rule, phases, cure)
    if getattr(args, "full_validation", False) and valid is not None:
        rule = "None under --full-validation, which asks for loaders that have a length"
        cure = "leave it out, and return a loader that docs/migrate/megatron.md writes"
        raise invalid("valid", rule, "a pair", cure)


def __getattr__(name: str) -> Any:
    if name != "Samples":  # which needs Megatron, as nothing else here does before it runs
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from indexplan_torch.megatron_samples import Samples

    return Samples
