"""What the page on coming from torchtitan says of its own loader."""

from __future__ import annotations

from typing import Any

import pytest
from datasets import Dataset
from torchtitan.components.tokenizer import BaseTokenizer
from torchtitan.hf_datasets import DatasetConfig, text_datasets
from torchtitan.hf_datasets.text_datasets import HuggingFaceTextDataLoader


class Tokenizer(BaseTokenizer):  # type: ignore[misc]
    """The tokens are the text."""

    def encode(self, text: str, add_bos: bool, add_eos: bool) -> list[int]:
        return list(map(int, text.split()))

    def decode(self, tokens: Any) -> str:
        return " ".join(map(str, tokens))

    def get_vocab_size(self) -> int:
        return 1000


def check(page: dict[str, Any]) -> None:
    """It has the same fields, and refuses other ranks."""
    texts = [Tokenizer().decode(tokens) for tokens in page["documents"]]
    text_datasets.DATASETS["texts"] = DatasetConfig(
        "", lambda _: Dataset.from_dict({"text": texts}), lambda sample: sample["text"]
    )

    def build(dp_rank: int, dp_world_size: int) -> Any:
        return HuggingFaceTextDataLoader.Config(dataset="texts").build(
            dp_rank=dp_rank,
            dp_world_size=dp_world_size,
            tokenizer=Tokenizer(),
            seq_len=64,
            local_batch_size=8,
        )

    loader = build(0, 4)
    fields, labels = next(iter(loader))
    assert list(page["fields"]) == list(fields)
    assert page["labels"].shape == labels.shape
    with pytest.raises(AssertionError, match="dp_degree is inconsistent before and after"):
        build(0, 3).load_state_dict(loader.state_dict())
