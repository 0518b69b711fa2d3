"""Which ranks of a device mesh read different samples, and which are peers that read the same.

Data is split along a mesh's data-parallel dimensions. Peers along the other dimensions (tensor,
context, pipeline) work on the same batch, so a plan counts them as one rank.
"""

from __future__ import annotations

import math
from typing import Any

import torch.distributed

from indexplan import IndexPlanError
from indexplan.errors import invalid
from indexplan_torch.versions import private

# words that dimensions' names consist of: dp_replicate, data_parallel, tensor_parallel
_DATA = {"dp", "ddp", "data", "fsdp", "hsdp", "replicate", "shard"}
_PEERS = {"tp", "tensor", "cp", "context", "sp", "sequence", "pp", "pipeline", "mp", "model"}
_WHOLE = {"dp", "data", "parallel"}  # a name of only these: all data-parallel ranks, not a part

_CURE = (
    "pass mesh=, the data-parallel dimension such as mesh['dp'], or rank= and world_size= of the "
    "ranks that read different samples"
)


def ranks_in(mesh: Any) -> tuple[int, int]:
    """Return (rank, world_size) among the ranks of a mesh that read different samples.

    If a mesh has one dimension, that is data-parallel. If it has several, their names decide: dp,
    data_parallel, or dp_replicate and dp_shard, where dp_replicate varies slowest.

    Raises
    ------
    IndexPlanError
        If it is not a mesh, this rank is not in it, or the names don't show which dimensions are
        data-parallel.
    """
    from torch.distributed.device_mesh import DeviceMesh  # which some builds of torch lack

    if not isinstance(mesh, DeviceMesh):
        raise invalid(
            "mesh",
            "a torch DeviceMesh, or a dimension of one",
            mesh,
            "pass what init_device_mesh(...) returns, or its mesh['dp']",
        )
    names, sizes, place = mesh.mesh_dim_names, tuple(mesh.shape), mesh.get_coordinate()
    if place is None:
        raise IndexPlanError(
            "mesh",
            f"must hold this rank, {torch.distributed.get_rank()}",
            f"one of the ranks {mesh.mesh.flatten().tolist()}",
            "make the loader on the ranks of the mesh only",
        )
    kinds = [_kind(name) for name in names or [""] * mesh.ndim]
    if mesh.ndim == 1:
        if kinds[0] in {"peers", "mixed"}:
            raise _unclear("of the data-parallel dimension", names, sizes)
        return int(place[0]), sizes[0]
    unclear = {"mixed", "unknown"}
    if any(kind in unclear and size > 1 for kind, size in zip(kinds, sizes, strict=True)):
        raise _unclear("of dimensions whose names say what they are", names, sizes)
    data = [dim for dim, kind in enumerate(kinds) if kind == "data"]
    return _flat([(int(place[dim]), sizes[dim]) for dim in data])


def ranks_of_meshes_that_run() -> tuple[int, int] | None:
    """Return (rank, world_size) among the ranks that read different samples, by torch's meshes.

    Each dimension of a named mesh has a process group of the same name, unless it spans all ranks.
    This finds the meshes of Lightning, Fabric, Accelerate and users. A mesh whose only dimension
    spans all ranks leaves no trace, so it has to be passed.

    Returns
    -------
    (int, int) or None
        None if there is no mesh whose ranks share samples, so each rank reads its own.

    Raises
    ------
    IndexPlanError
        If the names don't show which dimensions are data-parallel.
    """
    dims = _dimensions()
    if not dims:
        return None
    world = torch.distributed.get_world_size()
    by_kind: dict[str, dict[str, tuple[int, int]]] = {"data": {}, "peers": {}, "unknown": {}}
    for name, place in dims.items():
        by_kind.setdefault(_kind(name), {})[name] = place
    data, peers = by_kind["data"], by_kind["peers"]
    num_peers = math.prod(size for _, size in peers.values())
    whole = {place for name, place in data.items() if set(name.split("_")) <= _WHOLE}
    parts = [data[name] for name in sorted(data)]  # dp_replicate before dp_shard, as in meshes
    found = next(iter(whole)) if whole else _flat(parts)
    if len(whole) < 2 and found[1] * num_peers == world:
        return found
    if whole == {(0, 1)} and num_peers == 1:
        return 0, 1  # the dimension that spans all ranks has no named group: they are peers
    lone = all(size == 1 for _, size in [*peers.values(), *by_kind["unknown"].values()])
    if lone and not data:
        return None
    sizes = {name: size for name, (_, size) in sorted(dims.items())}
    raise _unclear(
        "passed to the loader where its dimensions' names do not say which are data-parallel",
        list(sizes),
        [*sizes.values()],
    )


def _dimensions() -> dict[str, tuple[int, int]]:
    """Return this rank's place in each dimension of the running meshes, and that one's size."""
    groups = private("torch", torch.distributed.distributed_c10d, "_world", "pg_map")
    dims: dict[str, tuple[int, int]] = {}
    for group in groups:
        if not hasattr(group, "group_desc"):  # torch 2.2 and 2.3
            if len(groups) == 1:
                return {}  # only the default group: no group belongs to a mesh
            cure = "pass mesh=, or pip install 'torch>=2.4'"
            raise IndexPlanError(
                "process groups beside the default one",
                "must say whether they are a mesh's",
                f"torch {torch.__version__}, where they do not",
                cure,
            )
        kind, _, name = str(group.group_desc).partition("_")
        if kind != "mesh" or name == "default":
            continue
        place = group.rank(), group.size()
        while dims.get(name, place) != place:
            name += "'"  # another mesh's; now a word that _kind doesn't know
        dims[name] = place
    return dims


def _kind(name: str) -> str:
    """Return a dimension's kind, by its name: data, peers, mixed or unknown."""
    words = set(name.split("_"))
    if words & _DATA:
        return "mixed" if words & _PEERS else "data"
    return "peers" if words & _PEERS else "unknown"


def _flat(places: list[tuple[int, int]]) -> tuple[int, int]:
    """Flatten the places in several dimensions into one; the last dimension varies fastest."""
    rank, ranks = 0, 1
    for place, size in places:
        rank, ranks = rank * size + place, ranks * size
    return rank, ranks


def _unclear(rule: str, names: Any, sizes: Any) -> IndexPlanError:
    got = (
        ", ".join(f"{name}={size}" for name, size in zip(names, sizes, strict=True))
        if names
        else (f"no names, of shape {tuple(sizes)}")
    )
    return IndexPlanError("a mesh", f"must be {rule}", got, _CURE)
