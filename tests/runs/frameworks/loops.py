"""What loops of the user's own have in common: samples that are numbers, a step, a checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
import torch.distributed as dist

import indexplan as ip
from tests.runs.row import Leg, Steps


def plan_of(leg: Leg) -> ip.Plan:
    """Return the plan that trainers read."""
    return ip.Plan(ip.Shuffle(leg.samples, seed=1), global_batch_size=leg.global_batch)


def train(
    batches: Iterable[Any],
    model: Any,
    optimizer: Any,
    steps: int | None,
    backward: Callable[[Any], None] = torch.Tensor.backward,
) -> Steps:
    """Take as many steps, or all; return the samples of each. The next batch is not asked for."""
    read: Steps = []
    iterator = iter(batches)
    while steps is None or len(read) < steps:
        batch = next(iterator, None)
        if batch is None:
            break
        backward(model(batch[:, None].float()).mean())
        optimizer.step()
        optimizer.zero_grad()
        read.append(batch.tolist())
    return read


def line() -> tuple[torch.nn.Module, torch.optim.Optimizer]:
    """Return the smallest model there is, and its optimizer."""
    torch.manual_seed(0)
    model = torch.nn.Linear(1, 1)
    return model, torch.optim.SGD(model.parameters(), lr=1e-6)


def load(leg: Leg) -> dict[str, Any]:
    """Return the last leg's checkpoint; nothing at the start."""
    return torch.load(leg.checkpoint) if leg.checkpoint else {}


def save(leg: Leg, **parts: Any) -> None:
    """Write a checkpoint from the first rank."""
    if leg.save and dist.get_rank() == 0:
        torch.save(parts, leg.save)
