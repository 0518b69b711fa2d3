"""The one table of frameworks of large runs, each with a drop-in of ours.

A framework is a module of this folder with `ENDLESS`, whether its loop reads on past an epoch's
end, and with two functions, `theirs` and `ours`, that train a leg of a run on one rank (see
benchmarks/torture/through.py): load a checkpoint, read, step, and save, by the framework's own
code. They differ in the loader.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from benchmarks.contenders import Contender


@dataclass(frozen=True)
class Framework(Contender):
    """One framework; everything about it but its code."""

    docs: str
    """The page that says how it reads a plan, in docs."""
    write: str
    """What its user writes."""
    resumes: str
    """By what a run with a plan resumes."""
    theirs: str
    """The loader of its own that is compared, in words."""
    cure: str = field(default="what .ci/run installs in its stage of frameworks", kw_only=True)


FRAMEWORKS = (
    Framework(
        "Megatron Core",
        "megatron",
        "megatron-core",
        "migrate/megatron.md",
        "`datasets_provider((dataset, order))` of `indexplan_torch.megatron`, and "
        "`--dataloader-type external`",
        "its checkpoint's consumed samples; any ranks, micro-batch and ramp-up",
        "`--dataloader-type cyclic` with `--data-sharding`",
    ),
    Framework(
        "Grain",
        "grain",
        "grain",
        "migrate/grain.md",
        "`PlanIterDataset` of `indexplan_jax.grain`, or `PlanSampler` for its DataLoader",
        "its iterators' states; any processes, workers and batch size",
        "a shuffled MapDataset, sliced for each process, and batched",
    ),
    Framework(
        "OLMo-core",
        "olmo_core",
        "ai2-olmo-core",
        "migrate/olmo-core.md",
        "`PlanDataLoader(dataset, order, ...)` of `indexplan_torch.olmo`",
        "its checkpoint's trainer state; any ranks, and any batch size before any step",
        "`NumpyFSLDataLoader`",
    ),
    Framework(
        "NeMo AutoModel",
        "nemo_automodel",
        "nemo-automodel",
        "migrate/nemo.md",
        "`_target_: indexplan_torch.nemo.PlanBatchSamplerConfig` in the YAML file, and a line of "
        "the script",
        "its checkpoint's loader state, equal on all ranks; the same number of workers",
        "its `StatefulDistributedSampler`",
    ),
    Framework(
        "TRL's GRPOTrainer",
        "trl",
        "trl",
        "migrate/trl-grpo.md",
        "`trainer.add_callback(ReadPrompts(trainer, order))` of `indexplan_torch.trl`",
        "its checkpoint's `trainer_state.json`; any ranks, inside a generation's steps too",
        "its `RepeatSampler`, in the second epoch",
    ),
    Framework(
        "torchtitan",
        "torchtitan",
        "torchtitan",
        "migrate/torchtitan.md",
        "`dataloader=PlanDataLoader.Config(dataset=..., order=...)` of "
        "`indexplan_torch.torchtitan`",
        "its DCP checkpoint, which holds one text for all ranks; any ranks and batch sizes",
        "`HuggingFaceTextDataLoader`",
    ),
)
"""In the order of the page."""
