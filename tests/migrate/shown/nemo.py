"""What the page on coming from NeMo AutoModel says of its own sampler."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any


def check(page: dict[str, Any]) -> None:
    """On 4 ranks and then 3, one sample is never read, and 24 twice."""
    Path("before.yaml").write_text(page["recipe"])

    def loader_of(rank: int, world_size: int) -> Any:
        cfg = page["RecipeConfig"](page["load_yaml_config"]("before.yaml"))
        return cfg.dataloader.build(dp_rank=rank, dp_world_size=world_size)

    loaders = [loader_of(rank, 4) for rank in range(4)]
    read = [number for each in loaders for batch in islice(each, 12) for number in batch.tolist()]
    states = [loader.state_dict() for loader in loaders]
    for rank in range(3):
        loader = loader_of(rank, 3)
        loader.load_state_dict(states[rank])
        read += [number for batch in loader for number in batch.tolist()]
    counts = [read.count(number) for number in range(1000)]
    assert (1, 24) == (counts.count(0), sum(count > 1 for count in counts))
