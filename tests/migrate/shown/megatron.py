"""What the page on coming from Megatron-LM says of its datasets and reruns."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from megatron.bridge.data.samplers import build_pretraining_data_loader
from megatron.core.datasets.blended_megatron_dataset_builder import BlendedMegatronDatasetBuilder
from megatron.core.datasets.gpt_dataset import GPTDataset, GPTDatasetConfig
from megatron.core.rerun_state_machine import (
    RerunDataIterator,
    RerunMode,
    initialize_rerun_state_machine,
)
from megatron.core.tokenizers.text.libraries.null_tokenizer import NullTokenizer

import indexplan as ip


def check(page: dict[str, Any]) -> None:
    """Hold the page to what it says."""
    before = dataset_of()
    fields_and_reruns(page, before)
    splits(page)


def dataset_of(split: str = "1,0,0") -> Any:
    """Megatron's training dataset of the page's documents."""
    config = GPTDatasetConfig(
        random_seed=1,
        sequence_length=64,
        blend=(["docs"], None),
        split=split,
        tokenizer=NullTokenizer(1000),
        create_attention_mask=False,
        reset_position_ids=True,
        reset_attention_mask=False,
        eod_mask_loss=False,
    )
    sizes = (None, None, None)  # of train, valid and test
    return BlendedMegatronDatasetBuilder(GPTDataset, sizes, lambda: True, config).build()[0]


def loader_of(dataset: Any, rank: int, world_size: int, kind: str = "single") -> Any:
    """The loader of `--dataloader-type` in Megatron Bridge."""
    return build_pretraining_data_loader(
        dataset,
        0,
        kind,
        micro_batch_size=8,
        num_workers=0,
        pin_memory=False,
        data_sharding=True,
        data_parallel_rank=rank,
        data_parallel_size=world_size,
    )


def fields_and_reruns(page: dict[str, Any], before: Any) -> None:
    """Batches have GPTDataset's fields, and Megatron can run an iteration again."""
    assert page["order"].num_units(epoch=0) == len(before)
    assert list(page["first"]) == list(next(iter(loader_of(before, 0, 4))))
    initialize_rerun_state_machine(mode=RerunMode.VALIDATE_RESULTS)  # as --rerun-mode does
    external = loader_of(page["iterator_of"](0, 4), 0, 4, kind="external")
    iterator = RerunDataIterator(external)  # what the training loop reads
    batch = next(iterator)
    iterator.rewind()  # to run an iteration again
    assert torch.equal(batch["tokens"], next(iterator)["tokens"])
    iterator.advance()
    assert torch.equal(page["second"]["tokens"], next(iterator)["tokens"])


def splits(page: dict[str, Any]) -> None:
    """A subset of the documents has the windows of `--split`."""
    kept = np.arange(594)  # of 600 documents, those of "99,1,0"
    lengths = page["documents"].sequence_lengths
    train = ip.Subset(ip.DocumentWindows(lengths[kept], length=64, seed=1), kept, len(lengths))
    assert train.num_units(epoch=0) == len(dataset_of(split="99,1,0"))
