"""What the page on coming from Megatron-LM says of its datasets, samplers and blend."""

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
from indexplan_torch.megatron import PlanIterator


def check(page: dict[str, Any]) -> None:
    """Hold the page to what it says."""
    before = dataset_of()
    fields_and_reruns(page, before)
    epochs(page)
    resumes()
    splits(page)
    blends()


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


def epochs(page: dict[str, Any]) -> None:
    """Each of three epochs reads all documents."""
    order = page["order"]
    for epoch in range(3):
        read = order.take(epoch, 0, order.num_units(epoch))
        assert 600 == len(np.unique(read))


def read_by_plan(then: int) -> list[int]:
    """The same by a plan."""
    read, order = [], ip.Shuffle(4096, seed=1)
    for world_size, consumed in ((4, 0), (then, 64 * 32)):
        ranks = [
            PlanIterator(
                torch.arange(4096),
                order,
                micro_batch_size=8,
                consumed_samples=consumed,
                rank=rank,
                world_size=world_size,
            )
            for rank in range(world_size)
        ]
        steps = 64 if consumed == 0 else -(-(4096 - consumed) // (8 * then))
        read += [next(each) for _ in range(steps) for each in ranks]
    counts: list[int] = torch.bincount(torch.bincount(torch.cat(read)[:4096])).tolist()
    return counts


def resumes() -> None:
    """By a plan each sample is read once, on other ranks too."""
    assert [0, 4096] == read_by_plan(8) == read_by_plan(3)


def splits(page: dict[str, Any]) -> None:
    """A subset of the documents has the windows of `--split`."""
    kept = np.arange(594)  # of 600 documents, those of "99,1,0"
    lengths = page["documents"].sequence_lengths
    train = ip.Subset(ip.DocumentWindows(lengths[kept], length=64, seed=1), kept, len(lengths))
    assert train.num_units(epoch=0) == len(dataset_of(split="99,1,0"))


def blends() -> None:
    """Each rank reads some of the small source."""
    mixture = ip.Mixture({"a": ip.Shuffle(700), "b": ip.Shuffle(100, seed=1)}, {"a": 7, "b": 1})
    mixed = ip.Plan(mixture, world_size=8, batch_size=1)
    by_rank = [int((mixed.indices(0, rank=rank) >= 700).sum()) for rank in range(8)]
    assert [23, 14, 14, 9, 8, 13, 10, 9] == by_rank
