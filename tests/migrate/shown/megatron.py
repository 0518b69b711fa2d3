"""What the page on coming from Megatron-LM says of its datasets, samplers and blend."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import torch
from megatron.bridge.data.samplers import build_pretraining_data_loader
from megatron.core.datasets.blended_dataset import BlendedDataset
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
    epochs(page, before)
    resumes()
    splits(page)
    blends(before)


def dataset_of(num_samples: int | None = None, split: str = "1,0,0") -> Any:
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
    sizes = (num_samples, None, None)  # of train, valid and test
    return BlendedMegatronDatasetBuilder(GPTDataset, sizes, lambda: True, config).build()[0]


def loader_of(
    dataset: Any,
    rank: int,
    world_size: int,
    consumed_samples: int = 0,
    kind: str = "single",
    *,
    data_sharding: bool = True,
) -> Any:
    """The loader of `--dataloader-type` in Megatron Bridge."""
    return build_pretraining_data_loader(
        dataset,
        consumed_samples,
        kind,
        micro_batch_size=8,
        num_workers=0,
        pin_memory=False,
        data_sharding=data_sharding,
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


def epochs(page: dict[str, Any], before: Any) -> None:
    """The documents that are read first, of three epochs."""
    three = dataset_of(num_samples=3 * len(before))
    assert 426 == len(np.unique(three.document_index[:600]))
    order = page["order"]
    for epoch in range(3):
        read = order.take(epoch, 0, order.num_units(epoch))
        assert 600 == len(np.unique(read))


def read_by_megatron(kind: str, then: int, *, data_sharding: bool) -> list[int]:
    """How many of 4,096 are read how often, by 4 ranks and after 64 steps by others."""
    runs: list[Any] = [(rank, 4, 0, 64) for rank in range(4)]
    runs += [(rank, then, 64 * 32, None) for rank in range(then)]
    read = []
    numbers = torch.arange(4096)
    for rank, world_size, consumed, most in runs:
        loader = loader_of(numbers, rank, world_size, consumed, kind, data_sharding=data_sharding)
        read += list(itertools.islice(loader, most))
    counts: list[int] = torch.bincount(torch.bincount(torch.cat(read), minlength=4096)).tolist()
    return counts


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
    """Other ranks lose samples, are refused, or drop the end; by a plan each is read once."""
    assert [1016, 2064, 1016] == read_by_megatron("cyclic", 8, data_sharding=True)
    assert [8, 4088] == read_by_megatron("single", 3, data_sharding=True)
    assert [0, 4096] == read_by_plan(8) == read_by_plan(3)
    with pytest.raises(AssertionError):  # 2,048 is no multiple of 3 times 8
        read_by_megatron("cyclic", 3, data_sharding=False)
    drawn = torch.randperm(4096, generator=torch.Generator().manual_seed(0))
    numbers = torch.arange(4096)
    first = next(iter(loader_of(numbers, 0, 1, kind="cyclic", data_sharding=False)))
    assert first.tolist() == drawn[:8].tolist()  # whatever the seed is
    assert 4096 == len(loader_of(numbers, 0, 4))


def splits(page: dict[str, Any]) -> None:
    """A subset of the documents has the windows of `--split`."""
    kept = np.arange(594)  # of 600 documents, those of "99,1,0"
    lengths = page["documents"].sequence_lengths
    train = ip.Subset(ip.DocumentWindows(lengths[kept], length=64, seed=1), kept, len(lengths))
    assert train.num_units(epoch=0) == len(dataset_of(split="99,1,0"))


def blends(before: Any) -> None:
    """Which ranks read the small source."""
    three = dataset_of(num_samples=3 * len(before))
    blend = BlendedDataset([before, three], [7.0, 1.0], 800, before.config)
    by_rank = [sum((blend.dataset_index[rank::8] == 1).tolist()) for rank in range(8)]
    assert [0, 100, 0, 0, 0, 0, 0, 0] == by_rank
    mixture = ip.Mixture({"a": ip.Shuffle(700), "b": ip.Shuffle(100, seed=1)}, {"a": 7, "b": 1})
    mixed = ip.Plan(mixture, world_size=8, batch_size=1)
    by_rank = [int((mixed.indices(0, rank=rank) >= 700).sum()) for rank in range(8)]
    assert [23, 14, 14, 9, 8, 13, 10, 9] == by_rank
