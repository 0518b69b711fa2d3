"""Device meshes of 2 and 4 real ranks: data-parallel ranks read their own, all peers the same."""

from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

import indexplan as ip
from tests.trainers.ranks import run_ranks

RUNS = "tests.trainers.mesh_runs"
PLAN = ip.Plan(ip.Shuffle(103, seed=8), batch_size=6)


class Mesh(NamedTuple):
    """A mesh, and which data each of its ranks reads: [rank, ...] and how many ranks of data."""

    shape: tuple[int, ...]
    names: tuple[str, ...] | None
    ranks: list[int] | None  # None: the names do not tell
    world_size: int = 0

    @property
    def num_ranks(self) -> int:
        """How many processes it takes."""
        return int(np.prod(self.shape))


MESHES = {
    "fsdp 4": Mesh((4,), ("dp_shard",), [0, 1, 2, 3], 4),
    "hsdp": Mesh((2, 2), ("dp_replicate", "dp_shard"), [0, 1, 2, 3], 4),
    "dp x tp": Mesh((2, 2), ("dp", "tp"), [0, 0, 1, 1], 2),
    "Lightning's": Mesh((2, 2), ("data_parallel", "tensor_parallel"), [0, 0, 1, 1], 2),
    "Lightning's without tp": Mesh((4, 1), ("data_parallel", "tensor_parallel"), [0, 1, 2, 3], 4),
    "Lightning's without dp": Mesh((1, 4), ("data_parallel", "tensor_parallel"), [0, 0, 0, 0], 1),
    "pp x dp": Mesh((2, 2), ("pp", "dp"), [0, 1, 0, 1], 2),
    "fsdp x cp": Mesh((2, 2), ("dp_shard", "cp"), [0, 0, 1, 1], 2),
    "pp x dp x tp": Mesh((2, 1, 2), ("pp", "dp", "tp"), [0, 0, 0, 0], 1),
    "pp x dp x cp x tp": Mesh((1, 2, 2, 1), ("pp", "dp", "cp", "tp"), [0, 0, 1, 1], 2),
    "hsdp x tp": Mesh((2, 1, 2), ("dp_replicate", "dp_shard", "tp"), [0, 0, 1, 1], 2),
    "hsdp x cp": Mesh((1, 2, 2), ("dp_replicate", "dp_shard", "cp"), [0, 0, 1, 1], 2),
    "no names": Mesh((2, 2), None, None),
    "unknown names": Mesh((2, 2), ("dp", "ep"), None),
    "fsdp 2": Mesh((2,), ("fsdp",), [0, 1], 2),
    "tp alone": Mesh((1, 2), ("dp", "tp"), [0, 0], 1),
    "dp alone": Mesh((2, 1), ("dp", "tp"), [0, 1], 2),
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
    "rank too": "mesh must be passed alone, as it tells the rank; got rank=0 too; leave rank and "
    "world_size out",
    "a name": "mesh must be a torch DeviceMesh, or a dimension of one; got 'dp'; pass what "
    "init_device_mesh(...) returns, or its mesh['dp']",
}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[int, list[Any]]:
    """What four ranks, and two, tell; by how many they are."""
    folders = [str(tmp_path_factory.mktemp("stores")) for _ in range(2)]
    two = [{"meshes": each} for each in run_ranks(f"{RUNS}:meshes", 2, folders[0])]
    return {4: run_ranks(f"{RUNS}:everything", 4, folders[1]), 2: two}


def batches(plan: ip.Plan, rank: int, world_size: int, number: int = 0) -> list[Any]:
    """A rank's batches of an epoch."""
    running = plan.replace(world_size=world_size)
    return [batch.tolist() for batch in running.batches(number, rank=rank)]


@pytest.mark.parametrize("name", TOLD)
def test_a_mesh_tells_the_data_parallel_rank(told: dict[int, list[Any]], name: str) -> None:
    """A mesh, its data-parallel dimension, and a mesh that merely runs tell the same rank."""
    mesh = MESHES[name]
    for rank, answers in zip(mesh.ranks or (), told[mesh.num_ranks], strict=True):
        answer = answers["meshes"][name]
        expected = [rank, mesh.world_size]
        assert [expected] * 3 == [answer[key] for key in ("mesh", "dimension", "found")]


@pytest.mark.parametrize("name", TOLD)
def test_every_class_reads_by_the_mesh(told: dict[int, list[Any]], name: str) -> None:
    """Loader and samplers deal to the data-parallel ranks; all peers read the same batches."""
    mesh = MESHES[name]
    full = PLAN.replace(remainder="drop")
    for rank, answers in zip(mesh.ranks or (), told[mesh.num_ranks], strict=True):
        answer = answers["meshes"][name]
        expected = batches(PLAN, rank, mesh.world_size)
        assert [expected] * 3 == [answer["read"], *answer["read by mesh"]]
        singles = sum(batches(full, rank, mesh.world_size), [])
        assert [singles, [rank, mesh.world_size]] == answer["single"]


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


def test_fsdp2_with_tensor_parallelism_trains_as_one_process(told: dict[int, list[Any]]) -> None:
    """Weighted by step_size, two data-parallel ranks of two peers learn what one process does."""
    torch.manual_seed(0)
    weight = torch.nn.Linear(1, 4, bias=False).weight.detach().flatten().double().numpy()
    running = PLAN.replace(world_size=2)
    for step in range(running.steps(0).stop):
        read = np.concatenate([running.batch(0, step=step, rank=rank) for rank in range(2)])
        weight = weight - 1e-4 * read.mean()
    for rank, answers in enumerate(told[4]):
        assert batches(PLAN, rank // 2, 2) == answers["sharded"]["batches"]
        assert weight == pytest.approx(answers["sharded"]["weight"], rel=1e-4)


@pytest.mark.parametrize("name", ["Lightning", "Lightning's validation", "Fabric"])
def test_model_parallel_strategies_need_no_mesh(told: dict[int, list[Any]], name: str) -> None:
    """Under ModelParallelStrategy the ranks of a data-parallel group read the same, two passes."""
    for rank, answers in enumerate(told[4]):
        expected = [batch for number in range(2) for batch in batches(PLAN, rank // 2, 2, number)]
        assert expected == answers["trainers"][name]
