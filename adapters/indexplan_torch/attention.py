"""The arguments of attention over several samples in one row of tokens."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from indexplan.errors import wrong

MOST = 2**31 - 1  # tokens: attention counts in int32


def varlen(lengths: Any) -> tuple[torch.Tensor, int, torch.Tensor]:
    """Return the arguments of flash-attention's varlen functions for samples in one row of tokens.

    Parameters
    ----------
    lengths : array_like of int or torch.Tensor, shape (samples,)
        How many tokens each sample has, in order. For a bin, pass "seq_lens" of what `join`
        returns. For a whole batch, pass `lengths[plan.batch(...)]`, or, if samples are cut,
        `numpy.diff(plan.units(...).spans)[:, 0]`. Attention doesn't need to know where bins end.

    Returns
    -------
    cu_seqlens : torch.Tensor
        int32, shape (samples + 1,): where each sample starts in the row, and the end.
    max_seqlen : int
        How many tokens the longest sample has.
    position_ids : torch.Tensor
        int64, shape (tokens,): the position of each token in its sample.

    Raises
    ------
    IndexPlanError
        If lengths are not one-dimensional, not integers of at least 0, or empty, or if they don't
        add up to less than 2**31.

    Examples
    --------
    >>> from indexplan_torch import varlen
    >>> cu_seqlens, max_seqlen, position_ids = varlen([3, 2])
    >>> cu_seqlens, max_seqlen, position_ids.tolist()
    (tensor([0, 3, 5], dtype=torch.int32), 3, [0, 1, 2, 0, 1])
    """
    sizes = _integers(lengths)
    right = sizes is not None and sizes.dim() == 1 and len(sizes) > 0
    if sizes is None or not right or sizes.min() < 0 or sizes.max() > MOST or sizes.sum() > MOST:
        raise wrong(
            "lengths",
            "integers from 0 in one dimension, which add up to less than 2**31",
            lengths,
            "pass how many tokens each sample has, such as lengths[batch]",
        )
    ends = sizes.cumsum(0)
    bounds = torch.cat([ends.new_zeros(1), ends]).to(torch.int32)
    return bounds, int(sizes.max()), position_ids(sizes)


def _integers(lengths: Any) -> torch.Tensor | None:
    """Return integers of any type as int64 (too large ones become negative), otherwise None."""
    if isinstance(lengths, torch.Tensor):
        others = lengths.is_floating_point() or lengths.is_complex() or lengths.dtype == torch.bool
        return None if others else lengths.to(torch.int64)
    try:
        kinds = set(map(type, lengths)) if isinstance(lengths, list | tuple) else set()
        if kinds & {bool, np.bool_}:  # NumPy would take them as 0 and 1
            return None
        row = np.asarray(lengths)
    except Exception:  # anything that NumPy or a user's class raises
        return None
    return torch.from_numpy(row.astype(np.int64)) if row.dtype.kind in "iu" else None


def position_ids(sizes: torch.Tensor) -> torch.Tensor:
    """Return the position of each token in its sample; int64, shape (tokens,)."""
    starts = sizes.cumsum(0) - sizes
    positions = torch.arange(int(sizes.sum()), device=sizes.device)
    return positions - starts.repeat_interleave(sizes)
