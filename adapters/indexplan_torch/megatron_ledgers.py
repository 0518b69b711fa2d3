"""A run's ledger under Megatron, whose checkpoints keep an external loader's state in files.

With `--dataloader-save` Megatron asks the iterators of a pipeline's first stage for their state,
those of the first tensor-parallel rank. It doesn't load these files; `load_saved` does.
"""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import torch

from indexplan import IndexPlanError
from indexplan.errors import invalid
from indexplan_torch.endless import PlanIterator
from indexplan_torch.ranks import process_group_runs
from indexplan_torch.recording import refuse_unkept


def keeping(ledger: Any, args: Any, vp_stage: int | None) -> dict[str, Any]:
    """Return what a PlanIterator of this rank is given to keep a ledger, or to leave it to others.

    Raises
    ------
    IndexPlanError
        If Megatron would save no state of it.
    """
    if ledger is None or ledger is False:
        return {"ledger": ledger}
    if not getattr(args, "dataloader_save", None):
        cure = "add --dataloader-save, with the folder of --save"
        rule = "given with --dataloader-save, for which checkpoints ask the iterator for its state"
        raise invalid("ledger", rule, ledger, cure)
    if vp_stage is not None:
        rule = "left out with virtual pipeline stages, whose iterators Megatron asks for no state"
        raise invalid("ledger", rule, ledger, "leave it out, or train without them")
    if not process_group_runs():
        return {"ledger": ledger}
    from megatron.core import parallel_state

    if parallel_state.get_tensor_model_parallel_rank() or not (
        parallel_state.is_pipeline_first_stage()
    ):
        return {"ledger": False}
    group = parallel_state.get_data_parallel_group(with_context_parallel=True)
    return {"ledger": ledger, "ledger_ranks": torch.distributed.get_process_group_ranks(group)}


def load_saved(iterator: PlanIterator, ledger: Any, args: Any) -> None:
    """Load what a checkpoint of Megatron's says of the run's ledger, where the iterator starts.

    Parameters
    ----------
    iterator : PlanIterator
        At the samples that the checkpoint says are consumed.
    ledger : str, path-like, Ledger, False or None
        As the user gave it.
    args : object
        Megatron's.

    Raises
    ------
    IndexPlanError
        If the state is not that of the checkpoint, or the run kept a ledger and is given none.
    """
    if not getattr(args, "dataloader_save", None) or not getattr(args, "iteration", 0):
        return
    saved = _saved(args)
    if ledger is None:
        refuse_unkept(saved.get("ledger"))
    elif ledger is not False:
        consumed = iterator.consumed_samples
        iterator.load_state(saved or {**iterator.save_state(), "ledger": None})
        if iterator.consumed_samples != consumed:
            rule = f"{iterator.consumed_samples}, as the state of iteration {args.iteration} says"
            cure = "load the checkpoint that was saved with it"
            raise invalid("consumed_train_samples", rule, consumed, cure)


def _saved(args: Any) -> dict[str, Any]:
    """Return an iterator's state in the checkpoint that is loaded; {} if it has none."""
    folder = Path(args.dataloader_save, f"iter_{args.iteration:07d}")
    found: list[Any] = []
    for path in sorted(folder.rglob("train_dataloader_dprank000.pt")):
        try:
            content = torch.load(path, map_location="cpu", weights_only=True)
        except pickle.UnpicklingError:  # of another loader
            continue
        found.append(content["dataloader_state_dict"])
    if any(each != found[0] for each in found):
        raise IndexPlanError(
            f"states of a loader in {folder}",
            "must be equal",
            f"{len(found)} that differ",
            "remove those of an earlier run on other ranks",
        )
    ours = found and isinstance(found[0], dict) and "consumed_samples" in found[0]
    return dict(found[0]) if ours else {}
