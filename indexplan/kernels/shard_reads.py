"""In which shards samples are, and who reads these when, as numba kernels.

Shards are consecutive: shard s holds the samples [firsts[s], firsts[s + 1]). A guide tells for
every 2**shift samples in which shards they may be, so that a look-up takes a step or two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from indexplan.kernels.compiling import (
    INT64,
    READ_INT64,
    WRITE_INT32,
    WRITE_INT64,
    helper,
    kernel,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int32s: TypeAlias = NDArray[np.int32]
    Int64s: TypeAlias = NDArray[np.int64]


@helper
def _shard_of(index: int, firsts: Int64s, guide: Int64s, shift: int) -> int:
    """Return the shard that holds a sample: the last one that starts at it or before."""
    at = min(max(index >> shift, 0), len(guide) - 2)  # samples that a wrong order reads stay inside
    low: int = guide[at]
    high: int = guide[at + 1]
    while low < high:
        middle = (low + high + 1) >> 1
        if firsts[middle] <= index:
            low = middle
        else:
            high = middle - 1
    return low


@kernel(READ_INT64, INT64, WRITE_INT64)
def lay_guide(firsts: Int64s, shift: int, guide: Int64s) -> None:
    """Write the shard of each sample b << shift, for b = 0, 1, 2, ...; past the end, the last one.

    Parameters
    ----------
    firsts : int64 (num_shards + 1,)
        The first sample of each shard, and the number of samples.
    shift : int
    guide : int64 ((num_samples - 1 >> shift) + 2,)
    """
    shard, last = 0, len(firsts) - 2
    for b in range(len(guide) - 1):
        while shard < last and firsts[shard + 1] <= b << shift:
            shard += 1
        guide[b] = shard
    guide[len(guide) - 1] = last


@kernel(
    *(READ_INT64, READ_INT64, INT64, READ_INT64, READ_INT64, INT64, INT64),
    *(WRITE_INT64, WRITE_INT64, WRITE_INT64, WRITE_INT64, WRITE_INT64),
)
def note_reads(
    firsts: Int64s,
    guide: Int64s,
    shift: int,
    indices: Int64s,
    ends: Int64s,
    step: int,
    met: int,
    slots: Int64s,
    shards: Int64s,
    first_steps: Int64s,
    last_steps: Int64s,
    counts: Int64s,
) -> int:
    """Note what steps read of each shard; return how many shards were met.

    Parameters
    ----------
    firsts, guide, shift
        As for `lay_guide`.
    indices : int64 (samples,)
        The samples that are read, step by step.
    ends : int64 (num_steps,)
        Where among them each step ends.
    step : int
        The number of the first of these steps.
    met : int
        Shards that earlier steps have met.
    slots : int64 (num_shards,)
        1 more than where a shard is noted; 0 if it is not met yet.
    shards, first_steps, last_steps, counts : int64 (room,)
        Get the shards in order of their first use, their first and last steps, and how many of
        their samples are read. An order that reads samples past the end reaches the last shard.
    """
    done = 0
    for end in ends:
        for i in range(done, end):
            shard = _shard_of(indices[i], firsts, guide, shift)
            slot = slots[shard] - 1
            if slot < 0:
                slot = met
                met += 1
                slots[shard] = met
                shards[slot], first_steps[slot], counts[slot] = shard, step, 0
            last_steps[slot] = step
            counts[slot] += 1
        done = end
        step += 1
    return met


@kernel(
    *(READ_INT64, READ_INT64, INT64, READ_INT64, READ_INT64, INT64, INT64),
    *(WRITE_INT32, WRITE_INT32, WRITE_INT32, WRITE_INT64),
)
def note_nodes(
    firsts: Int64s,
    guide: Int64s,
    shift: int,
    indices: Int64s,
    ends: Int64s,
    step: int,
    num_nodes: int,
    first_steps: Int32s,
    last_steps: Int32s,
    stamps: Int32s,
    mixed: Int64s,
) -> None:
    """Note when each node first and last reads each shard, and how many shards each step reads.

    Parameters
    ----------
    firsts, guide, shift
        As for `lay_guide`.
    indices : int64 (samples,)
        The samples that are read: in each step, those of one node after another.
    ends : int64 (num_steps * num_nodes,)
        Where among them each node of each step ends.
    step : int
        The number of the first of these steps.
    num_nodes : int
    first_steps, last_steps : int32 (num_nodes * num_shards,)
        1 more than the first and the last step; 0 if there is none yet.
    stamps : int32 (num_shards,)
        1 more than the last step that read a shard; 0 if there is none yet.
    mixed : int64 (steps in all,)
        Gets how many different shards each step reads.
    """
    num_shards, done = len(firsts) - 1, 0
    for part in range(len(ends)):
        of_step, node = step + part // num_nodes, part % num_nodes
        number = np.int32(of_step + 1)
        for i in range(done, ends[part]):
            shard = _shard_of(indices[i], firsts, guide, shift)
            at = node * num_shards + shard
            if first_steps[at] == 0:
                first_steps[at] = number
            last_steps[at] = number
            if stamps[shard] != number:
                stamps[shard] = number
                mixed[of_step] += 1
        done = ends[part]
