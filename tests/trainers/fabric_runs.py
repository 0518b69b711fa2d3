"""Loops under Fabric: what the ranks of test_fabric.py run, each in its own process."""

from __future__ import annotations

import logging
import os
import warnings
from itertools import islice
from typing import Any

import torch
from lightning.fabric import Fabric
from torch.utils.data import DataLoader

import indexplan as ip
from indexplan_torch import PlanBatchSampler, PlanLoader
from tests.trainers import test_fabric as given

DATA = range(103)


class Loop:
    """A training loop over a loader that Fabric has set up, with its default settings."""

    def __init__(self, fabric: Fabric, loader: Any) -> None:
        self.fabric = fabric
        self.model = fabric.setup(torch.nn.Linear(1, 1))
        self.loader = fabric.setup_dataloaders(loader)
        self.lengths: list[int] = []

    def read(self, num_steps: int | None = None) -> list[Any]:
        """Train on a pass, or on its first steps; return its batches."""
        batches = []
        for batch in islice(self.loader, num_steps):
            self.fabric.backward(self.model(batch[:, None].float()).sum())
            batches.append(batch.tolist())
        self.lengths.append(len(self.loader))
        return batches


def prepare() -> Fabric:
    """Return a launched Fabric."""
    warnings.simplefilter("ignore")
    logging.getLogger("lightning.fabric").setLevel(logging.ERROR)
    os.environ.pop("RANK", None)  # which Fabric's own launcher does not set
    fabric = Fabric(accelerator="cpu", devices=int(os.environ["WORLD_SIZE"]), strategy="ddp")
    fabric.launch()
    return fabric


def options(workers: str) -> dict[str, Any]:
    """A loader's options: `2p` for persistent workers."""
    return {"num_workers": int(workers[0]), "persistent_workers": workers.endswith("p")}


def refused(fabric: Fabric) -> str:
    """What is said of a DataLoader whose batch sampler Fabric makes again."""
    try:
        fabric.setup_dataloaders(DataLoader(DATA, batch_sampler=PlanBatchSampler(given.PLAN)))
    except ip.IndexPlanError as error:
        return error.what
    return ""


def train(folder: str) -> dict[str, Any]:
    """Train, save and resume; return the batches by name."""
    fabric = prepare()
    told: dict[str, Any] = {}
    for workers in given.WORKERS:
        loader = PlanLoader(DATA, given.PLAN, **options(workers))
        loop = Loop(fabric, loader)
        told[f"passes {workers}"] = [loop.read() for _ in range(given.PASSES)]
        told[f"lengths {workers}"] = loop.lengths

        loader = PlanLoader(DATA, given.PLAN, **options(workers))
        loop = Loop(fabric, loader)
        for name, num_steps in (("first", None), ("end", None), ("middle", 2)):
            told[f"{name} {workers}"] = loop.read(num_steps)
            fabric.save(f"{folder}/{name}-{workers}.ckpt", {"loader": loader.state_dict()})
        loader.load_state_dict(fabric.load(f"{folder}/end-{workers}.ckpt")["loader"])
        told[f"rewound {workers}"] = [loop.read() for _ in range(2)]
        loader.load_state_dict(fabric.load(f"{folder}/middle-{workers}.ckpt")["loader"])
        told[f"rewound to the middle {workers}"] = [loop.read() for _ in range(2)]

    def launched(fabric: Fabric) -> list[Any]:
        """Make and read a loader where Fabric records all that is set on samplers."""
        told["plain inside"] = refused(fabric)
        loop = Loop(fabric, PlanLoader(DATA, given.PLAN))
        return [loop.read() for _ in range(given.PASSES)]

    told["plain outside"] = refused(fabric)
    told["launched"] = fabric.launch(launched)
    return {**told, **resume(folder, fabric)}


def resume(folder: str, fabric: Fabric | None = None) -> dict[str, Any]:
    """Resume in new loaders, with other workers; return the batches by name."""
    fabric = fabric or prepare()
    told = {}
    for name, (saved, workers, _) in given.RESUMES.items():
        loader = PlanLoader(DATA, given.PLAN, **options(workers))
        loader.load_state_dict(fabric.load(f"{folder}/{saved}.ckpt")["loader"])
        loop = Loop(fabric, loader)
        told[f"resumed {name}"] = [loop.read() for _ in range(2)]
    return told
