"""Plans under Megatron-LM: iterators for `--dataloader-type external`, and its samples.

Megatron asks an external loader for `next` alone, without an end, and keeps how many samples the
run has consumed. That count is a place in a plan, so nothing else has to be kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from indexplan_torch.endless import PlanIterator

if TYPE_CHECKING:
    from indexplan_torch.megatron_samples import Samples

__all__ = ["PlanIterator", "Samples"]


def __getattr__(name: str) -> Any:
    if name != "Samples":  # which needs Megatron, as nothing else here does before it runs
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from indexplan_torch.megatron_samples import Samples

    return Samples
