"""The one table of trainers and of frameworks of large runs, each with what reads a plan in it.

An entry is a module of this folder with `ENDLESS`, whether its loop reads on past an epoch's
end, and with functions that train a leg of a run on one rank (see tests/runs/through.py):
load a checkpoint, read, step, and save, by the framework's own code. They differ in the loader:
`theirs` reads as people usually write it, `recommended`, where that is something else, as the
framework's documentation recommends to those who resume inside an epoch, and `ours` by a plan.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from benchmarks.contenders import Contender


@dataclass(frozen=True)
class Framework(Contender):
    """One trainer or framework; everything about it but its code."""

    docs: str
    """The page that says how it reads a plan, in docs."""
    theirs: str
    """The loader of its own that people usually write, in words."""
    recommended: str = field(default="", kw_only=True)
    """The one that its documentation recommends, if that is another one."""
    alone: bool = field(default=False, kw_only=True)
    """Whether others break where what it needs is on the path."""
    cure: str = field(
        default="pip install --no-deps --target FOLDER -r .ci/locked-frameworks.txt, and FOLDER on "
        "PYTHONPATH",
        kw_only=True,
    )


STATEFUL = (
    "torchdata's `StatefulDataLoader` with its `StatefulDistributedSampler`, and "
    "`use_distributed_sampler=False`, as its warning about resumes asks for a stateful loader"
)

FRAMEWORKS = (
    Framework(
        "plain DDP",
        "plain_ddp",
        "torch",
        "trainers.md#plain-ddp",
        "`DistributedSampler`, and skipping as many steps of the same global batch",
    ),
    Framework(
        "Lightning",
        "lightning_trainer",
        "lightning",
        "trainers.md#lightning-and-fabric",
        "`DataLoader(shuffle=True)`, to which it adds a DistributedSampler, and `ckpt_path`",
        recommended=STATEFUL,
    ),
    Framework(
        "Lightning with estimated_stepping_batches",
        "lightning_estimating",
        "lightning",
        "trainers.md#lightning-and-fabric",
        "the same, where `configure_optimizers` reads `trainer.estimated_stepping_batches`, as a "
        "schedule of learning rates does (Lightning's issue 20550)",
        recommended=STATEFUL,
    ),
    Framework(
        "Fabric",
        "fabric",
        "lightning",
        "trainers.md#lightning-and-fabric",
        "`DataLoader(shuffle=True)`, to which it adds a DistributedSampler, and skipping as many "
        "steps of the same global batch",
    ),
    Framework(
        "HF Trainer",
        "hf_trainer",
        "transformers",
        "trainers.md#hf-trainer",
        "its own loader, whose batches `resume_from_checkpoint` skips",
    ),
    Framework(
        "Accelerate",
        "accelerate_loop",
        "accelerate",
        "trainers.md#accelerate",
        "`DataLoader(shuffle=True)` in `accelerator.prepare`, and `skip_first_batches`",
        recommended="the same with `use_stateful_dataloader=True` and `use_seedable_sampler=True`",
    ),
    Framework(
        "Composer",
        "composer_trainer",
        "mosaicml",
        "trainers.md#composer",
        "`composer.utils.dist.get_sampler`, and `load_path`, which skips batches",
        alone=True,  # others import the torchvision that it needs, which is of another torch
        cure="pip install --no-deps --target FOLDER -r .ci/locked-composer.txt, and FOLDER on "
        "PYTHONPATH",
    ),
    Framework(
        "StatefulDataLoader",
        "torchdata_loader",
        "torchdata",
        "trainers.md#torchdata",
        "`StatefulDistributedSampler`; each rank loads the state with its number",
    ),
    Framework(
        "torchdata.nodes",
        "torchdata_nodes",
        "torchdata",
        "trainers.md#torchdata",
        "`StatefulDistributedSampler` and `Batcher`; each rank loads the state with its number",
    ),
    Framework(
        "Ray Train",
        "ray_train",
        "ray",
        "trainers.md#ray-train",
        "`prepare_data_loader`, which adds a DistributedSampler, and skipping as many steps of the "
        "same global batch; its local mode under torchrun",
    ),
    Framework(
        "Megatron Core",
        "megatron",
        "megatron-core",
        "migrate/megatron.md",
        "`--dataloader-type single`, its default, over samples that the dataset has shuffled",
    ),
    Framework(
        "Grain",
        "grain",
        "grain",
        "migrate/grain.md",
        "a shuffled MapDataset, sliced for each process, and batched",
    ),
    Framework(
        "OLMo-core",
        "olmo_core",
        "ai2-olmo-core",
        "migrate/olmo-core.md",
        "`NumpyFSLDataLoader`",
    ),
    Framework(
        "NeMo AutoModel",
        "nemo_automodel",
        "nemo-automodel",
        "migrate/nemo.md",
        "its `StatefulDistributedSampler`",
    ),
    Framework(
        "TRL's GRPOTrainer, first epoch",
        "trl_first",
        "trl",
        "migrate/trl-grpo.md",
        "its `RepeatSampler`",
    ),
    Framework(
        "TRL's GRPOTrainer, second epoch",
        "trl",
        "trl",
        "migrate/trl-grpo.md",
        "its `RepeatSampler`",
    ),
    Framework(
        "torchtitan",
        "torchtitan",
        "torchtitan",
        "migrate/torchtitan.md",
        "`HuggingFaceTextDataLoader`",
    ),
)
"""In the order of the page."""
