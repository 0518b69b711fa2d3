"""Orders of every kind are to plans, runs, files, pickles and commands what any order is."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import fields
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import indexplan as ip
from indexplan.cli.written import order_as_written
from indexplan.testing import check_order
from tests.laws.promises import EPOCHS, read, units_of
from tests.laws.recipes import names_of
from tests.orders import (
    test_document_windows,
    test_local_shuffle,
    test_shard_shuffle,
    test_token_windows,
)
from tests.orders.test_batched import INSIDE
from tests.orders.test_classes import LABELS, balanced, batches
from tests.orders.test_joined import GROWN
from tests.orders.test_layers import LAYERS, layers
from tests.orders.test_mixture import mixtures
from tests.orders.test_weighted import specs
from tests.support.bins import Bins
from tests.support.every_order import every_order
from tests.support.examples import examples
from tests.support.lengths import binned
from tests.support.nested import NESTED
from tests.support.reweighted import reweighted
from tests.support.strategies import plans


@st.composite
def weights(draw: st.DrawFn) -> ip.Weighted:
    """Draw an order whose weights may change once or twice."""
    spec = draw(specs(12))
    order = ip.Weighted(**spec)
    for epoch in draw(st.lists(st.integers(1, 3), max_size=2, unique=True).map(sorted)):
        order = reweighted(order, epoch, draw(st.permutations(spec["weights"])))
    return order


KINDS: dict[str, st.SearchStrategy[Any]] = {
    "bins": binned(20),
    "bins in layers": layers(binned(20)),
    "classes": balanced().filter(lambda order: order.num_units(0) <= 90) | batches(),
    "documents": test_document_windows.small,
    "layers": LAYERS,
    "local shuffles": test_local_shuffle.small,
    "mixtures": mixtures(),
    "nested": NESTED,
    "shards": test_shard_shuffle.drawn(12, 8),
    "tokens": test_token_windows.small,
    "weights": weights(),
    "weights in layers": layers(weights()),
}

# of one sample inside, these read so many epochs in one of theirs that it would have none left
READ_FURTHER = ("bins in layers", "layers", "mixtures", "nested", "weights in layers")


@pytest.mark.parametrize("kind", KINDS)
@examples(20)
@given(st.data())
def test_plans_keep_the_laws(kind: str, data: st.DataObject) -> None:
    """Fresh and resumed, under all remainders and schedules; and from JSON with its columns."""
    plan = data.draw(plans(KINDS[kind]))
    order = plan.order
    assert ip.verify(plan, [plan.start.epoch, plan.start.epoch + 1]).ok
    again = ip.Plan.from_json(plan.to_json(), columns=list(order.columns.values()))
    assert (again, again.fingerprint) == (plan, plan.fingerprint)
    for copy in (again.order, pickle.loads(pickle.dumps(order))):  # noqa: S301 (our own)
        assert (copy, copy.fingerprint) == (order, order.fingerprint)
        assert copy.stream_key == order.stream_key
        assert units_of(copy, 1) == units_of(order, 1)


@pytest.mark.parametrize("kind", KINDS)
@examples(20)
@given(st.data())
def test_a_run_reads_the_order(kind: str, data: st.DataObject) -> None:
    """Six epochs, stopped in each and continued on other ranks, are the order's, unit by unit."""
    order = data.draw(KINDS[kind])
    assert [units_of(order, epoch) for epoch in EPOCHS] == read(data.draw, order)


@pytest.mark.parametrize("kind", KINDS)
@examples(20)
@given(st.data())
def test_reads_are_found_and_counted(kind: str, data: st.DataObject) -> None:
    """Units are taken alone as together; `locate_all`, `locate` and `count` lead back to them."""
    order = data.draw(KINDS[kind])
    far = 2**8 if kind in READ_FURTHER else 2**31
    epoch = data.draw(st.sampled_from([0, 1, 5, far]))
    row = [names_of(unit) for unit in units_of(order, epoch)]
    assert row == [order.take(epoch, at).tolist() for at in range(len(row))]
    places: list[list[int]] = [[] for _ in range(order.num_samples)]
    for at, unit in enumerate(row):
        for sample in unit:
            places[sample].append(at)
    last = order.num_samples - 1
    for samples in (range(last + 1), range(last, -1, -1), [last, 0, last]):
        expected = [places[sample] for sample in samples]
        positions, offsets = order.locate_all(epoch, samples)
        found = [positions[a:b].tolist() for a, b in pairwise(offsets.tolist())]
        assert expected == found
        firsts = [each[0] if each else -1 for each in expected]
        assert firsts == order.locate(epoch, samples).tolist()
        assert list(map(len, expected)) == order.count(epoch, samples).tolist()
    if order.group_names:
        assert 1 == pytest.approx(order.group_shares(epoch, 0, len(row)).sum())


LENGTHS = [1 + i * i * 37 % 90 for i in range(300)]
FIRST, SECOND, THIRD = [1.0] * 10, [0.0, *range(1, 10)], [0.5] * 9 + [2.0]
FIELDS: dict[str, Any] = {"epoch_size": 30, "seed": 5, "max_repeats": 9}
HARMONIC = [1 / (i + 1) for i in range(50)]
WINDOWS = ip.DocumentWindows([5, 1, 1, 30, 2, 8, 1, 4, 4, 9, 3], 6, block_size=4, seed=1)
LOCAL = ip.LocalShuffle(40, 7, seed=1)
BY_LENGTH = ip.LengthGrouped(LENGTHS, 4, num_buckets=9, seed=3)
BY_TOKENS = ip.TokenBudget(LENGTHS, 200, max_samples=12, multiple_of=4, num_buckets=9, seed=3)
BY_GROUP = ip.Grouped([n % 7 * 5 for n in LENGTHS], {5 * i: 1 + i for i in range(9)}, seed=3)
PART = ip.Split(40, {"train": 0.75, "val": 0.25}, seed=1)["train"]
AWKWARD: list[ip.Order] = [
    # layers, shorter and longer than what is inside
    ip.Epochs(ip.Shuffle(30, seed=1), 7),
    ip.Epochs(ip.Shuffle(7, seed=1), 30),
    ip.Epochs(Bins(20), 5),
    ip.Repeat(ip.Shuffle(30, seed=1), 3, 12),
    ip.Subset(ip.Shuffle(5, seed=1), [3, 1, 4, 1, 5], 9),
    ip.Subset(ip.Epochs(ip.Shuffle(5, seed=1), 9), range(20, 0, -4), 21),
    ip.Repeat(ip.Epochs(ip.Subset(ip.BlockShuffle(6, 2), np.arange(12) % 2 == 1, 12), 4), 2),
    ip.Subset(LOCAL, np.argsort(np.arange(40) * 7 % 40), 40),
    ip.Epochs(LOCAL, 30),
    # bins of one sample, of all samples, and of many sizes
    BY_LENGTH,
    BY_TOKENS,
    BY_GROUP,
    ip.Packed(LENGTHS, 200, max_samples=7, min_stratum=6, seed=3),
    ip.LengthGrouped([5], 3),
    ip.TokenBudget([7] * 40, 21, num_buckets=65536),
    ip.Grouped(np.arange(60) % 31, 1),
    ip.Packed([5], 5),
    ip.Packed(LENGTHS, 90),
    ip.Packed([7] * 40, 10**6, max_samples=3),
    ip.Epochs(BY_LENGTH, 50),
    ip.Repeat(BY_TOKENS, 2, 8),
    ip.Epochs(ip.Subset(BY_GROUP, range(300, 600), 600), 31),
    # weights that change, a giant one, and a limit
    ip.Weighted(HARMONIC, 70, seed=3),
    ip.Weighted([(0, FIRST), (1, SECOND), (2**31, THIRD)], **FIELDS),
    ip.Weighted(HARMONIC, 20, seed=3, max_repeats=1),
    ip.Weighted(HARMONIC, seed=3, max_repeats=1),
    ip.Weighted([1.0, *[1e-6] * 6000], 9000, seed=3),
    ip.Epochs(ip.Weighted(SECOND, **FIELDS), 7),
    ip.Epochs(ip.Weighted([(0, FIRST), (2, SECOND)], **FIELDS), 50),
    ip.Repeat(ip.Weighted(SECOND, **FIELDS), 2, 8),
    ip.Subset(ip.Weighted(SECOND, **FIELDS), range(90, 100), 100),
    ip.Mixture({"a": ip.Weighted(SECOND, **FIELDS), "b": ip.Shuffle(9)}, {"a": 2, "b": 1}),
    # classes, also of weight 0, too short for a batch, or few
    ip.ClassBalanced(LABELS, seed=2),
    ip.ClassBalanced(LABELS, 500, [1, 2, 0, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]),
    ip.ClassBatches([i % 7 for i in range(60)], 3, 4),
    ip.ClassBatches(LABELS, 5, 8, 20, short="repeat"),
    ip.ClassBatches(LABELS, 5, 12, 20, short="leave_out"),
    ip.Epochs(ip.ClassBalanced(LABELS, 90), 40),
    ip.Repeat(ip.ClassBatches([0, 1, 2] * 20, 2, 4, 6), 2),
    ip.Subset(ip.ClassBalanced([0, 0, 0, 1], 6), [3, 5, 6, 8], 10),
    ip.Mixture({"a": ip.ClassBalanced([0, 0, 0, 1], 6), "b": ip.Shuffle(9)}, {"a": 1, "b": 2}),
    # windows: of one, of overlaps longer than they are, of documents under layers
    ip.TokenWindows(400, 7, seed=1),
    ip.TokenWindows(99, 9, overlap=40, shift=False),
    ip.TokenWindows(30, 20),
    ip.Epochs(ip.TokenWindows(400, 7, overlap=0), 30),
    ip.Repeat(ip.TokenWindows(60, 4), 2),
    ip.Mixture(
        {"web": ip.TokenWindows(300, 6), "code": ip.TokenWindows(90, 6, seed=2)},
        {"web": 0.7, "code": 0.3},
    ),
    WINDOWS,
    *test_document_windows.over(WINDOWS).values(),
    # shards: one, empty ones, more lanes than shards
    ip.ShardShuffle([1]),
    ip.ShardShuffle([0, 5, 0], lanes=9, sticky=True),
    ip.ShardShuffle(range(40), lanes=8, stripe=32, grid="stream", seed=2**128 - 1),
    ip.ShardShuffle(range(40), lanes=8, stripe=32, window=3, sticky=True),
    ip.Epochs(ip.ShardShuffle(range(20), lanes=4, stripe=16), 300),
    # mixtures, of bins and of mixtures
    ip.Mixture({"a": ip.Shuffle(30), "b": ip.BlockShuffle(7, 3)}, {"a": 0.7, "b": 0.3}),
    ip.Mixture(
        {"a": Bins(20), "b": ip.Shuffle(9)}, [(0, {"a": 1, "b": 1}), (30, {"a": 1, "b": 0})]
    ),
    ip.Epochs(ip.Mixture({"a": ip.Shuffle(30), "b": ip.Shuffle(8)}, {"a": 2, "b": 1}), 25),
    ip.Subset(ip.Mixture({"a": ip.Shuffle(5)}, {"a": 1}, epoch_size=9), [9, 8, 7, 3, 1], 12),
    ip.Mixture(
        {
            "inner": ip.Mixture({"a": ip.Shuffle(9), "b": ip.Shuffle(3)}, {"a": 2, "b": 1}, seed=1),
            "part": ip.Split(12, {"x": 1, "y": 2})["y"],
            "listed": ip.Repeat(ip.Subset(ip.Shuffle(4), [3, 1, 3, 0], 5), 2),
        },
        {"inner": 2, "part": 1, "listed": 1},
    ),
    # mixtures that grew, of samples, bins and shards
    GROWN,
    ip.Epochs(GROWN, 70),
    ip.Mixture({"a": ip.TokenBudget([3, 9, 4] * 9, 20)}, {"a": 1}, seed=1).with_phase(
        7, {"a": 1, "b": 2}, sources={"b": ip.TokenBudget([5, 2] * 7, 20)}
    ),
    ip.Mixture({"old": ip.ShardShuffle([20, 30, 10])}, {"old": 1}, seed=1).with_phase(
        70, {"old": 3, "new": 2}, sources={"new": ip.ShardShuffle([9, 8])}
    ),
    # parts of a split, of groups, and shuffled
    PART,
    ip.Split(40, {"train": 0.75, "val": 0.25}, groups=[i // 3 for i in range(40)])["val"],
    ip.Subset(ip.Shuffle(len(PART), seed=2), PART, num_samples=40),
    # global batches of other labels, and of one group
    ip.Distinct(range(20), 20),
    ip.Distinct([0] * 9, 1),
    *map(ip.Flat, INSIDE.values()),
]


@pytest.mark.parametrize(
    "order", [*every_order().values(), *AWKWARD], ids=lambda order: order.algorithm
)
def test_the_kit(order: ip.Order) -> None:
    """Everything that plans, files and resuming rely on, alone and under layers."""
    assert check_order(order, fresh_process=False).ok


SEVERAL = {
    **every_order(),
    "a mixture that grew": GROWN,
    "weights that change": ip.Weighted([(0, FIRST), (1, SECOND), (3, THIRD)], **FIELDS),
    "several in one": ip.Epochs(
        ip.Mixture(
            {
                "rare": ip.Weighted([1, 5, 2, 9], epoch_size=30),
                "web": ip.BlockShuffle(50, 5, 2),
                "pairs": ip.ClassBatches([0, 0, 1, 1, 2, 2, 2], classes=2, per_class=2),
            },
            {"rare": 0.3, "web": 0.5, "pairs": 0.2},
        ),
        40,
    ),
}


@pytest.mark.parametrize("name", SEVERAL)
def test_a_plan_directory(name: str, tmp_path: Path) -> None:
    """It holds the columns and all else, and answers for epochs stored and not stored."""
    order = SEVERAL[name]
    remainder: Any = "carry" if order.constant_num_units else "spread"
    plan = ip.Plan(order, world_size=3, batch_size=(2, 2), sub_epochs=2, remainder=remainder)
    ip.save(plan, tmp_path / "a.plan", epochs=range(1, 3), units_per_chunk=11)
    stored = ip.load(tmp_path / "a.plan")
    assert ip.verify(stored).ok
    assert (plan, order.traits) == (stored, stored.order.traits)
    names = (stored.order.group_names, stored.order.columns.keys())
    assert (order.group_names, order.columns.keys()) == names
    for epoch in range(4):
        assert plan.account(epoch) == stored.account(epoch)
        assert units_of(order, epoch) == units_of(stored.order, epoch)
        for sub_epoch in range(2):
            for rank in range(3):
                expected = plan.indices(epoch, sub_epoch, rank=rank)
                assert np.array_equal(expected, stored.indices(epoch, sub_epoch, rank=rank))
    if order.group_names:
        assert ip.draws(plan).to_dict() == ip.draws(stored).to_dict()
    columns = tmp_path / "a.plan" / "columns"
    kept = {path.stem for path in columns.iterdir()} if order.columns else set()
    assert kept == set(order.columns)
    again = ip.Plan.from_json(plan.to_json(), columns=columns if kept else None)
    assert units_of(order, 1) == units_of(again.order, 1)


def text_of(value: Any, folder: Path) -> str:
    """Return a value as Python writes it, with columns as the paths of their files."""
    if isinstance(value, ip.Column):
        path = folder / f"{value.identity['sha256']}.npy"
        np.save(path, value.array)
        return repr(str(path))
    if isinstance(value, ip.Order):
        given = [
            f"{each.name}={text_of(getattr(value, each.name), folder)}" for each in fields(value)
        ]
        return f"{type(value).__name__}({', '.join(given)})"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{k!r}: {text_of(v, folder)}' for k, v in value.items())}}}"
    if isinstance(value, tuple | list):
        return f"[{', '.join(text_of(each, folder) for each in value)}]"
    return repr(value)


@pytest.mark.parametrize("name", SEVERAL)
def test_in_the_text_of_a_command(name: str, tmp_path: Path) -> None:
    """Python's words for an order make it again; they name the files of its columns."""
    assert SEVERAL[name] == order_as_written(text_of(SEVERAL[name], tmp_path))
