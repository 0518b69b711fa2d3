"""What the page on coming from TRL's GRPOTrainer says of a resume without the callback."""

from __future__ import annotations

from collections import Counter
from typing import Any


def check(page: dict[str, Any]) -> None:
    """Of 32 prompts, 8 are never read in the second epoch, and 8 twice."""
    read = page["read"]
    read.clear()
    page["trainer_of"]("before").train()
    before_the_stop = read[8:12]
    read.clear()
    page["trainer_of"]("before").train(resume_from_checkpoint="before/checkpoint-12")
    times = Counter(sum(before_the_stop + read, []))
    assert [(0, 8), (1, 16), (2, 8)] == sorted(
        Counter(times[word] for word in page["words"]).items()
    )
