"""Long samples cut into pieces, which an order then reads as samples."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from indexplan.errors import integer, wrong
from indexplan.keywords import named
from indexplan.orders.base import Int64
from indexplan.orders.columns import Numbers
from indexplan.orders.strata import MOST_SAMPLES, exact_sum, lengths_of


@dataclass(frozen=True, eq=False)
class Pieces:
    """The pieces that `pieces` cuts: piece i is tokens [starts[i], stops[i]) of sample samples[i].

    Attributes
    ----------
    samples, starts, stops, lengths : numpy.ndarray
        int64, shape (num_pieces,), read-only; sorted by sample, then by start. The lengths are
        stops - starts.

    Examples
    --------
    >>> import indexplan as ip
    >>> table = ip.pieces([5, 2], max_length=3)
    >>> table.samples, table.starts, table.stops
    (array([0, 0, 1]), array([0, 3, 0]), array([3, 5, 2]))
    """

    samples: Int64
    starts: Int64
    stops: Int64
    lengths: Int64

    def __len__(self) -> int:
        return len(self.samples)


@named
def pieces(lengths: Numbers, max_length: int) -> Pieces:
    """Cut samples that are too long into pieces of `max_length`; the last one may be shorter.

    Pass the result to an order: `Packed(pieces(lengths, n).lengths, n)` reads pieces as its
    samples. The dataset needs an item for each piece. The pieces are the same in all epochs.

    Parameters
    ----------
    lengths : Column, array_like of int or path
        The length of each sample, 1 <= length <= 2**40.
    max_length : int
        Most tokens in a piece, 1 <= max_length < 2**63.

    Returns
    -------
    Pieces
        At most 2**32 of them; a sample of up to max_length tokens is a single piece.

    Raises
    ------
    IndexPlanError
        If max_length or a length is out of range, or there are more than 2**32 pieces.

    Examples
    --------
    >>> table = pieces([5, 2, 4], max_length=2)
    >>> table.samples, table.starts
    (array([0, 0, 0, 1, 2, 2]), array([0, 2, 4, 0, 0, 2]))
    >>> table.lengths
    array([2, 2, 1, 2, 2, 2])
    """
    most = integer("max_length", max_length, 1, 2**63, "pass how many tokens a piece may have")
    whole = lengths_of(lengths).array.astype(np.int64)
    counts = (whole - 1) // most + 1
    num = exact_sum(counts)
    if num > MOST_SAMPLES:
        raise wrong("the number of pieces", f"at most {MOST_SAMPLES}", num, "raise max_length")
    samples = np.repeat(np.arange(len(whole)), counts)
    first = np.cumsum(counts) - counts  # the first piece of each sample
    starts = (np.arange(num) - first[samples]) * most
    stops = np.minimum(starts + most, whole[samples])
    table = samples, starts, stops, stops - starts
    for row in table:
        row.setflags(write=False)
    return Pieces(*table)
