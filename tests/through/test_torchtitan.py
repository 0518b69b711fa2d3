"""Plans in torchtitan's own code: its base of loaders, its config, its checkpoints; see .ci/run."""

from __future__ import annotations

import gc
import json
import multiprocessing
import re
from dataclasses import dataclass, field, replace
from itertools import islice
from random import Random
from typing import Any

import numpy as np
import pytest
import torch
from datasets import Dataset
from torchtitan.components.dataloader import BaseDataLoader
from torchtitan.components.loss import IGNORE_INDEX
from torchtitan.config import ConfigManager, Configurable
from torchtitan.hf_datasets import DatasetConfig, text_datasets

import indexplan as ip
from indexplan_torch import Piece
from indexplan_torch.causal import UNTRAINED
from indexplan_torch.torchtitan import PlanDataLoader
from tests.adapters.small import check_fields
from tests.adapters.test_token_rows import Rows
from tests.histories.megatron import draw_order, stream
from tests.runs.frameworks import torchtitan as run

pytestmark = pytest.mark.filterwarnings("ignore")  # of torch's checkpoints, about their formats


LENGTH = 16


def documents(num: int, longest: int) -> list[np.ndarray]:
    """Return documents that begin with token 1 and end with token 2."""
    random = np.random.default_rng(3)
    sizes = random.integers(1, longest - 1, num)
    return [np.concatenate([[1], random.integers(3, 99, size), [2]]) for size in sizes]


# --- in one process


class Numbers:
    """A dataset of rows of its own number, which fails when it is told to."""

    def __init__(self, num: int, failing: Any = ()) -> None:
        self.num, self.failing = num, set(failing)

    def __len__(self) -> int:
        return self.num

    def __getitem__(self, index: int) -> Any:
        if index in self.failing:
            self.failing.remove(index)
            raise OSError(index)
        return {"input": torch.full((3,), index)}, torch.full((3,), index)


def loaders(order: ip.Order, world_size: int, rows: int, **changes: Any) -> list[PlanDataLoader]:
    """Return the loaders of all ranks."""
    sizes = {"local_batch_size": rows, "seq_len": 3, "snapshot_every_n_steps": 5}
    given = {"dataset": Numbers(order.num_samples), "order": order, **changes}
    return [
        PlanDataLoader.Config(**given).build(
            dp_world_size=world_size, dp_rank=rank, tokenizer=None, **sizes
        )
        for rank in range(world_size)
    ]


def step_of(ranks: list[PlanDataLoader], num: int = 1) -> list[int]:
    """Return what all ranks train on in an optimizer step, a batch that fails once tried again."""
    labels = []
    for each in ranks * num:
        before = each.state_dict()
        try:
            labels.append(next(each)[1])
        except OSError:
            assert before == each.state_dict()
            labels.append(next(each)[1])
    rows = torch.cat([each.reshape(-1, 3) for each in labels])
    assert (rows == rows[:, :1]).all()
    return [number for number in rows[:, 0].tolist() if number != IGNORE_INDEX]


def exchanged(state: dict[str, Any]) -> dict[str, Any]:
    """Return a state as a checkpoint keeps it: one text."""
    assert ["indexplan"] == list(state)
    assert isinstance(state["indexplan"], str)
    return dict(state)


@pytest.mark.parametrize("number", range(60))
def test_drawn_histories(number: int) -> None:
    """Other ranks, rows, accumulations and failures; finite and endless; from the first place on.

    All ranks of a finite run end in the same step. Resumed there it reads nothing, and a later
    endless one the next epoch.
    """
    random = Random(f"titan {number}")  # noqa: S311 (for a history that comes again)
    order, finite = draw_order(random, 150), random.random() < 0.5
    place, state, stop = 0, None, order.num_units(0) if finite else 2**62
    for _ in range(random.randint(1, 5)):
        world_size, rows = random.choice([1, 2, 3, 4, 5, 8]), random.randint(1, 5)
        data = Numbers(order.num_samples)
        ranks = loaders(order, world_size, rows, dataset=data, infinite=not finite)
        for each in ranks if state is not None else []:
            each.load_state_dict(state)
        for _ in range(random.randint(0, 4)):
            size = world_size * rows
            batches = min(random.randint(1, 3), -(-(stop - place) // size))
            end = min(place + batches * size, stop)
            expected = [*islice(stream(order), place, end)]
            if expected and random.random() < 0.3:
                data.failing = {random.choice(expected[:size])}
            saved = ranks[0].state_dict()
            assert expected == (step_of(ranks, batches) if batches else [])
            if random.random() < 0.2:  # the step fails after it had its batches, and is done again
                for each in ranks:
                    each.load_state_dict(saved)
                assert expected == (step_of(ranks, batches) if batches else [])
            data.failing, place = set(), end
        for each in ranks if place == stop else []:
            with pytest.raises(StopIteration):
                next(each)
        (state, *others) = [exchanged(each.state_dict()) for each in ranks]
        assert all(state == other for other in others), (state, others)
        assert place == json.loads(state["indexplan"])["consumed_samples"]
    if place == stop:
        (endless,) = loaders(order, 1, 4, infinite=True)
        endless.load_state_dict(state)
        assert [*islice(stream(order), place, place + 4)] == step_of([endless])


@pytest.mark.parametrize("persistent", [True, False])
def test_closing_ends_workers(persistent: bool) -> None:
    """At once, with the garbage collector off, as torchtitan's trainer runs."""
    options = {"num_workers": 2, "persistent_workers": persistent}
    (loader,) = loaders(ip.Sequential(40), 1, 4, **options)
    before = {each.pid for each in multiprocessing.active_children()}
    gc.disable()
    try:
        for start in (0, 4):
            assert [*range(start, start + 4)] == step_of([loader])
            assert 2 == len({e.pid for e in multiprocessing.active_children()} - before)
            loader.close()
            assert before == {each.pid for each in multiprocessing.active_children()}
    finally:
        gc.enable()


# --- torchtitan's config


class Job(Configurable):
    """A trainer that only has a loader."""

    @dataclass(kw_only=True, slots=True)
    class Config(Configurable.Config):
        """With the loader's config, as in torchtitan's trainer."""

        hf_assets_path: str = "."  # which the manager looks for
        dataloader: BaseDataLoader.Config = field(default_factory=BaseDataLoader.Config)


def job() -> Job.Config:
    """Return what a config registry's function returns."""
    rows = Rows(documents(80, 60), LENGTH)
    rows.__dict__["made"] = 98  # which another one has not
    order = ip.DocumentWindows([len(each) - 1 for each in rows.tokens], LENGTH, overlap=0)
    return Job.Config(dataloader=PlanDataLoader.Config(dataset=rows, order=order))


def test_the_command_line_and_the_log() -> None:
    """The command sets the options that are text or numbers; a log has the order."""
    told = ["--module", __name__, "--config", "job", "--dataloader.num_workers", "3"]
    config = ConfigManager().parse_args([*told, "--dataloader.no-infinite"]).dataloader
    assert (3, False) == (config.num_workers, config.infinite)
    assert (80, 98) == (len(config.dataset), config.dataset.__dict__["made"])
    logged = json.loads(json.dumps(config.to_dict()))
    assert ("Rows", config.order.to_dict()) == (logged["dataset"], logged["order"])
    # what torchtitan's validator does
    assert replace(config, infinite=True).infinite
    assert UNTRAINED == IGNORE_INDEX
    sizes = {"seq_len": LENGTH, "local_batch_size": 4}
    fields, labels = next(config.build(dp_world_size=1, dp_rank=0, tokenizer=None, **sizes))
    assert (4, LENGTH) == labels.shape == fields["input"].shape == fields["positions"].shape


# --- what is refused


def refused(message: str) -> Any:
    """Expect an error that begins so."""
    return pytest.raises(ip.IndexPlanError, match=f"^{re.escape(message)}")


@pytest.mark.parametrize(
    ("state", "whose", "got"),
    [
        ({}, "PlanDataLoader", "a dict of []; start with this loader after another one by --check"),
        (None, "PlanDataLoader", "None"),
        ({"dp_rank_0": b"...", "world_size": 2}, "PlanDataLoader", "a dict of ['dp_rank_0', 'wo"),
        ({"indexplan": "{"}, "PlanDataLoader", "a dict of ['indexplan']"),
        ({"indexplan": '{"version": 1}'}, "PlanIterator", "a dict of ['version']"),
    ],
)
def test_states_that_are_refused(state: Any, whose: str, got: str) -> None:
    """Nothing changes then; nor by a state of another order."""
    (loader,) = loaders(ip.Sequential(40), 1, 4)
    step_of([loader])
    with refused(f"state must be a {whose}'s; got {got}"):
        loader.load_state_dict(state)
    with refused("a cursor must belong to the plan's order; got"):
        loader.load_state_dict(loaders(ip.Shuffle(40), 1, 4)[0].state_dict())
    assert [4, 5, 6, 7] == step_of([loader])


class Images(Numbers):
    """A dataset whose labels are no numbers of rows."""

    def __getitem__(self, index: int) -> Any:
        return {"input": torch.ones(3)}, torch.ones(3)


def test_what_cannot_be_built_or_left_out() -> None:
    """Without sizes; labels at the first batch of a finite loader, not at its last."""
    main = {"num_tokens_per_batch": 64, "max_context_length": 16}  # torchtitan's main asks so
    for sizes in ({}, main):
        with refused(
            "local_batch_size must be an integer from 1 to 2**62 - 1; got None; build the loader "
            "by its config, as torchtitan 0.3.0's trainer does"
        ):
            job().dataloader.build(dp_world_size=2, dp_rank=0, tokenizer=None, **sizes)
    (loader,) = loaders(ip.Sequential(2), 1, 2, dataset=Images(2), infinite=False)
    with refused("labels of a finite loader must be integers, as many for each row; got tensor([["):
        next(loader)
    (endless,) = loaders(ip.Sequential(2), 1, 2, dataset=Images(2))
    assert torch.equal(torch.ones(2, 3), next(endless)[1])


# --- the rows of our page against those that torchtitan's own datasets pack, field by field


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
        check_fields(*({**fields, "labels": labels} for fields, labels in (theirs, ours)))


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
        check_fields(*({**fields, "labels": labels} for fields, labels in (theirs, ours)))
