"""sentence-transformers' trainer on Distinct, beside its own NO_DUPLICATES: see .ci/run.

Its sampler keeps labels apart in the batch of one rank. Losses that gather the embeddings of all
ranks compare them with those of the others too.
"""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

os.environ.update(HF_HUB_OFFLINE="1")  # before transformers is imported, here and in ranks

import numpy as np
import torch
from datasets import Dataset
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from tokenizers import Tokenizer, models, pre_tokenizers

import indexplan as ip
from indexplan_torch.transformers import use_plan
from tests.trainers.ranks import ON_CPU, run_ranks

IMPORTED_BY_RANKS = ("tests.through.test_sentence_transformers",)

NUM, G = 203, 24  # pairs, and those of a global batch: 8 batches, 11 pairs over
QUERIES = np.repeat(np.arange(68), [8] * 10 + [4] * 15 + [2] * 20 + [1] * 23)  # of each pair


def trained(folder: str, planned: bool, epochs: int = 2, saved: int | None = None) -> Any:
    """Train on pairs whose queries repeat; tell the pairs of each step on this rank."""
    words = {word: i for i, word in enumerate(["?", *(f"w{i}" for i in range(1000))])}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="?"))  # noqa: S106
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    torch.manual_seed(0)
    model = SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_dim=8)])
    rows = [{"query": f"w{q}", "answer": f"w{300 + i}"} for i, q in enumerate(QUERIES)]
    read: list[list[int]] = []

    class Noting(SentenceTransformerTrainer):  # type: ignore[misc, unused-ignore]
        def compute_loss(self, model: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
            answers = inputs["answer_input_ids"].flatten().tolist()
            read.append([answer - 301 for answer in answers])
            return super().compute_loss(model, inputs, *args, **kwargs)

    trainer = Noting(
        model,
        SentenceTransformerTrainingArguments(
            folder,
            num_train_epochs=epochs,
            per_device_train_batch_size=G // int(os.environ.get("WORLD_SIZE", "1")),
            batch_sampler="no_duplicates",
            dataloader_drop_last=True,
            use_cpu=True,
            report_to="none",
            disable_tqdm=True,
            save_strategy="steps" if planned else "no",
            save_steps=5,
        ),
        train_dataset=Dataset.from_list(rows),
        loss=MultipleNegativesRankingLoss(model, gather_across_devices=True),
    )
    if planned:
        use_plan(trainer, ip.Plan(ip.Distinct(QUERIES, G, seed=1), global_batch_size=G))
    trainer.train(resume_from_checkpoint=saved and f"{folder}/checkpoint-{saved}")
    return read


def ran(folder: Any, world_size: int, planned: bool, *more: Any) -> list[list[int]]:
    """Train on some ranks; return the pairs of each global batch."""
    arguments = (str(folder), planned, *more)
    ranks = run_ranks(f"{__name__}:trained", world_size, *arguments, **ON_CPU)
    return [sum(parts, []) for parts in zip(*ranks, strict=True)]


def repeats(batches: list[list[int]]) -> int:
    """Return how many pairs have a query that another of their global batch has."""
    return sum(len(batch) - len({*QUERIES[batch].tolist()}) for batch in batches)


def test_no_query_twice_in_a_global_batch(tmp_path: Any) -> None:
    """On two ranks, and on one that goes on in the second epoch: each pair at most once."""
    two = ran(tmp_path, 2, True)
    assert [G] * 16 == [len(batch) for batch in two]
    assert repeats(two) == 0
    for epoch in (two[:8], two[8:]):
        assert max(Counter(sum(epoch, [])).values()) == 1
    one = ran(tmp_path, 1, True, 2, 10)
    assert [sorted(batch) for batch in two[10:]] == [sorted(batch) for batch in one]


def test_their_own_sampler_looks_at_one_rank(tmp_path: Any) -> None:
    """On two ranks queries meet; on one, batches are filled up with pairs read before."""
    assert repeats(ran(tmp_path, 2, False)) > 10
    one = ran(tmp_path, 1, False)
    assert repeats(one) == 0
    assert max(Counter(sum(one[8:], [])).values()) == 2
