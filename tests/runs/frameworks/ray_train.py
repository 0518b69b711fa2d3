"""Ray Train's TorchTrainer in its local mode, where torchrun starts the workers."""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path
from typing import Any

import ray.train
import ray.train.torch
import torch
import torch.distributed as dist
from ray.train.torch import TorchTrainer
from torch.utils.data import DataLoader

from indexplan_torch import PlanLoader
from tests.runs.frameworks.loops import line, plan_of, train
from tests.runs.row import Leg, Steps

ENDLESS = False


def ours(leg: Leg) -> Steps:
    """Read a PlanLoader by itself."""

    def worker() -> Steps:
        loader = PlanLoader(torch.arange(leg.samples), plan_of(leg))
        saved = _load(leg)
        if saved:
            loader.load_state_dict(saved["loader"])
        return _train(leg, saved, loader, lambda _: {"loader": loader.state_dict()})

    return _fit(worker)


def theirs(leg: Leg) -> Steps:
    """Read by the DistributedSampler that Ray puts in; the steps that were done are skipped."""

    def worker() -> Steps:
        size = leg.global_batch // leg.world_size
        dataset: Any = torch.arange(leg.samples)
        loader = ray.train.torch.prepare_data_loader(DataLoader(dataset, size, shuffle=True))
        if leg.world_size > 1:
            loader.sampler.set_epoch(0)  # as Ray's guide has it
        saved = _load(leg)
        done = saved.get("done", 0)
        rest = islice(loader, done, None)
        return _train(leg, saved, rest, lambda read: {"done": done + len(read)})

    return _fit(worker)


def _load(leg: Leg) -> dict[str, Any]:
    if leg.checkpoint is None:
        return {}
    with ray.train.Checkpoint.from_directory(leg.checkpoint).as_directory() as folder:
        saved: dict[str, Any] = torch.load(Path(folder, "state.pt"))
        return saved


def _train(leg: Leg, saved: dict[str, Any], batches: Any, state: Any) -> Steps:
    model, optimizer = line()
    parallel = ray.train.torch.prepare_model(model)
    if saved:
        model.load_state_dict(saved["model"])
    read = train(batches, parallel, optimizer, leg.steps)
    checkpoint = None
    if leg.save and ray.train.get_context().get_world_rank() == 0:
        leg.save.mkdir()
        torch.save({"model": model.state_dict(), **state(read)}, leg.save / "state.pt")
        checkpoint = ray.train.Checkpoint.from_directory(leg.save)
    ray.train.report({"steps": len(read)}, checkpoint=checkpoint)
    return read


def _fit(worker: Any) -> Steps:
    """Run TorchTrainer, which makes the process group by itself, from what torchrun leaves."""
    store = dist.TCPStore("127.0.0.1", 0, is_master=True) if dist.get_rank() == 0 else None
    ports = [store.port if store else 0]
    dist.broadcast_object_list(ports)
    dist.destroy_process_group()
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(ports[0]))
    os.environ.update(TORCHELASTIC_USE_AGENT_STORE="True", TORCHELASTIC_RUN_ID="none")
    scaling = ray.train.ScalingConfig(num_workers=0)
    result = TorchTrainer(worker, scaling_config=scaling).fit()
    steps: Steps = result.return_value
    return steps
