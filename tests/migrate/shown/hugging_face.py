"""What the page on coming from Hugging Face says: real runs, resumed, and what they read."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import numpy as np
import torch
from datasets import Dataset
from transformers import Trainer, TrainingArguments

import indexplan as ip
from indexplan_torch import Bins, PlanLoader
from indexplan_torch.causal import join_causal
from indexplan_torch.transformers import use_plan


def check(page: dict[str, Any]) -> None:
    """Hold the page to what it says."""
    trainers_resume(page)
    packed_rows_have_the_loss_of_their_chats(page)
    grouping(page)
    mixing()


def rows_of(given: dict[str, torch.Tensor]) -> list[tuple[int, ...]]:
    """The texts of a batch, without padding; or the chats of a packed row."""
    tokens = given["input_ids"]
    if "position_ids" in given:
        starts = (given["position_ids"][0] == 0).nonzero()[:, 0].tolist()
        bounds = zip(starts, [*starts[1:], tokens.shape[1]], strict=True)
        return [tuple(tokens[0, start:stop].tolist()) for start, stop in bounds]
    mask = given["attention_mask"].bool()
    return [tuple(row[kept].tolist()) for row, kept in zip(tokens, mask, strict=True)]


def trained(trainer: Any, checkpoint: str | None = None) -> list[list[tuple[int, ...]]]:
    """Train, and return the rows of each step."""
    steps: list[list[tuple[int, ...]]] = []
    model = trainer.model
    hook = model.register_forward_pre_hook(
        lambda _, __, given: steps.append(rows_of(given)), with_kwargs=True
    )
    trainer.train(resume_from_checkpoint=checkpoint)
    hook.remove()
    return steps


def trainers_resume(page: dict[str, Any]) -> None:
    """Stopped inside the second epoch, and resumed by a new trainer, each reads each row once."""
    data, options = page["tokenized"], page["options"]
    of_trainer = {k: v for k, v in options.items() if k not in {"max_length", "bf16"}}

    def plain() -> Any:
        arguments = TrainingArguments("plain", **of_trainer)
        given = {"train_dataset": data, "data_collator": page["collator"]}
        trainer = Trainer(page["model"], arguments, **given)
        use_plan(trainer, ip.Plan(ip.Shuffle(203, seed=0), batch_size=16))
        return trainer

    def packed() -> Any:
        arguments = page["SFTConfig"]("packed", **options)
        trainer = page["SFTTrainer"](page["model"], arguments, **page["given"])
        chats = trainer.train_dataset.with_format("torch", columns=["input_ids", "labels"])
        rows = ip.Packed(list(map(len, trainer.train_dataset["input_ids"])), max_length=128, seed=0)
        packs = ip.Plan(rows, batch_size=1)
        use_plan(trainer, packs, dataset=Bins(chats), collate_fn=join_causal)
        return trainer

    for make, folder in ((plain, "plain"), (packed, "packed")):
        runs = []
        for checkpoint in (None, f"{folder}/checkpoint-20"):
            trainer = make()
            rows = trainer.train_dataset["input_ids"]
            runs.append(trained(trainer, checkpoint))
        whole, rest = runs
        assert len(whole) == 20 + len(rest)
        size = len(whole) // 2
        assert size < 20 < 2 * size
        expected = Counter(map(tuple, rows))
        assert expected == Counter(sum(whole[:size], []))
        assert expected == Counter(sum(whole[size:20] + rest, []))


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


def grouping(page: dict[str, Any]) -> None:
    """Padding and order of the batches of 5,003 texts."""
    rng = np.random.default_rng(0)
    lengths = np.clip(rng.lognormal(4, 1, size=5003), 1, 512).astype(int)
    texts = Dataset.from_dict({"input_ids": [[1] * each for each in lengths]})

    def pad(samples: list[Any]) -> Any:
        return page["tokenizer"].pad(samples, return_tensors="pt")

    order = ip.LengthGrouped(lengths, batch_size=16, num_buckets=64, seed=0)
    plan = ip.Plan(order, batch_size=1, remainder="carry")
    ours = PlanLoader(texts, plan, collate_fn=pad, keep_bins=False)
    shapes = [batch["input_ids"].shape for batch in ours]
    padding = 1 - lengths.sum() / sum(rows * width for rows, width in shapes)
    assert 0.015 < padding < 0.025
    longer = np.mean(np.diff([width for _, width in shapes]) > 0)  # than in the step before
    assert 0.4 < longer < 0.6
    assert sorted(rows for rows, _ in shapes) == [11] + [16] * 312


def mixing() -> None:
    """Shares of an epoch, within what is promised, and all of each source in time."""
    sizes = {"web": 1000, "code": 300, "books": 50}
    mixture = ip.Mixture(
        {name: ip.Shuffle(size, seed=seed) for seed, (name, size) in enumerate(sizes.items())},
        weights={"web": 0.7, "code": 0.2, "books": 0.1},
        epoch_size="first_exhausted",
        seed=4,
    )
    epochs = [mixture.take(epoch, 0, mixture.epoch_size) for epoch in range(3)]
    counts = np.bincount(mixture.split(epochs[0])[0])
    assert (abs(counts - np.array([0.7, 0.2, 0.1]) * mixture.epoch_size) <= mixture.within).all()
    assert mixture.within < 3
    assert {*range(1000)} <= {*np.concatenate(epochs).tolist()}  # all of web
    everything = ip.Mixture(mixture.sources, weights=mixture.weights, epoch_size="all_exhausted")
    assert len(set(everything.take(0, 0, everything.epoch_size).tolist())) == 1350
