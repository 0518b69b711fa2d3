"""What the page on coming from JAX says of its losses and its devices."""

from __future__ import annotations

from typing import Any

import numpy as np

import indexplan as ip


def check(page: dict[str, Any]) -> None:
    """Hold the page to what it says."""
    one_shape(page)
    on_the_device(page)


def one_shape(page: dict[str, Any]) -> None:
    """It is compiled once, and the losses are those of the images alone."""
    plan, order, mean_loss, weights = (page[x] for x in ("plan", "order", "mean_loss", "weights"))
    images, labels, losses = page["images"], page["labels"], page["losses"]
    assert 1 == mean_loss._cache_size()
    assert 5 == plan.step_size(epoch=0, step=28)
    rows = order.take(0, 28 * 64, 1797)  # the last five images alone
    alone = mean_loss(weights, images[rows], labels[rows], np.ones(5), np.float32(5))
    assert abs(losses[28] - float(alone)) < 1e-5
    sizes = [plan.step_size(epoch=0, step=step) for step in range(29)]
    everything = mean_loss(weights, images, labels, np.ones(1797), np.float32(1797))
    assert abs(np.dot(losses, sizes) / 1797 - float(everything)) < 1e-5
    nested = ip.Plan(order, world_size=4, batch_size=(5, 3), remainder="pad")
    micro_batches = nested.units(epoch=0, step=29, rank=2).micro_batches
    assert [3] * 5 == [len(part) for part in micro_batches]


def on_the_device(page: dict[str, Any]) -> None:
    """Each device's rows are those of its rank."""
    full = page["full"]
    expected = [full.batch(epoch=3, step=17, rank=rank) for rank in range(4)]
    assert np.concatenate(expected).tolist() == page["rows_of_devices"](17).tolist()
