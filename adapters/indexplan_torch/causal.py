"""Rows of packed samples for causal language models of Hugging Face."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from indexplan import IndexPlanError
from indexplan.errors import counted, shown
from indexplan_torch.bins import POSITIONS, SEQ_LENS, TOKENS, join, position_ids

LABELS, MASK = "labels", "attention_mask"
UNTRAINED = -100  # a label that losses leave out


def join_causal(samples: Sequence[Any]) -> dict[str, Any]:
    """Join samples into one row for a causal language model, in which none attends to another.

    Use it as `collate_fn` under Hugging Face Trainer and TRL, with `Bins` or without. It is to
    `join` what transformers' `DataCollatorWithFlattening` is to its padding collators.

    Parameters
    ----------
    samples : sequence of mapping, tensor, array or list
        As for `join`: samples, or bins that `Bins` has joined. Each has "input_ids", or is a row of
        tokens; and may have "labels", of the same length. Other fields are left out.

    Returns
    -------
    dict
        What models take: "input_ids", int64, "labels" and "position_ids", each of shape (1,
        tokens); flash-attention's "cu_seq_lens_q" and "cu_seq_lens_k", int32, shape (samples + 1,),
        "max_length_q" and "max_length_k", ints; and "use_cache", False. Labels are those of the
        samples, or their tokens, but -100 at the first token of each sample, which the sample
        before would predict. Positions count from 0 in each sample: without flash-attention they
        are what keeps samples apart, as long as there is no cache and no attention mask.

    Raises
    ------
    IndexPlanError
        As `join` does; if samples have no "input_ids", or an "attention_mask" of padding.

    Examples
    --------
    >>> from indexplan_torch.causal import join_causal
    >>> row = join_causal([[5, 6, 7], [8, 9]])
    >>> row["labels"], row["position_ids"]
    (tensor([[-100,    6,    7, -100,    9]]), tensor([[0, 1, 2, 0, 1]]))
    >>> row["cu_seq_lens_q"], row["max_length_q"]
    (tensor([0, 3, 5], dtype=torch.int32), 3)
    """
    row = join(samples)
    tokens, sizes = tokens_of(row), row[SEQ_LENS]
    ends, longest = sizes.cumsum(0), int(sizes.max())
    labels = row.get(LABELS, tokens).clone()
    labels[(ends - sizes)[sizes > 0]] = UNTRAINED
    positions = position_ids(sizes)
    arguments = {TOKENS: tokens.long(), LABELS: labels.long(), POSITIONS: positions}
    bounds = torch.cat([ends.new_zeros(1), ends]).int()  # flash-attention counts in int32
    return {
        **{name: field[None] for name, field in arguments.items()},
        "cu_seq_lens_q": bounds,
        "cu_seq_lens_k": bounds,
        "max_length_q": longest,
        "max_length_k": longest,
        "use_cache": False,  # with a cache, transformers does not look at the positions
    }


def tokens_of(row: dict[str, torch.Tensor]) -> torch.Tensor:
    """Return the tokens of samples that were joined; refuse a row without, or with padding."""
    tokens, mask = row.get(TOKENS), row.get(MASK)
    if tokens is None or tokens.shape != row[POSITIONS].shape:
        fields = [name for name in row if name not in {POSITIONS, SEQ_LENS}]
        raise IndexPlanError(
            "samples",
            "must have input_ids, a number for each token, to be joined for a causal model",
            shown(fields),
            "return dicts of input_ids and labels",
        )
    if mask is not None and not bool(mask.all()):
        raise IndexPlanError(
            "samples",
            "must have no padding, as they are joined",
            f"an attention_mask with {counted(int((mask == 0).sum()), 'zero')} in {mask.numel()}",
            "tokenize with padding=False",
        )
    return tokens
