"""Orders of every kind are to plans, runs, files, pickles and commands what any order is."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import indexplan as ip
from indexplan.cli.written import order_as_written
from indexplan.testing import check_order
from tests.laws.promises import EPOCHS, read
from tests.orders import test_shard_shuffle
from tests.orders.test_batched import INSIDE
from tests.orders.test_classes import balanced, batches
from tests.orders.test_mixture import GROWN
from tests.orders.test_weighted import specs
from tests.orders.test_weighted_plans import FIELDS, FIRST, SECOND, THIRD
from tests.orders.test_windows import documents, order_of, tokens_of, windows
from tests.support.every_order import every_order
from tests.support.examples import examples
from tests.support.lengths import binned
from tests.support.listed import Listed
from tests.support.nested import MIXTURES, NESTED, layers, over
from tests.support.reweighted import reweighted
from tests.support.strategies import plans, seeds
from tests.support.units import units_of


@st.composite
def weights(draw: st.DrawFn) -> ip.Weighted:
    """Draw an order whose weights may change once or twice."""
    spec = draw(specs(12))
    order = ip.Weighted(**spec)
    for epoch in draw(st.lists(st.integers(1, 3), max_size=2, unique=True).map(sorted)):
        order = reweighted(order, epoch, draw(st.permutations(spec["weights"])))
    return order


DOCUMENTS = documents().map(order_of)
KINDS: dict[str, st.SearchStrategy[Any]] = {
    "bins": binned(20),
    "bins in layers": over(binned(20)),
    "classes": balanced().filter(lambda order: order.num_units(0) <= 90) | batches(),
    "documents": DOCUMENTS,
    "documents in layers": layers(DOCUMENTS),
    "local shuffles": st.builds(ip.LocalShuffle, st.integers(1, 60), st.integers(1, 9), seeds),
    "mixtures": MIXTURES,
    "nested": NESTED,
    "shards": test_shard_shuffle.drawn(12, 8),
    "tokens": windows(most=30).map(tokens_of),
    "weights": weights(),
    "weights in layers": over(weights()),
}


@pytest.mark.parametrize("kind", KINDS)
@examples(20)
@given(st.data())
def test_plans_keep_the_laws(kind: str, data: st.DataObject) -> None:
    """Fresh and resumed, under all remainders and schedules; and from JSON with its columns."""
    plan = data.draw(plans(KINDS[kind]))
    assert ip.verify(plan, [plan.start.epoch, plan.start.epoch + 1]).ok
    again = ip.Plan.from_json(plan.to_json(), columns=list(plan.order.columns.values()))
    assert (again, again.fingerprint) == (plan, plan.fingerprint)


@pytest.mark.parametrize("kind", KINDS)
@examples(20)
@given(st.data())
def test_a_run_reads_the_order(kind: str, data: st.DataObject) -> None:
    """Six epochs, stopped in each and continued on other ranks, are the order's, unit by unit."""
    order = data.draw(KINDS[kind])
    assert [units_of(order, epoch) for epoch in EPOCHS] == read(data.draw, order)


@pytest.mark.parametrize("kind", KINDS)
@examples(10)
@given(st.data())
def test_the_kit(kind: str, data: st.DataObject) -> None:
    """Everything that plans, files and resuming rely on, alone and under layers."""
    order = data.draw(KINDS[kind])
    try:
        assert check_order(order, fresh_process=False).ok
    except ip.IndexPlanError as error:  # of a subset that lists a sample for two sources
        assume("must be in one group only" not in str(error))
        raise


WINDOWS = [
    ip.DocumentWindows([5, 1, 1, 30, 2, 8, 1, 4, 4], 6, block_size=4, seed=i) for i in (1, 2)
]
BUDGETS = [ip.TokenBudget([3, 9, 4] * 9, 20), ip.TokenBudget([5, 2] * 7, 20)]
SHARDS = [ip.ShardShuffle([20, 30, 10]), ip.ShardShuffle([9, 8])]
PARTS = [*ip.Split(40, {"train": 0.75, "val": 0.25}, groups=[i // 3 for i in range(40)]).values()]
MORE: list[ip.Order] = [  # what is not drawn, or seldom
    ip.Subset(ip.Shuffle(5, seed=1), [3, 1, 4, 1, 5], 9),
    GROWN,
    ip.Epochs(GROWN, 70),
    *(
        ip.Mixture({"old": old}, {"old": 1}, seed=1).with_phase(
            7, {"old": 3, "new": 2}, sources={"new": new}
        )
        for old, new in (BUDGETS, SHARDS)
    ),
    ip.Mixture(dict(zip("ab", WINDOWS, strict=True)), {"a": 0.6, "b": 0.4}),
    ip.Mixture(
        {"a": ip.TokenWindows(300, 6), "b": ip.TokenWindows(90, 6, seed=2)}, {"a": 7, "b": 3}
    ),
    ip.Epochs(ip.ShardShuffle(range(20), lanes=4, stripe=16), 300),
    *PARTS,
    *(ip.Subset(ip.Shuffle(len(part)), part, num_samples=40) for part in PARTS),
    ip.Weighted([(0, FIRST), (1, SECOND), (2**31, THIRD)], **FIELDS),
    ip.Weighted([1.0, *[1e-6] * 6000], 9000, seed=3),
    ip.Weighted([1 / (i + 1) for i in range(50)], seed=3, max_repeats=1),
    ip.Distinct(range(20), 20),
    ip.Distinct([0] * 9, 1),
    *map(ip.Flat, INSIDE.values()),
    Listed([2**40, 7, 2**40], 2**62, [0.5]),
]


@pytest.mark.parametrize(
    "order", [*every_order().values(), *MORE], ids=lambda order: order.algorithm
)
def test_the_kit_on_each_algorithm(order: ip.Order) -> None:
    """Also on those that are not drawn above; and nothing that is worked out is pickled."""
    before = order.to_dict(), len(pickle.dumps(order))
    assert check_order(order, fresh_process=False).ok
    assert before == (order.to_dict(), len(pickle.dumps(order)))


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
        expected = plan.indices(epoch, 1, rank=2)
        assert np.array_equal(expected, stored.indices(epoch, 1, rank=2))
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
