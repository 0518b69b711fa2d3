"""How much memory a spawned worker needs for an order over a column in a file."""

from __future__ import annotations

import multiprocessing
from dataclasses import dataclass
from multiprocessing.connection import Connection

import numpy as np
from numpy.typing import NDArray

import indexplan as ip
from benchmarks.measure.memory import measured
from indexplan.orders import Traits

BATCH = 256


@ip.register
@dataclass(frozen=True, eq=False)
class Rounded(ip.Order):
    """Reads the samples that the whole parts of a column's numbers name."""

    numbers: ip.Column
    num_samples: int

    algorithm = "benchmarks-rounded-v1"
    traits = Traits(reads="any")

    def num_units(self, epoch: int) -> int:  # noqa: ARG002 (the order's protocol)
        """Return how many numbers there are."""
        return len(self.numbers)

    def fill(  # noqa: D102
        self,
        epoch: int,  # noqa: ARG002 (the order's protocol)
        starts: NDArray[np.int64],
        stops: NDArray[np.int64],
        out: NDArray[np.int64],
    ) -> None:
        runs = zip(starts.tolist(), stops.tolist(), strict=True)
        out[:] = np.concatenate([self.numbers.array[start:stop] for start, stop in runs])


def work(pipe: Connection) -> None:
    """Receive an order and draw a batch from its middle, in a worker that knows the classes."""
    small: ip.Order = pipe.recv()
    small.take(0, 0, 1)

    def receive() -> list[int]:
        order: ip.Order = pipe.recv()
        middle = order.num_units(0) // 2
        return order.take(0, middle, middle + BATCH).tolist()  # type: ignore[no-any-return]

    batch, result = measured(receive)
    pipe.send((batch, max(result["peak_bytes"], result["held_bytes"])))


def growth(order: ip.Order) -> tuple[list[int], int]:
    """Return the worker's batch, and the most bytes that it grew by, pages of files included."""
    context = multiprocessing.get_context("spawn")
    ours, its = context.Pipe()
    worker = context.Process(target=work, args=(its,))
    worker.start()
    its.close()
    with ours:
        ours.send(Rounded(ip.Column([0.0, 1.0]), 5))
        ours.send(order)
        batch, grown = ours.recv()
    worker.join()
    return batch, grown
