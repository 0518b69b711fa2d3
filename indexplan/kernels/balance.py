"""Divides the units of a step among cells of nearly equal cost: longest processing time first."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from indexplan.kernels.compiling import READ_INT64, WRITE_INT64, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int64s: TypeAlias = NDArray[np.int64]

FULL = 2**63 - 1  # the load of a cell without room; no sum of costs is so large


@kernel(READ_INT64, READ_INT64, WRITE_INT64, WRITE_INT64)
def fill_cells(keys: Int64s, sizes: Int64s, loads: Int64s, cells: Int64s) -> None:
    """Put each unit, from the costliest on, into the cell with room that has the least cost so far.

    Parameters
    ----------
    keys : int64 (num,)
        For each unit cost * num + num - 1 - unit, rising; the last one is put first.
    sizes : int64 (num_cells,)
        How many units each cell has room for, at least 1; they sum to num.
    loads : int64 (num_cells,)
        Gets the sum of each cell's costs.
    cells : int64 (num,)
        Gets the cell of each unit.
    """
    num, leaves = len(keys), 1
    while leaves < len(sizes):
        leaves *= 2
    # A tournament: node i has the least of nodes 2 * i and 2 * i + 1, and where that comes from. A
    # heap, whose branches cannot be predicted, takes three times as long.
    least, winner = np.empty(2 * leaves, np.int64), np.empty(2 * leaves, np.int64)
    room = np.empty(leaves, np.int64)
    for cell in range(leaves):
        least[leaves + cell], winner[leaves + cell] = FULL, cell
        if cell < len(sizes):
            least[leaves + cell] = loads[cell] = 0
            room[cell] = sizes[cell]
    for node in range(leaves - 1, 0, -1):
        least[node], winner[node] = least[2 * node], winner[2 * node]
    for at in range(num - 1, -1, -1):
        cost, cell = keys[at] // num, winner[1]
        cells[num - 1 - (keys[at] - cost * num)] = cell
        loads[cell] += cost
        room[cell] -= 1
        node = leaves + cell
        least[node] = loads[cell] if room[cell] else FULL
        while node > 1:
            node >>= 1
            one, other = least[2 * node], least[2 * node + 1]
            first, second = winner[2 * node], winner[2 * node + 1]
            least[node] = min(one, other)
            winner[node] = first if one <= other else second
