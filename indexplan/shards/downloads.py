"""What nodes download: which shards they need, and from when to when."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from indexplan import kernels
from indexplan.answers import Answer, table
from indexplan.errors import Cure, counted, integer, invalid
from indexplan.keywords import named
from indexplan.orders.base import Int64
from indexplan.plan.plan import Plan, check_plan, layout_of
from indexplan.seeds import check_epochs
from indexplan.shards.guide import Table, table_of
from indexplan.shards.shard_reads import drawn

if TYPE_CHECKING:
    from indexplan.shards.guide import Sized

MOST = 2**30  # most units to draw: some ten seconds
NOTED = 2**28  # most nodes times shards: 8 bytes each
ROWS = 24  # epochs that the text lists


class Different(NamedTuple):
    """From how many different shards the global batches of an epoch are."""

    least: int
    mean: float
    most: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Traffic(Answer):
    """What the nodes of a run download of its shards, epoch by epoch; `traffic` returns it.

    A shard is *live* on a node from its first use in an epoch to its last. If the node keeps shards
    while they are live, and no longer, it downloads each shard that it needs in an epoch once.

    Parameters
    ----------
    epochs : tuple of int
    num_steps : tuple of int
        Unfinished steps of each epoch.
    num_shards, num_samples : int
        Shards and samples in the dataset.
    num_nodes, ranks_per_node : int
    downloads : numpy.ndarray
        int64, shape (epochs, nodes): samples in all shards that a node downloads.
    live : numpy.ndarray
        int64, shape (epochs, nodes): most shards that are live on a node at a time.
    live_samples : numpy.ndarray
        int64, shape (epochs, nodes): most samples in the shards that are live at a time.
    different : tuple of Different
        For each epoch, from how many shards its global batches are.

    Examples
    --------
    >>> import indexplan as ip
    >>> order = ip.ShardShuffle([64] * 1024, lanes=16, stripe=64)
    >>> plan = ip.Plan(order, world_size=8, batch_size=8, remainder="drop")
    >>> print(ip.traffic(plan, ranks_per_node=2))
    4 nodes of 2 ranks, 1,024 shards, 65,536 samples
    epoch       steps  downloads  busiest node  live shards  different in a step
    0           1,024       1.00         25.0%            8        30 (25 to 32)
    """

    epochs: tuple[int, ...]
    num_steps: tuple[int, ...]
    num_shards: int
    num_samples: int
    num_nodes: int
    ranks_per_node: int
    downloads: Int64
    live: Int64
    live_samples: Int64
    different: tuple[Different, ...]

    @property
    def times(self) -> tuple[float, ...]:
        """Samples that all nodes download in each epoch, divided by those of the dataset."""
        return tuple(sum(row) / self.num_samples for row in self.downloads.tolist())

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON types, with arrays as lists, and `times` too."""
        return {**super().to_dict(), "times": list(self.times)}

    def __str__(self) -> str:
        nodes = f"{counted(self.num_nodes, 'node')} of {counted(self.ranks_per_node, 'rank')}"
        data = f"{counted(self.num_shards, 'shard')}, {counted(self.num_samples, 'sample')}"
        head = f"{nodes}, {data}"
        words = "epoch", "steps", "downloads", "busiest node", "live shards", "different in a step"
        rows: list[tuple[str, ...]] = [words]
        for i, epoch in enumerate(self.epochs[:ROWS]):
            busiest = int(self.downloads[i].max()) / self.num_samples
            least, mean, most = self.different[i]
            cells = f"{self.num_steps[i]:,}", f"{self.times[i]:.2f}", f"{busiest:.1%}"
            mixed = f"{mean:,.0f} ({least:,} to {most:,})"
            rows.append((str(epoch), *cells, f"{int(self.live[i].max()):,}", mixed))
        lines = [head, *table(rows, least=(8, 8, 10, 13, 12, 20))]
        if len(self.epochs) > ROWS:
            lines.append(f"... {counted(len(self.epochs) - ROWS, 'more epoch')}")
        return "\n".join(lines)


@named
def traffic(
    plan: Plan,
    shards: Sized = None,
    *,
    ranks_per_node: int = 8,
    epochs: Iterable[int] | None = None,
) -> Traffic:
    """Return what the nodes of a run download of its shards, and how well batches mix them.

    Use it to choose an order for a dataset in shards, and to size disks. It draws every
    sample of the epochs, about 10 million a second, and needs 8 bytes for each node and shard.

    Parameters
    ----------
    plan : Plan
        Its world_size must be set.
    shards : array_like of int, shape (num_shards,), Column, path, or None
        Samples in each shard, or an object with such an attribute `sizes`; None for an order that
        knows them (`ShardShuffle`).
    ranks_per_node : int, default 8
        Ranks that share what they download: by default, ranks 0 to 7 are the first node.
    epochs : iterable of int, optional
        By default the first unfinished one.

    Raises
    ------
    IndexPlanError
        If a number is out of range; if there are no sizes, or they do not add up to the order's
        samples; if the epochs have more than 2**30 units, or nodes times shards exceed 2**28; if
        the plan's world_size is open.

    Examples
    --------
    Every node reads every shard under `BlockShuffle`; lanes keep them apart:

    >>> import indexplan as ip
    >>> blocks = ip.BlockShuffle(65_536, block_size=64, window=4)
    >>> lanes = ip.ShardShuffle([64] * 1024, stripe=256)
    >>> plan = ip.Plan(blocks, world_size=16, batch_size=16, remainder="drop")
    >>> ip.traffic(plan, [64] * 1024, ranks_per_node=4).times
    (4.0,)
    >>> ip.traffic(plan.replace(order=lanes), ranks_per_node=4).times
    (1.0,)
    """
    check_plan("plan", plan)
    world_size = layout_of(plan).world_size
    cure = "leave it out for 8"
    ranks_per_node = integer("ranks_per_node", ranks_per_node, 1, 2**31, cure)
    asked = [plan.start.epoch] if epochs is None else check_epochs(epochs)
    if not asked:
        raise invalid(
            "epochs", "at least one epoch", epochs, "leave it out for the first unfinished one"
        )
    table = table_of(plan.order, shards)
    num_nodes = -(-world_size // ranks_per_node)
    if num_nodes * table.num_shards > NOTED:
        rule, got = f"at most {NOTED}", num_nodes * table.num_shards
        cure = Cure("ask ip.reads for some ranks at a time", "raise --ranks-per-node")
        raise invalid("shards times nodes", rule, got, cure)
    if (total := sum(plan.order.num_units(epoch) for epoch in asked)) > MOST:
        cure = Cure("ask for fewer epochs, or ip.reads for some steps", "ask for fewer epochs")
        raise invalid("units of the epochs", f"at most {MOST}, to be drawn", total, cure)
    ranks_per_node = min(ranks_per_node, world_size)
    steps, different, nodes = zip(
        *(_epoch(plan, table, epoch, ranks_per_node) for epoch in asked), strict=True
    )
    downloads, live, live_samples = np.array(nodes, np.int64).transpose(2, 0, 1).copy()
    return Traffic(
        epochs=tuple(asked),
        num_steps=steps,
        num_shards=table.num_shards,
        num_samples=table.num_samples,
        num_nodes=num_nodes,
        ranks_per_node=ranks_per_node,
        downloads=downloads,
        live=live,
        live_samples=live_samples,
        different=different,
    )


def _epoch(
    plan: Plan, table: Table, epoch: int, ranks: int
) -> tuple[int, Different, list[tuple[int, int, int]]]:
    """Return an epoch's number of steps, what its batches mix, and what `_node` says of nodes."""
    layout = layout_of(plan)
    edges = [*range(0, layout.world_size, ranks), layout.world_size]
    num_nodes = len(edges) - 1
    start = plan.start.sub_epoch if epoch == plan.start.epoch else 0
    parts = [layout.steps(epoch, part) for part in range(start, plan.sub_epochs)]
    num_steps = sum(steps.num_steps - steps.first_step for steps in parts)
    noted = [np.zeros(num_nodes * table.num_shards, np.int32) for _ in range(2)]
    stamps, mixed = np.zeros(table.num_shards, np.int32), np.zeros(num_steps, np.int64)
    done = 0
    for steps in parts:
        for step, indices, ends in drawn(plan, steps, edges, steps.first_step, steps.num_steps):
            number = done + step - steps.first_step
            kernels.shard_reads.note_nodes(
                *table, indices, ends, number, num_nodes, *noted, stamps, mixed
            )
        done += steps.num_steps - steps.first_step
    firsts, lasts = (each.reshape(num_nodes, -1) for each in noted)
    sizes = np.diff(table.firsts)
    found = [_node(*pair, sizes, num_steps) for pair in zip(firsts, lasts, strict=True)]
    mix = (mixed.min(), mixed.mean(), mixed.max()) if num_steps else (0, 0.0, 0)
    return num_steps, Different(int(mix[0]), float(mix[1]), int(mix[2])), found


def _node(
    first_steps: NDArray[np.int32], last_steps: NDArray[np.int32], sizes: Int64, num_steps: int
) -> tuple[int, int, int]:
    """Return a node's downloads, its most live shards, and most live samples.

    Steps count from 1; 0 stands for shards that the node does not read.
    """
    shards = np.flatnonzero(first_steps)
    first, last, each = first_steps[shards], last_steps[shards], sizes[shards]
    live, live_samples = np.zeros((2, num_steps + 1), np.int64)
    for of_steps, numbers in ((live, np.ones_like(each)), (live_samples, each)):
        np.add.at(of_steps, first - 1, numbers)
        np.subtract.at(of_steps, last, numbers)
        np.cumsum(of_steps, out=of_steps)
    return int(each.sum()), int(live.max()), int(live_samples.max())
