"""The rows of our page against those that torchtitan's own datasets pack, field by field."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from datasets import Dataset
from torchtitan.components.loss import IGNORE_INDEX
from torchtitan.hf_datasets import DatasetConfig, text_datasets

import indexplan as ip
from indexplan_torch import Piece
from indexplan_torch.causal import UNTRAINED
from indexplan_torch.torchtitan import PlanDataLoader
from tests.adapters.test_token_rows import Rows
from tests.runs.frameworks import torchtitan as run

LENGTH = 16


def documents(num: int, longest: int) -> list[np.ndarray]:
    """Return documents that begin with token 1 and end with token 2."""
    random = np.random.default_rng(3)
    sizes = random.integers(1, longest - 1, num)
    return [np.concatenate([[1], random.integers(3, 99, size), [2]]) for size in sizes]


class Texts(run.Numbers):
    """Decodes a text of numbers."""

    def encode(self, text: str, **_: Any) -> list[int]:
        """Return its tokens."""
        return [int(word) for word in text.split()]


def test_windows_are_the_rows_of_torchtitans_text_dataset() -> None:
    """The same documents in the same sequence make the same rows, field by field."""
    texts = documents(80, 60)
    words = [" ".join(map(str, text)) for text in texts]
    text_datasets.DATASETS["texts"] = DatasetConfig(
        "", lambda _: Dataset.from_dict({"text": words}), lambda sample: sample["text"]
    )
    expected = [*text_datasets.HuggingFaceTextDataset("texts", None, Texts(), LENGTH)]
    rows, window, found, room = Rows(texts, LENGTH), [], [], LENGTH
    for number, text in enumerate(texts):
        start = 0
        while start < len(text) - 1:
            stop = min(start + room, len(text) - 1)
            window.append(Piece(number, start, stop))
            room -= stop - start
            start = stop
            if not room:
                found.append(rows[window])
                window, room = [], LENGTH
    assert len(expected) == len(found) > 100
    lengths = [len(text) - 1 for text in texts]
    assert len(found) == ip.DocumentWindows(lengths, LENGTH, overlap=0).num_units(0)
    for theirs, ours in zip(expected, found, strict=True):
        assert_equal(theirs, ours)


class Chats(text_datasets.ChatDataset):
    """torchtitan's packing of whole documents, of tokens that are given."""

    def _tokenize_sample(self, sample: dict[str, Any]) -> tuple[list[int], list[int]]:
        return sample["tokens"][:-1], sample["labels"][1:]


def test_bins_are_the_rows_of_torchtitans_chat_dataset() -> None:
    """Whole documents with prompts that are no labels, and what fills a row."""
    texts = documents(80, LENGTH)
    labels = [np.where(np.arange(len(text)) < 2, IGNORE_INDEX, text) for text in texts]
    tokenizer = Texts()
    tokenizer.eos_id = 2
    given = Dataset.from_dict(
        {"tokens": [each.tolist() for each in texts], "labels": [each.tolist() for each in labels]}
    )
    expected = [*Chats(given, tokenizer, lambda sample: sample, LENGTH)]
    rows = Rows(texts, LENGTH, labels, pad=2)
    sequence = [*range(80)]
    shuffled = Dataset.from_dict({"n": sequence}).shuffle(seed=42)["n"]
    waiting, found = list(shuffled), []
    while waiting:
        taken, room = [], LENGTH
        while waiting and len(texts[waiting[0]]) - 1 <= room:
            taken.append(waiting.pop(0))
            room -= len(texts[taken[-1]]) - 1
        found.append(rows[taken])
    assert len(expected) == len(found) > 20
    for theirs, ours in zip(expected, found, strict=True):
        assert_equal(theirs, ours)


def assert_equal(theirs: Any, ours: Any) -> None:
    """Compare two rows: names, types, shapes and values."""
    assert [*theirs[0]] == [*ours[0]]
    for name, field_ in [*theirs[0].items(), ("labels", theirs[1])]:
        mine = ours[0].get(name, ours[1])
        assert (field_.dtype, field_.shape) == (mine.dtype, mine.shape)
        assert torch.equal(field_, mine), name


def test_rows_of_a_batch_are_stacked() -> None:
    """Fields and labels alike; what is not trained on has torchtitan's label."""
    texts = documents(80, 60)
    order = ip.DocumentWindows([len(text) - 1 for text in texts], LENGTH, overlap=0)
    config = PlanDataLoader.Config(dataset=Rows(texts, LENGTH), order=order)
    ranks = {"dp_world_size": 1, "dp_rank": 0, "tokenizer": None}
    fields, labels = next(config.build(**ranks, seq_len=LENGTH, local_batch_size=4))
    assert (4, LENGTH) == labels.shape == fields["input"].shape == fields["positions"].shape
    assert UNTRAINED == IGNORE_INDEX
