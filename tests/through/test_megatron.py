"""Plans in Megatron's own code: its fields and its iterators; see .ci/run."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import default_collate

import indexplan as ip
from indexplan_torch import Piece
from indexplan_torch.megatron import PlanIterator
from tests.adapters.small import check_fields
from tests.histories.megatron import live
from tests.histories.stories import Story
from tests.test_docs import blocks

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of Megatron, about what is not installed
    from megatron.core import rerun_state_machine
    from megatron.core.datasets.blended_dataset import BlendedDataset
    from megatron.core.datasets.gpt_dataset import GPTDataset, GPTDatasetConfig
    from megatron.core.datasets.indexed_dataset import IndexedDataset, IndexedDatasetBuilder
    from megatron.core.datasets.utils import Split
    from megatron.core.rerun_state_machine import RerunDataIterator, RerunMode
    from megatron.core.tokenizers.text.libraries.null_tokenizer import NullTokenizer

pytestmark = pytest.mark.filterwarnings("ignore")  # Megatron's own, of what is not installed

LENGTH, EOD = 16, 100
FLAGS = ("reset_position_ids", "reset_attention_mask", "eod_mask_loss", "create_attention_mask")


def written(prefix: Path, num_documents: int = 40, seed: int = 0) -> IndexedDataset:
    """Write documents as Megatron's tools do, each with an end-of-document token."""
    random = np.random.default_rng(seed)
    builder = IndexedDatasetBuilder(f"{prefix}.bin", dtype=np.uint16)
    for length in random.integers(2, 50, num_documents).tolist():
        tokens = np.append(random.integers(0, EOD, length - 1), EOD)
        builder.add_document(torch.from_numpy(tokens), [length])
    builder.finalize(f"{prefix}.idx")
    return IndexedDataset(str(prefix))


def config(**changes: Any) -> GPTDatasetConfig:
    """Return Megatron's config of a GPTDataset."""
    given = dict.fromkeys(FLAGS, False) | {
        "random_seed": 1,
        "sequence_length": LENGTH,
        "tokenizer": NullTokenizer(EOD),
    }
    return GPTDatasetConfig(**{**given, **changes})


def theirs(documents: IndexedDataset, window: list[Piece], of: GPTDatasetConfig) -> GPTDataset:
    """Return a GPTDataset whose only window is this one, by its own three index arrays."""
    extra = int(of.add_extra_token_to_sequence)
    made = GPTDataset(
        documents, documents.path_prefix, np.arange(len(documents)), None, Split.train, of
    )
    made.document_index = np.array([piece.sample for piece in window], np.int32)
    begin, end = (0, window[0].start), (len(window) - 1, window[-1].stop - extra)
    made.sample_index = np.array([begin, end], np.int32)
    made.shuffle_index = np.zeros(1, np.int64)
    return made


def page() -> dict[str, Any]:
    """Return the classes that the page writes, which make Megatron's files a dataset."""
    made: dict[str, Any] = {"np": np, "torch": torch}
    for block in blocks("docs/migrate/megatron.md"):
        if "class Windows" in block or "class Blend" in block:
            exec(block.partition("other = ")[0], made)  # noqa: S102 (our own page)
    return made


def windows_of(documents: IndexedDataset, overlap: int = 1, seed: int = 3) -> ip.DocumentWindows:
    """Return an order of windows."""
    return ip.DocumentWindows(
        documents.sequence_lengths, length=LENGTH, overlap=overlap, block_size=8, seed=seed
    )


def bins(order: ip.Order, num: int) -> list[list[Piece]]:
    """Return some windows of an order, as a loader asks a dataset for them."""
    units = ip.Plan(order, world_size=1, batch_size=num).units(0, step=0, rank=0)
    return [[Piece(*row) for row in each.tolist()] for each in units.bins]


@pytest.mark.parametrize("extra", [True, False])
@pytest.mark.parametrize("flags", [*product([True, False], repeat=4)])
def test_samples_have_the_fields_of_gpt_dataset(
    flags: tuple[bool, ...], extra: bool, tmp_path: Path
) -> None:
    """tokens, labels, loss_mask, position_ids and perhaps attention_mask, under every option."""
    documents = written(tmp_path / "docs")
    of = config(**dict(zip(FLAGS, flags, strict=True)), add_extra_token_to_sequence=extra)
    samples = page()["samples_of"](documents, of)
    asked = bins(windows_of(documents, overlap=int(extra)), 6)
    assert {1} < {len(window) for window in asked}  # windows of one document, and of several
    found = [samples[window] for window in asked]
    expected = [theirs(documents, window, of)[0] for window in asked]
    for ours, gpts in zip(found, expected, strict=True):
        check_fields(gpts, ours)
    check_fields(default_collate(expected), default_collate(found))


def test_an_epoch_has_as_many_windows_and_the_same_tokens(tmp_path: Path) -> None:
    """One epoch of GPTDataset and one of the plan read the same documents' tokens."""
    documents = written(tmp_path / "docs")
    order, of = windows_of(documents), config()
    made = GPTDataset(
        documents, documents.path_prefix, np.arange(len(documents)), None, Split.train, of
    )
    assert len(made) == order.num_units(0)
    samples = page()["samples_of"](documents, of)
    ours = [samples[window]["labels"] for window in bins(order, len(made))]
    gpts = [made[number]["labels"] for number in range(len(made))]
    # the few tokens that fill no window are others, as documents come in another sequence
    count = [torch.cat(each).bincount(minlength=EOD + 1) for each in (ours, gpts)]
    assert int((count[0] - count[1]).abs().sum()) <= 2 * (LENGTH + 1)


def test_a_blend_is_a_mixture(tmp_path: Path) -> None:
    """A window of several datasets has BlendedDataset's field too; documents count through them."""
    sets = [written(tmp_path / name, 30, seed) for seed, name in enumerate("ab")]
    of = config(reset_position_ids=True)
    samples = page()["Blend"]([page()["samples_of"](each, of) for each in sets])
    a, b = (windows_of(each, seed=seed) for seed, each in enumerate(sets))
    order = ip.Mixture({"a": a, "b": b}, {"a": 1, "b": 1})
    assert order.num_samples == len(samples) == 60
    seen = set()
    for window in bins(order, 12):
        source = int(window[0].sample >= 30)
        inside = [piece._replace(sample=piece.sample - 30 * source) for piece in window]
        mine = theirs(sets[source], inside, of)
        blended = BlendedDataset([mine, mine], [1.0, 1.0], 2, of)
        blended.dataset_index[:] = source
        blended.dataset_sample_index[:] = 0
        check_fields(default_collate([blended[0]]), default_collate([samples[window]]))
        seen.add(source)
    assert {0, 1} == seen


def test_windows_of_another_length_are_refused(tmp_path: Path) -> None:
    """GPTDataset would train on them, by masks of the first window's length."""
    documents = written(tmp_path / "docs")
    samples = page()["samples_of"](documents, config())
    longer = ip.DocumentWindows(documents.sequence_lengths, length=LENGTH + 4)
    with pytest.raises(ValueError, match=r"^a window of 21 tokens, not of the config's "):
        samples[bins(longer, 1)[0]]
    with pytest.raises(TypeError):
        samples[3]  # of an order without windows


@pytest.fixture
def validating() -> Iterator[None]:
    """Turn on Megatron's reruns, which keep the micro-batches of an iteration."""
    rerun_state_machine.initialize_rerun_state_machine(mode=RerunMode.VALIDATE_RESULTS)
    yield
    rerun_state_machine.destroy_rerun_state_machine()


@pytest.mark.usefixtures("validating")
def test_rewinding_repeats_an_iteration_and_reads_on() -> None:
    """As the rerun state machine does where a loss is unexpected: the same micro-batches again."""
    given: dict[str, Any] = {"micro_batch_size": 4, "rank": 1, "world_size": 2}
    order = ip.Shuffle(50, seed=1)
    expected = PlanIterator(range(50), order, consumed_samples=0, **given)
    ours = PlanIterator(range(50), order, consumed_samples=0, **given)
    rerun = RerunDataIterator(ours)
    for iteration in range(5):
        batches = [next(expected).tolist() for _ in range(3)]
        for _ in range(1 + iteration % 3):
            assert batches == [next(rerun).tolist() for _ in range(3)]
            rerun.rewind()
        rerun.advance()
        assert 24 * (iteration + 1) == rerun.iterable.save_state()["consumed_samples"]  # type: ignore[attr-defined]
    # a checkpoint inside a rerun: the saved micro-batches come first, then those after them
    first = [next(rerun).tolist() for _ in range(3)]
    rerun.rewind()
    again = RerunDataIterator(
        PlanIterator(range(50), order, consumed_samples=ours.consumed_samples, **given)
    )
    again.load_state_dict(rerun.state_dict())
    assert first == [next(again).tolist() for _ in range(3)]
    again.advance()
    assert next(rerun.iterable).tolist() == next(again).tolist()  # type: ignore[call-overload]


def cycled(loader: Any) -> Iterator[Any]:
    """Iterate over a loader as Megatron's loop does under --full-validation."""
    while True:
        yield from iter(loader)


@pytest.mark.parametrize("num_workers", [0, 2])
def test_each_evaluation_reads_all_of_each_validation_set(num_workers: int) -> None:
    """By the class that the page writes: whole, in full micro-batches, by their lengths."""
    (block,) = [each for each in blocks("docs/migrate/megatron.md") if "class Whole" in each]
    made: dict[str, Any] = {"PlanIterator": PlanIterator}
    exec(block.partition("whole = Whole(")[0], made)  # noqa: S102 (our own page)
    given = {"micro_batch_size": 2, "world_size": 3, "num_workers": num_workers}
    given["persistent_workers"] = False
    for order in (ip.Shuffle(50, seed=1), ip.Sequential(7), ip.Sequential(24)):
        data = range(order.num_samples)
        loaders = [made["Whole"](data, order, 2, rank=rank, **given) for rank in range(3)]
        iterations = -(-order.num_samples // 12)
        assert [iterations] * 3 == [len(each) for each in loaders]
        iterators = [RerunDataIterator(cycled(each)) for each in loaders]
        for _ in range(2):  # evaluations
            read = [next(each).tolist() for _ in range(2 * iterations) for each in iterators]
            assert {2} == set(map(len, read))
            row = order.take(0, 0, order.num_samples).tolist()
            more = order.take(1, 0, iterations * 12 - order.num_samples).tolist()
            assert row + more == sum(read, [])


@pytest.mark.parametrize("number", range(8))  # others in CI's stage megatron, by PlanIterator alone
def test_histories_in_megatrons_own_iterator(number: int) -> None:
    """Each step reads the run's next places, while ranks and batches change and the batch rises."""
    live(Story(number), wrapped=RerunDataIterator)
