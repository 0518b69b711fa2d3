"""Rows as the page for torchtitan makes them: each token but a document's first is a label."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import ConcatDataset

import indexplan as ip
from indexplan_torch import PlanLoader
from tests.test_docs import blocks

RANDOM = np.random.default_rng(4)
LENGTH = 12
# numbered through, so that a token tells its document and its place
SIZES = RANDOM.integers(2, 40, 120)
STARTS = SIZES.cumsum() - SIZES
DOCUMENTS = [np.arange(start, start + n) for start, n in zip(STARTS, SIZES, strict=True)]
STREAM = np.arange(SIZES.sum())

PAGE: dict[str, Any] = {"np": np, "torch": torch}
for block in blocks("docs/migrate/large-runs.md"):
    if "class Rows" in block or "class Stream" in block:
        exec(block, PAGE)  # noqa: S102 (our own page)
Rows, Stream = PAGE["Rows"], PAGE["Stream"]


def epoch(rows: Any, order: ip.Order, **options: Any) -> list[tuple[Any, ...]]:
    """Return (inputs, positions, labels) of an epoch's rows, each an array."""
    plan = ip.Plan(order, batch_size=4)
    return [
        row
        for fields, labels in PlanLoader(rows, plan, rank=0, world_size=1, **options)
        for row in zip(
            fields["input"].numpy(), fields["positions"].numpy(), labels.numpy(), strict=True
        )
    ]


def check(rows: list[tuple[Any, ...]], *, restarts: bool = True) -> np.ndarray:
    """Check that each row is right for itself; return all labels that are trained on."""
    found = []
    for inputs, positions, labels in rows:
        assert [(LENGTH,)] * 3 == [each.shape for each in (inputs, positions, labels)]
        assert [np.dtype(np.int64)] * 3 == [each.dtype for each in (inputs, positions, labels)]
        trained = labels != -100
        assert trained[: trained.sum()].all()  # what fills a row comes last
        assert (labels[trained] == inputs[trained] + 1).all()
        starts = np.flatnonzero(positions == 0)
        expected = (
            np.arange(LENGTH) - starts[np.searchsorted(starts, np.arange(LENGTH), "right") - 1]
        )
        assert (expected == positions).all()
        if restarts:
            firsts = np.isin(inputs[trained], STARTS)
            assert (positions[trained][firsts] == 0).all()
            assert set(starts) <= {0, int(trained.sum())} | set(np.flatnonzero(firsts))
        found.append(labels[trained])
    return np.concatenate(found)


LABELS = np.setdiff1d(STREAM, STARTS)  # all tokens but the first of each document


@pytest.mark.parametrize("kind", ["arrays", "lists", "tensors", "memory-mapped"])
def test_windows_of_documents(kind: str, tmp_path: Any) -> None:
    """Each label comes once, but those of a last part of a row; whatever documents are held in."""
    if kind == "memory-mapped":
        STREAM.astype(np.uint16).tofile(tmp_path / "tokens")
        stream = np.memmap(tmp_path / "tokens", np.uint16, "r")
        documents = [stream[s : s + n] for s, n in zip(STARTS, SIZES, strict=True)]
    else:
        make = {"arrays": np.asarray, "lists": np.ndarray.tolist, "tensors": torch.tensor}[kind]
        documents = [make(d) for d in DOCUMENTS]  # type: ignore[operator]
    order = ip.DocumentWindows(SIZES - 1, LENGTH, overlap=0, block_size=8, seed=2)
    found = check(epoch(Rows(documents, LENGTH), order))
    assert len(found) == len(np.unique(found)) == len(LABELS) // LENGTH * LENGTH
    assert set(found.tolist()) <= set(LABELS.tolist())


def test_rows_of_whole_documents() -> None:
    """Each label comes exactly once; the rest of a row is filled, and no label."""
    short = [document[: LENGTH + 1] for document in DOCUMENTS]
    order = ip.Packed([len(document) - 1 for document in short], LENGTH, seed=2)
    rows = epoch(Rows(short, LENGTH, pad=7), order)
    found = check(rows)
    expected = np.concatenate([document[1:] for document in short])
    assert expected.tolist() == sorted(found.tolist())
    filled = [row for row in rows if (row[2] == -100).any()]
    assert filled
    assert all((inputs[labels == -100] == 7).all() for inputs, _, labels in filled)
    # lengths of whole documents do as well, and leave room for one token of each
    order = ip.Packed([len(document) for document in short], LENGTH + 1, seed=2)
    assert expected.tolist() == sorted(check(epoch(Rows(short, LENGTH), order)).tolist())


def test_windows_of_one_stream() -> None:
    """A window is one text, whose positions count through."""
    order = ip.TokenWindows(len(STREAM), LENGTH, seed=2)
    rows = epoch(Stream(STREAM.astype(np.uint16), order), order)
    assert [*order.targets(0)] == sorted(check(rows, restarts=False).tolist())
    assert all((positions == np.arange(LENGTH)).all() for _, positions, _ in rows)


def test_labels_of_documents_that_leave_out_a_prompt() -> None:
    """Labels are shifted as tokens are; in what leaves them out, inputs stay."""
    labels = [np.where(np.arange(len(document)) < 3, -100, document) for document in DOCUMENTS]
    order = ip.DocumentWindows(SIZES - 1, LENGTH, overlap=0)
    with_prompts = epoch(Rows(DOCUMENTS, LENGTH, labels), order)
    whole = epoch(Rows(DOCUMENTS, LENGTH), order)
    prompts = np.concatenate([document[:3] for document in DOCUMENTS])
    for ours, all_of_it in zip(with_prompts, whole, strict=True):
        assert (ours[0] == all_of_it[0]).all()
        assert (np.where(np.isin(all_of_it[2], prompts), -100, all_of_it[2]) == ours[2]).all()


def test_a_mixture_of_both_kinds() -> None:
    """Several files in one dataset, as a mixture's indices count through them; in workers too."""
    streams = [STREAM, STREAM[:1000]]
    windows = [ip.TokenWindows(len(each), LENGTH, seed=seed) for seed, each in enumerate(streams)]
    order = ip.Mixture(dict(zip("ab", windows, strict=True)), {"a": 2, "b": 1})
    rows = ConcatDataset([Stream(*each) for each in zip(streams, windows, strict=True)])
    alone = epoch(rows, order)
    check(alone, restarts=False)
    both = zip(alone, epoch(rows, order, num_workers=1), strict=True)
    assert all((one == other).all() for pair in both for one, other in zip(*pair, strict=True))
    halves = DOCUMENTS[:60], DOCUMENTS[60:]
    cut = [
        ip.DocumentWindows([len(d) - 1 for d in half], LENGTH, overlap=0, seed=seed)
        for seed, half in enumerate(halves)
    ]
    order = ip.Mixture(dict(zip("ab", cut, strict=True)), {"a": 1, "b": 1})
    check(epoch(Rows(DOCUMENTS, LENGTH), order))


def test_rows_of_another_length_are_refused() -> None:
    """Of an order that was told the tokens of documents, not their labels; or of longer rows."""
    for sizes, length, row in ((SIZES, LENGTH, r"12, \d+, 12"), (SIZES - 1, 16, "16, 16, 16")):
        order = ip.DocumentWindows(sizes, length, overlap=0)
        with pytest.raises(ValueError, match=rf"^a row of \[{row}\] tokens, not of 12"):
            epoch(Rows(DOCUMENTS, LENGTH), order)
    order = ip.Packed([10, 10], 20)
    with pytest.raises(ValueError, match=r"^a row of \[18, 18, 18\] tokens, not of 12"):
        epoch(Rows([STREAM[:10]] * 2, LENGTH), order)
