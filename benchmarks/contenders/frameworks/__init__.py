"""The one table of trainers and of frameworks of large runs, each with what reads a plan in it.

An entry is a module of this folder with `ENDLESS`, whether its loop reads on past an epoch's
end, and with two functions, `theirs` and `ours`, that train a leg of a run on one rank (see
benchmarks/torture/through.py): load a checkpoint, read, step, and save, by the framework's own
code. They differ in the loader.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from benchmarks.contenders import Contender


@dataclass(frozen=True)
class Framework(Contender):
    """One trainer or framework; everything about it but its code."""

    docs: str
    """The page that says how it reads a plan, in docs."""
    write: str
    """What its user writes."""
    resumes: str
    """By what a run with a plan resumes."""
    theirs: str
    """The loader of its own that is compared, in words."""
    alone: bool = field(default=False, kw_only=True)
    """Whether others break where what it needs is on the path."""
    cure: str = field(default="what .ci/run installs in its stage of frameworks", kw_only=True)


FRAMEWORKS = (
    Framework(
        "plain DDP",
        "plain_ddp",
        "torch",
        "trainers.md#plain-ddp",
        "`PlanLoader(dataset, plan)`",
        "`loader.state_dict()` in your checkpoint; any ranks, batch size and workers",
        "`DistributedSampler`, and skipping as many steps of the same global batch",
    ),
    Framework(
        "Lightning",
        "lightning_trainer",
        "lightning",
        "trainers.md#lightning-and-fabric",
        "`PlanLoader(dataset, plan)`, inside hooks or outside",
        "`ckpt_path`, inside an epoch and at its end; any ranks, batch size and workers",
        "`DataLoader(shuffle=True)`, to which it adds a DistributedSampler, and `ckpt_path`",
    ),
    Framework(
        "Fabric",
        "fabric",
        "lightning",
        "trainers.md#lightning-and-fabric",
        "`fabric.setup_dataloaders(PlanLoader(dataset, plan))`",
        "`loader.state_dict()` of your own loader; any ranks, batch size and workers",
        "`DataLoader(shuffle=True)`, to which it adds a DistributedSampler, and skipping as many "
        "steps of the same global batch",
    ),
    Framework(
        "HF Trainer",
        "hf_trainer",
        "transformers",
        "trainers.md#hf-trainer",
        "`get_train_dataloader` that returns a `PlanLoader`, and "
        "`trainer.add_callback(KeepState(trainer))` of `indexplan_torch.transformers`",
        "its checkpoint's `trainer_state.json`; any ranks, batch size and accumulation",
        "its own loader, whose batches `resume_from_checkpoint` skips",
    ),
    Framework(
        "Accelerate",
        "accelerate_loop",
        "accelerate",
        "trainers.md#accelerate",
        "`prepare(accelerator, model, loader)` of `indexplan_torch.accelerate`, with a "
        "`PlanLoader`",
        "`accelerator.save_state` and `load_state`; any ranks, batch size and accumulation",
        "`DataLoader(shuffle=True)` in `accelerator.prepare`, and `skip_first_batches`",
    ),
    Framework(
        "Composer",
        "composer_trainer",
        "mosaicml",
        "trainers.md#composer",
        "`PlanLoader(dataset, plan)`, and `callbacks=[KeepState()]` of `indexplan_torch.composer`",
        "its checkpoints; any ranks, batch size and workers",
        "`composer.utils.dist.get_sampler`, and `load_path`, which skips batches",
        alone=True,  # others import the torchvision that it needs, which is of another torch
        cure="what .ci/run installs in its stage of Composer",
    ),
    Framework(
        "StatefulDataLoader",
        "torchdata_loader",
        "torchdata",
        "trainers.md#torchdata",
        "`StatefulDataLoader(dataset, batch_sampler=PlanBatchSampler(plan))`",
        "its state; any ranks and batch size, the same number of workers",
        "`StatefulDistributedSampler`; each rank loads the state with its number",
    ),
    Framework(
        "torchdata.nodes",
        "torchdata_nodes",
        "torchdata",
        "trainers.md#torchdata",
        "`Loader(Mapper(SamplerWrapper(PlanBatchSampler(plan)), fetch))`",
        "the state of its Loader; any ranks and batch size",
        "`StatefulDistributedSampler` and `Batcher`; each rank loads the state with its number",
    ),
    Framework(
        "Ray Train",
        "ray_train",
        "ray",
        "trainers.md#ray-train",
        "`prepare(PlanLoader(dataset, plan))` of `indexplan_torch.ray`",
        "`loader.state_dict()` in its checkpoint; any ranks, batch size and workers",
        "`prepare_data_loader`, which adds a DistributedSampler, and skipping as many steps of the "
        "same global batch; its local mode under torchrun",
    ),
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
