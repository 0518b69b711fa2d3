"""Plans under Megatron-LM: iterators for `--dataloader-type external`.

Megatron asks an external loader for `next` alone, without an end, and keeps how many samples the
run has consumed. That count is a place in a plan, so nothing else has to be kept.
"""

from indexplan_torch.endless import PlanIterator

__all__ = ["PlanIterator"]
