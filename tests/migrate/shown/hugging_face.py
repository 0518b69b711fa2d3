"""What the page on coming from Hugging Face says of the losses of packed rows."""

from __future__ import annotations

import itertools
from typing import Any

import torch


def check(page: dict[str, Any]) -> None:
    """Hold the page to what it says."""
    packed_rows_have_the_loss_of_their_chats(page)


def packed_rows_have_the_loss_of_their_chats(page: dict[str, Any]) -> None:
    """A packed row's loss is that of its chats one by one."""
    row, model = page["row"], page["model"].eval()
    ends = row["cu_seq_lens_q"].tolist()

    def alone(start: int, stop: int) -> tuple[Any, Any]:
        tokens, labels = (row[name][:, start:stop] for name in ("input_ids", "labels"))
        return model(input_ids=tokens, labels=labels).loss, (labels[:, 1:] != -100).sum()

    with torch.no_grad():
        packed = model(**row).loss
        parts = [alone(start, stop) for start, stop in itertools.pairwise(ends)]
    apart = sum(loss * count for loss, count in parts) / sum(count for _, count in parts)
    assert torch.isclose(packed, apart, rtol=1e-5)
