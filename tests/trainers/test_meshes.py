"""Device meshes of 2 and 4 real ranks: data-parallel ranks read their own, all peers the same."""

from __future__ import annotations

import logging
import math
import os
import warnings
from typing import Any, NamedTuple

import lightning.pytorch as pl
import pytest
import torch
import torch.distributed as dist
from lightning.fabric import Fabric
from lightning.fabric.strategies import ModelParallelStrategy as FabricStrategy
from lightning.pytorch.strategies import ModelParallelStrategy
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, parallelize_module

import indexplan as ip
from indexplan_torch import PlanBatchSampler, PlanLoader, PlanSampler
from indexplan_torch.ranks import discover
from tests.trainers.lightning_runs import QUIET, Recorder
from tests.trainers.ranks import run_ranks

PLAN = ip.Plan(ip.Shuffle(103, seed=8), batch_size=6)


class Mesh(NamedTuple):
    """A mesh, and the data-parallel rank of each of its processes."""

    shape: tuple[int, ...]
    names: tuple[str, ...] | None
    ranks: list[int] | None  # None: the names do not tell

    @property
    def num_ranks(self) -> int:
        """How many processes it takes."""
        return math.prod(self.shape)


MESHES = {
    "fsdp 4": Mesh((4,), ("dp_shard",), [0, 1, 2, 3]),
    "hsdp": Mesh((2, 2), ("dp_replicate", "dp_shard"), [0, 1, 2, 3]),
    "dp x tp": Mesh((2, 2), ("dp", "tp"), [0, 0, 1, 1]),
    "Lightning's": Mesh((2, 2), ("data_parallel", "tensor_parallel"), [0, 0, 1, 1]),
    "Lightning's without tp": Mesh((4, 1), ("data_parallel", "tensor_parallel"), [0, 1, 2, 3]),
    "Lightning's without dp": Mesh((1, 4), ("data_parallel", "tensor_parallel"), [0, 0, 0, 0]),
    "pp x dp": Mesh((2, 2), ("pp", "dp"), [0, 1, 0, 1]),
    "fsdp x cp": Mesh((2, 2), ("dp_shard", "cp"), [0, 0, 1, 1]),
    "pp x dp x tp": Mesh((2, 1, 2), ("pp", "dp", "tp"), [0, 0, 0, 0]),
    "pp x dp x cp x tp": Mesh((1, 2, 2, 1), ("pp", "dp", "cp", "tp"), [0, 0, 1, 1]),
    "hsdp x tp": Mesh((2, 1, 2), ("dp_replicate", "dp_shard", "tp"), [0, 0, 1, 1]),
    "hsdp x cp": Mesh((1, 2, 2), ("dp_replicate", "dp_shard", "cp"), [0, 0, 1, 1]),
    "no names": Mesh((2, 2), None, None),
    "unknown names": Mesh((2, 2), ("dp", "ep"), None),
    "fsdp 2": Mesh((2,), ("fsdp",), [0, 1]),
    "tp alone": Mesh((1, 2), ("dp", "tp"), [0, 0]),
    "dp alone": Mesh((2, 1), ("dp", "tp"), [0, 1]),
}
TOLD = [name for name, mesh in MESHES.items() if mesh.ranks is not None]
CURE = (
    "pass mesh=, the data-parallel dimension such as mesh['dp'], or rank= and world_size= of the "
    "ranks that read different samples"
)
REFUSED = {
    "peers": f"a mesh must be of the data-parallel dimension; got tp=2; {CURE}",
    "peers of all ranks": f"a mesh must be of the data-parallel dimension; got tp=4; {CURE}",
    "mixed": f"a mesh must be of the data-parallel dimension; got dp_tp=4; {CURE}",
}


# --- what ranks run


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


def read(loader: PlanLoader) -> list[Any]:
    """The batches of a pass, and the samples that all ranks read in each of its steps."""
    return [[batch.tolist(), loader.step_size] for batch in loader]


def data_dimension(mesh: DeviceMesh) -> DeviceMesh:
    """The one dimension of a mesh along which data is dealt out, as its maker knows it."""
    names = [name for name in mesh.mesh_dim_names or () if name.startswith(("dp", "data", "fsdp"))]
    return mesh[names[0]] if len(names) == 1 else mesh[tuple(names)]._flatten("dp")


def meshes(folder: str) -> dict[str, Any]:
    """Ask every mesh of the table for ranks, and loaders for batches; return the answers."""
    told: dict[str, Any] = {}
    for name, case in MESHES.items():
        if case.num_ranks != int(os.environ["WORLD_SIZE"]):
            continue
        started(folder, name)
        mesh = init_device_mesh("cpu", case.shape, mesh_dim_names=case.names)
        made = {
            "found": said(discover),
            "mesh": said(lambda mesh=mesh: discover(mesh=mesh)),
            "read": said(lambda: read(PlanLoader(range(103), PLAN))),
        }
        if case.ranks is not None:
            dim = data_dimension(mesh)
            made["dimension"] = discover(mesh=dim)
            made["read by mesh"] = read(PlanLoader(range(103), PLAN, mesh=dim))
            made["drawn"] = [*PlanBatchSampler(PLAN, mesh=mesh)]
            flat = PlanSampler(PLAN.replace(remainder="drop"), mesh=mesh)
            made["single"] = [[*flat], discover(flat.rank, flat.num_replicas)]
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
        "peers of all ranks": said(lambda: PlanLoader(range(103), PLAN, mesh=peers)),
        "mixed": said(lambda: discover(mesh=mesh["dp", "tp"]._flatten("dp_tp"))),
        "not in it": said(lambda: discover(mesh=pair)),
    }


def sharded(folder: str) -> list[float]:
    """Train with FSDP2 x TP, by hand, as docs/trainers.md weights gradients; return the weights."""
    started(folder, "sharded")
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(1, 4, bias=False))
    parallelize_module(model, mesh["tp"], {"0": ColwiseParallel(use_local_output=False)})
    fully_shard(model, mesh=mesh["dp"])
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    loader = PlanLoader(range(103), PLAN, mesh=mesh)
    for batch in loader:
        loss = model(batch[:, None].float()).full_tensor().sum()
        (loss * mesh["dp"].size() / loader.step_size).backward()
        optimizer.step()
        optimizer.zero_grad()
    (weight,) = model.parameters()
    found: list[float] = weight.full_tensor().flatten().tolist()
    ended()
    return found


class InMesh(Recorder):
    """A model that records its batches, split over the mesh."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(1, 4)

    def configure_model(self) -> None:
        parallelize(self.layer, self.device_mesh)


def parallelize(model: Any, mesh: Any) -> Any:
    """Split a layer over tensor-parallel peers, and shard it."""
    parallelize_module(model, mesh["tensor_parallel"], ColwiseParallel())
    return fully_shard(model, mesh=mesh["data_parallel"])


def trainers() -> dict[str, Any]:
    """Train under Lightning and Fabric with a data-parallel and a tensor-parallel dimension."""
    warnings.simplefilter("ignore")
    for name in ("lightning.pytorch", "lightning.fabric"):
        logging.getLogger(name).setLevel(logging.ERROR)
    sizes = {"data_parallel_size": 2, "tensor_parallel_size": 2}
    told = {}
    options: dict[str, Any] = {"accelerator": "cpu", "devices": 4}
    model = InMesh()
    loaders = [PlanLoader(range(103), PLAN), PlanLoader(range(103), PLAN)]
    strategy = ModelParallelStrategy(**sizes, save_distributed_checkpoint=False)
    pl.Trainer(**QUIET, **options, strategy=strategy, max_epochs=2, num_sanity_val_steps=0).fit(
        model, *loaders
    )
    told["Lightning"] = [each for each in model.story if each != "validated"]
    told["Lightning's validation"] = model.validated

    fabric = Fabric(**options, strategy=FabricStrategy(parallelize, **sizes))
    fabric.launch()
    layer = fabric.setup_module(torch.nn.Linear(1, 4))
    loader = fabric.setup_dataloaders(PlanLoader(range(103), PLAN))
    told["Fabric"] = []
    for _ in range(2):
        for batch in loader:
            fabric.backward(layer(batch[:, None].float()).mean())
            told["Fabric"].append(batch.tolist())
    return told


def everything(folder: str) -> dict[str, Any]:
    """Run all that four ranks run, in one launch."""
    told: dict[str, Any] = {"meshes": meshes(folder), "refused": refused(folder)}
    ended()
    return {**told, "sharded": sharded(folder), "trainers": trainers()}


# --- what they tell


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[int, list[Any]]:
    """What four ranks, and two, tell; by how many they are."""
    folders = [str(tmp_path_factory.mktemp("stores")) for _ in range(2)]
    two = [{"meshes": each} for each in run_ranks(f"{__name__}:meshes", 2, folders[0])]
    return {4: run_ranks(f"{__name__}:everything", 4, folders[1]), 2: two}


def batches(plan: ip.Plan, rank: int, world_size: int, number: int = 0) -> list[Any]:
    """A rank's batches of an epoch."""
    running = plan.replace(world_size=world_size)
    return [batch.tolist() for batch in running.batches(number, rank=rank)]


@pytest.mark.parametrize("name", TOLD)
def test_a_mesh_tells_the_data_parallel_rank(told: dict[int, list[Any]], name: str) -> None:
    """A mesh, its data-parallel dimension, and a mesh that merely runs tell the same rank.

    Loader and samplers deal to the data-parallel ranks; all peers read the same batches, of steps
    that count each sample once, by which FSDP weights its gradients.
    """
    mesh, full = MESHES[name], PLAN.replace(remainder="drop")
    ranks = mesh.ranks or []
    world_size = 1 + max(ranks)
    plan = PLAN.replace(world_size=world_size)
    sizes = [plan.step_size(0, step=step) for step in plan.steps(0)]
    for rank, answers in zip(ranks, told[mesh.num_ranks], strict=True):
        place, expected = [rank, world_size], batches(PLAN, rank, world_size)
        both = [list(each) for each in zip(expected, sizes, strict=True)]
        assert answers["meshes"][name] == {
            **dict.fromkeys(("found", "mesh", "dimension"), place),
            **dict.fromkeys(("read", "read by mesh"), both),
            "drawn": expected,
            "single": [sum(batches(full, rank, world_size), []), place],
        }


def test_fsdp2_with_tensor_parallelism_trains_as_one_process(told: dict[int, list[Any]]) -> None:
    """Weighted by step_size, two data-parallel ranks of two peers learn what one process does."""
    torch.manual_seed(0)
    weight = torch.nn.Linear(1, 4, bias=False).weight.detach().flatten().double().numpy()
    plan = PLAN.replace(world_size=2)
    for step in plan.steps(0):
        read = sum((plan.batch(0, step=step, rank=rank).tolist() for rank in range(2)), [])
        weight = weight - 1e-4 * sum(read) / len(read)
    for answers in told[4]:
        assert weight == pytest.approx(answers["sharded"], rel=1e-4)


@pytest.mark.parametrize("name", [name for name in MESHES if name not in TOLD])
def test_a_mesh_that_does_not_tell_is_refused(told: dict[int, list[Any]], name: str) -> None:
    """Names that say nothing are an error, with mesh= and without, and no guess."""
    mesh = MESHES[name]
    given = "no names, of shape (2, 2)" if mesh.names is None else "dp=2, ep=2"
    running = "dim_0=2, dim_1=2" if mesh.names is None else "dp=2, ep=2"
    rule = "a mesh must be of dimensions whose names say what they are"
    for answers in told[mesh.num_ranks]:
        answer = answers["meshes"][name]
        assert f"{rule}; got {given}; {CURE}" == answer["mesh"]
        expected = (
            "a mesh must be passed to the loader where its dimensions' names do not say which "
            f"are data-parallel; got {running}; {CURE}"
        )
        assert [expected] * 2 == [answer["found"], answer["read"]]


@pytest.mark.parametrize("name", REFUSED)
def test_refuses(told: dict[int, list[Any]], name: str) -> None:
    """What is no data-parallel dimension is refused, with what to pass."""
    for answers in told[4]:
        assert REFUSED[name] == answers["refused"][name]


def test_a_rank_outside_the_mesh_is_refused(told: dict[int, list[Any]]) -> None:
    """A mesh of some ranks tells nothing to the others."""
    for rank, answers in enumerate(told[4]):
        expected: Any = [rank, 2]
        if rank > 1:
            expected = (
                f"mesh must hold this rank, {rank}; got one of the ranks [0, 1]; make the loader "
                "on the ranks of the mesh only"
            )
        assert expected == answers["refused"]["not in it"]


@pytest.mark.parametrize("name", ["Lightning", "Lightning's validation", "Fabric"])
def test_model_parallel_strategies_need_no_mesh(told: dict[int, list[Any]], name: str) -> None:
    """Under ModelParallelStrategy the ranks of a data-parallel group read the same, two passes."""
    for rank, answers in enumerate(told[4]):
        expected = [batch for number in range(2) for batch in batches(PLAN, rank // 2, 2, number)]
        assert expected == answers["trainers"][name]
