"""Device meshes: what the ranks of test_meshes.py run, each in its own process."""

from __future__ import annotations

import logging
import os
import warnings
from typing import Any

import lightning.pytorch as pl
import torch
import torch.distributed as dist
from lightning.fabric import Fabric
from lightning.fabric.strategies import ModelParallelStrategy as FabricStrategy
from lightning.pytorch.strategies import ModelParallelStrategy
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import ColwiseParallel, parallelize_module

import indexplan as ip
from indexplan_torch import PlanBatchSampler, PlanLoader, PlanSampler
from indexplan_torch.ranks import discover
from tests.trainers import test_meshes as given
from tests.trainers.lightning_runs import QUIET


def started(folder: str, name: str) -> None:
    """Start a process group of all ranks that knows of no mesh."""
    dist.init_process_group(
        "gloo",
        init_method=f"file://{folder}/{name}",
        rank=int(os.environ["RANK"]),
        world_size=int(os.environ["WORLD_SIZE"]),
    )


def ended() -> None:
    """Leave the process group once all ranks are done: one may still be connecting to this one."""
    dist.barrier()
    dist.destroy_process_group()


def said(ask: Any) -> Any:
    """What is answered, or the error's words."""
    try:
        return ask()
    except ip.IndexPlanError as error:
        return str(error)


def read(samples: Any) -> list[Any]:
    """The batches of a pass."""
    return [each.tolist() if hasattr(each, "tolist") else each for each in samples]


def data_dimension(mesh: DeviceMesh) -> DeviceMesh:
    """The one dimension of a mesh along which data is dealt out, as its maker knows it."""
    names = [name for name in mesh.mesh_dim_names or () if name.startswith(("dp", "data", "fsdp"))]
    return mesh[names[0]] if len(names) == 1 else mesh[tuple(names)]._flatten("dp")


def meshes(folder: str) -> dict[str, Any]:
    """Ask every mesh of the table for ranks, and loaders for batches; return the answers."""
    told: dict[str, Any] = {}
    for name, case in given.MESHES.items():
        if case.num_ranks != int(os.environ["WORLD_SIZE"]):
            continue
        started(folder, name)
        mesh = init_device_mesh("cpu", case.shape, mesh_dim_names=case.names)
        made = {
            "found": said(discover),
            "mesh": said(lambda mesh=mesh: discover(mesh=mesh)),
            "read": said(lambda: read(PlanLoader(range(103), given.PLAN))),
        }
        if case.ranks is not None:
            dim = data_dimension(mesh)
            made["dimension"] = discover(mesh=dim)
            plan = given.PLAN
            made["read by mesh"] = [
                read(PlanLoader(range(103), plan, mesh=dim)),
                read(PlanBatchSampler(plan, mesh=mesh)),
            ]
            flat = PlanSampler(plan.replace(remainder="drop"), mesh=mesh)
            made["single"] = [read(flat), discover(flat.rank, flat.num_replicas)]
        told[name] = made
        ended()
    return told


def refused(folder: str) -> dict[str, Any]:
    """Ask for what cannot be told; return the words."""
    started(folder, "refused")
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    peers = init_device_mesh("cpu", (4,), mesh_dim_names=("tp",))
    pair = DeviceMesh("cpu", [0, 1])
    return {
        "peers": said(lambda: discover(mesh=mesh["tp"])),
        "peers of all ranks": said(lambda: PlanLoader(range(103), given.PLAN, mesh=peers)),
        "mixed": said(lambda: discover(mesh=mesh["dp", "tp"]._flatten("dp_tp"))),
        "rank too": said(lambda: discover(0, 2, mesh=mesh)),
        "a name": said(lambda: discover(mesh="dp")),
        "not in it": said(lambda: discover(mesh=pair)),
    }


def sharded(folder: str) -> dict[str, Any]:
    """Train with FSDP2 x TP, by hand; return batches and the trained weights."""
    started(folder, "sharded")
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(1, 4, bias=False))
    parallelize_module(model, mesh["tp"], {"0": ColwiseParallel(use_local_output=False)})
    fully_shard(model, mesh=mesh["dp"])
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    loader = PlanLoader(range(103), given.PLAN, mesh=mesh)
    batches = []
    for batch in loader:
        out = model(batch[:, None].float())
        out = out.full_tensor() if isinstance(out, DTensor) else out
        loss = out.sum() * mesh["dp"].size() / loader.step_size
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        batches.append(batch.tolist())
    (weight,) = model.parameters()
    return {"batches": batches, "weight": weight.full_tensor().flatten().tolist()}


class Recorder(pl.LightningModule):
    """A model that records its batches, split over the mesh."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(1, 4)
        self.read: list[Any] = []
        self.validated: list[Any] = []

    def configure_model(self) -> None:
        parallelize(self.layer, self.device_mesh)

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), lr=0.1)

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        self.read.append(batch.tolist())
        return self.layer(batch[:, None].float()).mean()

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        self.validated.append(batch.tolist())


def parallelize(model: Any, mesh: Any) -> Any:
    """Split a layer over tensor-parallel peers, and shard it."""
    parallelize_module(model, mesh["tensor_parallel"], ColwiseParallel())
    return fully_shard(model, mesh=mesh["data_parallel"])


def trainers(folder: str) -> dict[str, Any]:  # noqa: ARG001 (which all runs get)
    """Train under Lightning and Fabric with a data-parallel and a tensor-parallel dimension."""
    warnings.simplefilter("ignore")
    for name in ("lightning.pytorch", "lightning.fabric"):
        logging.getLogger(name).setLevel(logging.ERROR)
    sizes = {"data_parallel_size": 2, "tensor_parallel_size": 2}
    told = {}
    options: dict[str, Any] = {"accelerator": "cpu", "devices": 4}
    model = Recorder()
    loaders = [PlanLoader(range(103), given.PLAN), PlanLoader(range(103), given.PLAN)]
    strategy = ModelParallelStrategy(**sizes, save_distributed_checkpoint=False)
    pl.Trainer(**QUIET, **options, strategy=strategy, max_epochs=2, num_sanity_val_steps=0).fit(
        model, *loaders
    )
    told["Lightning"] = model.read
    told["Lightning's validation"] = model.validated

    fabric = Fabric(**options, strategy=FabricStrategy(parallelize, **sizes))
    fabric.launch()
    layer = fabric.setup_module(torch.nn.Linear(1, 4))
    loader = fabric.setup_dataloaders(PlanLoader(range(103), given.PLAN))
    told["Fabric"] = []
    for _ in range(2):
        for batch in loader:
            fabric.backward(layer(batch[:, None].float()).mean())
            told["Fabric"].append(batch.tolist())
    return told


def everything(folder: str) -> dict[str, Any]:
    """Run all that four ranks run, in one launch."""
    told: dict[str, Any] = {"meshes": meshes(folder)}
    for each in (sharded, refused):
        told[each.__name__] = each(folder)
        ended()
    return {**told, "trainers": trainers(folder)}
