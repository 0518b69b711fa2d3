"""The one table of trainers and of frameworks of large runs, each with what reads a plan in it.

An entry is a module of this folder with `ENDLESS`, whether its loop reads on past an epoch's
end, and with functions that train a leg of a run on one rank (see tests/runs/row.py):
load a checkpoint, read, step, and save, by the framework's own code. They differ in the loader:
`theirs` reads as people usually write it, `recommended`, where that is something else, as the
framework's documentation recommends to those who resume inside an epoch, and `ours` by a plan.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.histories.stories import Given, Story
from tests.runs.rivals import Rival
from tests.runs.row import EXACT, KINDS, WAYS, counted


@dataclass(frozen=True)
class Framework(Rival):
    """One trainer or framework; everything about it but its code."""

    docs: str
    """The page that says how it reads a plan, in docs."""
    theirs: str
    """The loader of its own that people usually write, in words."""
    recommended: str = field(default="", kw_only=True)
    """The one that its documentation recommends, if that is another one."""
    page: str = field(default="", kw_only=True)
    """Where it recommends that: the address of the page."""
    drawn: str = field(default="", kw_only=True)
    """Its loader's name where drawn histories are counted, if it is the same loader."""
    variant: str = field(default="", kw_only=True)
    """What stands before the names of its functions, where a module has several entries."""
    alone: bool = field(default=False, kw_only=True)
    """Whether others break where what it needs is on the path."""
    cure: str = field(
        default="pip install --no-deps --target FOLDER -r .ci/locked-frameworks.txt, and FOLDER on "
        "PYTHONPATH",
        kw_only=True,
    )

    def most(self, given: Given) -> int:
        """Return how many histories it is given: one of each kind."""
        return len(KINDS)

    def live(self, story: Story, given: Given) -> None:
        """Run its own loader and ours; ours has to be exact."""
        kind = [*KINDS][story.number]
        story.say(KINDS[kind])
        record = both(self.name, (kind,), (kind,))
        story.record = {way: record[way] for way in WAYS if way in record}
        if record.get("ours", {}).get(kind, EXACT) != EXACT:
            story.fail(f"{record['ours'][kind]}")


STATEFUL = (
    "torchdata's `StatefulDataLoader` with its `StatefulDistributedSampler`, and "
    "`use_distributed_sampler=False`, as its warning about resumes asks for a stateful loader"
)

RIVALS = FRAMEWORKS = (
    Framework(
        "plain DDP",
        "plain_ddp",
        "torch",
        "trainers.md#plain-ddp",
        "`DistributedSampler`, and skipping as many steps of the same global batch",
        page="https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.distributed.DistributedSampler",
        drawn="torch DistributedSampler and skipping",
    ),
    Framework(
        "Lightning",
        "lightning_trainer",
        "lightning",
        "trainers.md#lightning-and-fabric",
        "`DataLoader(shuffle=True)`, to which it adds a DistributedSampler, and `ckpt_path`",
        recommended=STATEFUL,
        page="https://github.com/Lightning-AI/pytorch-lightning/pull/19475",
    ),
    Framework(
        "Lightning with estimated_stepping_batches",
        "lightning_trainer",
        "lightning",
        "trainers.md#lightning-and-fabric",
        "the same, where `configure_optimizers` reads `trainer.estimated_stepping_batches`, as a "
        "schedule of learning rates does (Lightning's issue 20550)",
        recommended=STATEFUL,
        page="https://github.com/Lightning-AI/pytorch-lightning/issues/20550",
        variant="estimating_",
    ),
    Framework(
        "Fabric",
        "fabric",
        "lightning",
        "trainers.md#lightning-and-fabric",
        "`DataLoader(shuffle=True)`, to which it adds a DistributedSampler, and skipping as many "
        "steps of the same global batch",
        page="https://lightning.ai/docs/fabric/stable/guide/checkpoint",
    ),
    Framework(
        "HF Trainer",
        "hf_trainer",
        "transformers",
        "trainers.md#hf-trainer",
        "its own loader, whose batches `resume_from_checkpoint` skips",
        page="https://github.com/huggingface/transformers/blob/main/docs/source/en/trainer.md",
    ),
    Framework(
        "Accelerate",
        "accelerate_loop",
        "accelerate",
        "trainers.md#accelerate",
        "`DataLoader(shuffle=True)` in `accelerator.prepare`, and `skip_first_batches`",
        recommended="the same with `use_stateful_dataloader=True` and `use_seedable_sampler=True`",
        page="https://huggingface.co/docs/accelerate/usage_guides/checkpoint",
        drawn="Accelerate skip_first_batches",
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
        page="https://docs.mosaicml.com/projects/composer/en/latest/trainer/checkpointing.html",
    ),
    Framework(
        "StatefulDataLoader",
        "torchdata_loader",
        "torchdata",
        "trainers.md#torchdata",
        "`StatefulDistributedSampler`; each rank loads the state with its number",
        page="https://github.com/meta-pytorch/data/blob/v0.11.0/torchdata/stateful_dataloader/README.md",
        drawn="torchdata StatefulDataLoader",
    ),
    Framework(
        "torchdata.nodes",
        "torchdata_loader",
        "torchdata",
        "trainers.md#torchdata",
        "`StatefulDistributedSampler` and `Batcher`; each rank loads the state with its number",
        page="https://docs.pytorch.org/data/main/migrate_to_nodes_from_utils.html",
        variant="nodes_",
    ),
    Framework(
        "Ray Train",
        "ray_train",
        "ray",
        "trainers.md#ray-train",
        "`prepare_data_loader`, which adds a DistributedSampler, and skipping as many steps of the "
        "same global batch; its local mode under torchrun",
        page="https://docs.ray.io/en/latest/train/user-guides/checkpoints.html",
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
        "a shuffled MapDataset, sliced for each process, and batched; the iterator's state",
        page="https://google-grain.readthedocs.io/en/latest/tutorials/dataset_basic_tutorial.html",
    ),
    Framework(
        "OLMo-core",
        "olmo_core",
        "ai2-olmo-core",
        "migrate/large-runs.md#olmo-core",
        "`NumpyFSLDataLoader`",
        page="https://github.com/allenai/OLMo-core/blob/main/docs/source/guides/data_loading.rst",
    ),
    Framework(
        "NeMo AutoModel",
        "nemo_automodel",
        "nemo-automodel",
        "migrate/large-runs.md#nemo-automodel",
        "its `StatefulDistributedSampler`",
        page="https://github.com/NVIDIA-NeMo/Automodel/blob/main/docs/guides/checkpointing.md",
    ),
    Framework(
        "TRL's GRPOTrainer",
        "trl",
        "trl",
        "reinforcement-learning.md",
        "its `RepeatSampler`",
    ),
    Framework(
        "torchtitan",
        "torchtitan",
        "torchtitan",
        "migrate/large-runs.md#torchtitan",
        "`HuggingFaceTextDataLoader`",
        page="https://github.com/pytorch/torchtitan/blob/main/docs/checkpoint.md",
    ),
    Framework(
        "MosaicML Streaming",
        "mosaicml_streaming",
        "mosaicml-streaming",
        "migrate/streaming.md",
        "`StreamingDataset` in `StreamingDataLoader`, and its state of the first rank for all",
        page="https://docs.mosaicml.com/projects/streaming/en/stable/distributed_training/elastic_determinism.html",
        drawn="MosaicML Streaming",
    ),
    Framework(
        "LanceDB's StreamingDataset",
        "lancedb_streaming",
        "lancedb",
        "recipes.md#lancedb",
        "`StreamingDataset` of 12 splits in torch's DataLoader; each rank loads the state with its "
        "number",
        recommended="the same, with the states of all ranks merged for each",
        page="https://docs.lancedb.com/training/resuming",
    ),
    Framework(
        "LitData",
        "litdata_streaming",
        "litdata",
        "migrate/streaming.md",
        "`StreamingDataset(shuffle=True, drop_last=True)` in `StreamingDataLoader`, and its state "
        "of the first rank for all",
        page="https://github.com/Lightning-AI/litData/blob/main/README.md",
        drawn="LitData",
    ),
)
"""In the order of the page."""


def both(
    name: str, theirs: tuple[str, ...], ours: tuple[str, ...], ways: tuple[str, ...] = WAYS
) -> dict[str, Any]:
    """Run a framework's own loader in some ways that its module has, and ours."""
    (framework,) = (each for each in FRAMEWORKS if each.name == name)
    record: dict[str, Any] = framework.standing()
    if not record["missing"]:
        code = framework.load()
        for way in ways:
            function = f"{framework.variant}{way}"
            if hasattr(code, function):  # what is usual may be what is recommended
                record[way] = counted(code, function, ours if way == "ours" else theirs)
    return record
