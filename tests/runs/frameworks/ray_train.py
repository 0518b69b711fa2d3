"""Ray Train's TorchTrainer in its local mode, where torchrun starts the workers.

Beside row.py it needs `pip install torch "ray[train]==2.60.0"`.
"""

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

from tests.runs.row import Leg, Steps, line, plan_of, train

ENDLESS = False


def ours(leg: Leg) -> Steps:
    """Read a PlanLoader by itself."""

    def worker() -> Steps:
        from indexplan_torch import PlanLoader

        loader = PlanLoader(torch.arange(leg.samples), plan_of(leg))
        parts, saved = _loaded(leg)
        if saved:
            loader.load_state_dict(saved["loader"])
        for epoch in leg.epochs:
            read = train(loader, *parts, leg.limit(epoch))
        return _reported(leg, read, parts[0], {"loader": loader.state_dict()})

    return _fit(worker)


def theirs(leg: Leg) -> Steps:
    """Read by the DistributedSampler that Ray puts in; the steps that were done are skipped."""

    def worker() -> Steps:
        size = leg.global_batch // leg.world_size
        dataset: Any = torch.arange(leg.samples)
        loader = ray.train.torch.prepare_data_loader(DataLoader(dataset, size, shuffle=True))
        parts, saved = _loaded(leg)
        done = saved.get("done", 0)
        for epoch in leg.epochs:
            if leg.world_size > 1:
                loader.sampler.set_epoch(epoch)  # as Ray's guide has it
            read = train(islice(loader, done, None), *parts, leg.limit(epoch))
        return _reported(leg, read, parts[0], {"done": done + len(read)})

    return _fit(worker)


def _loaded(leg: Leg) -> tuple[tuple[Any, Any], dict[str, Any]]:
    """Return the model in DDP, with its optimizer, and what was saved."""
    model, optimizer = line()
    saved: dict[str, Any] = {}
    if leg.checkpoint:
        with ray.train.Checkpoint.from_directory(leg.checkpoint).as_directory() as folder:
            saved = torch.load(Path(folder, "state.pt"))
        model.load_state_dict(saved["model"])
    return (ray.train.torch.prepare_model(model), optimizer), saved


def _reported(leg: Leg, read: Steps, parallel: Any, state: dict[str, Any]) -> Steps:
    """Report to Ray, with a checkpoint from the first rank."""
    checkpoint = None
    if leg.save and ray.train.get_context().get_world_rank() == 0:
        leg.save.mkdir()
        model = getattr(parallel, "module", parallel).state_dict()
        torch.save({"model": model, **state}, leg.save / "state.pt")
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
