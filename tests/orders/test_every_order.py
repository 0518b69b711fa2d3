"""Orders of every kind are to plans, runs, files, pickles and commands what any order is."""

from __future__ import annotations

import pickle
from itertools import pairwise, product
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import indexplan as ip
from indexplan.cli.written import order_as_written
from indexplan.testing import check_order
from tests.golden.lines import cases
from tests.golden.orders import ANSWERS, OURS
from tests.orders.test_batched import INSIDE, distinct, grouped, mixed
from tests.orders.test_classes import balanced, batches
from tests.orders.test_mixture import GROWN
from tests.orders.test_protocol import Leaning
from tests.orders.test_shuffles import made, shards
from tests.orders.test_weighted import FIELDS, FIRST, SECOND, THIRD, specs
from tests.orders.test_windows import documents, order_of, tokens_of, windows
from tests.support import plain
from tests.support.bins import ChangingBins
from tests.support.every_order import every_order
from tests.support.examples import examples
from tests.support.lengths import binned
from tests.support.listed import Listed
from tests.support.nested import MIXTURES, NESTED, layers, over
from tests.support.reweighted import reweighted
from tests.support.strategies import orders, plans, seeds
from tests.support.units import units_of


@st.composite
def weights(draw: st.DrawFn) -> ip.Weighted:
    """Draw an order whose weights may change once or twice."""
    spec = draw(specs(12))
    order = ip.Weighted(**spec)
    for epoch in draw(st.lists(st.integers(1, 3), max_size=2, unique=True).map(sorted)):
        order = reweighted(order, epoch, draw(st.permutations(spec["weights"])))
    return order


CHANGING = st.builds(ChangingBins, st.integers(1, 20))  # whose epochs differ in units
DOCUMENTS = documents().map(order_of)
KINDS: dict[str, st.SearchStrategy[Any]] = {
    "bins": binned(20),
    "bins in layers": over(binned(20)),
    "changing bins": CHANGING
    | st.builds(
        lambda o, c, w: ip.Repeat(o, c, c * w), CHANGING, st.integers(1, 3), st.integers(1, 9)
    ),
    "classes": balanced().filter(lambda order: order.num_units(0) <= 90) | batches(),
    "documents": DOCUMENTS,
    "documents in layers": over(DOCUMENTS),
    "local shuffles": st.builds(ip.LocalShuffle, st.integers(1, 60), st.integers(1, 9), seeds),
    "mixtures": MIXTURES,
    "nested": NESTED,
    "ranges, shuffles and blocks": orders(),
    "shards": shards(12, 8).map(made),
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


EPOCHS = range(6)


def read(draw: Any, order: ip.Order) -> list[list[Any]]:
    """Return the units of a run that stops in each of its sub-epochs, and continues elsewhere."""
    remainder = draw(st.sampled_from(["spread", "carry"])) if order.constant_num_units else "spread"
    made: dict[str, Any] = {"remainder": remainder, "sub_epochs": draw(st.integers(1, 3))}
    ranks, sizes = st.integers(1, 4), st.integers(1, 16)
    worlds = [
        ip.Plan(order, world_size=draw(ranks), global_batch_size=draw(sizes), **made)
        for _ in range(2)
    ]
    drawn, cursor = Random(draw(st.integers(0, 99))), worlds[0].start  # noqa: S311 (a test)
    stream: list[list[Any]] = []
    for *where, last in product(EPOCHS, range(made["sub_epochs"]), range(2)):
        if where < [cursor.epoch, cursor.sub_epoch]:  # the last step has read it
            continue
        plan = worlds[last].resume(cursor)
        steps = plan.steps(*where)
        stop = steps.stop if last else drawn.randint(steps.start, steps.stop)
        chosen: dict[str, Any] = {"start_step": steps.start, "stop_step": stop, "units": True}
        by_rank = [plan.batches(*where, rank=rank, **chosen) for rank in range(plan.world_size)]
        batches = [batch for step in zip(*by_rank, strict=True) for batch in step]
        stream += [unit.tolist() for batch in batches for unit in batch.bins]
        cursor = plan.cursor(*where, step=stop)
    return stream


@pytest.mark.parametrize("kind", KINDS)
@examples(20)
@given(st.data())
def test_a_run_reads_the_order(kind: str, data: st.DataObject) -> None:
    """Six epochs, stopped in each and continued on other ranks, are the order's, unit by unit."""
    order = data.draw(KINDS[kind])
    expected = [unit for epoch in EPOCHS for unit in units_of(order, epoch)]
    assert expected == read(data.draw, order)[: len(expected)]


REFUSED = (  # what no samples can be taken out of
    "left with a unit in each epoch",
    "whose samples are what it reads",
    "all of which cut samples, or none",
    "the same number of units in every epoch",
)


def around(draw: Any, inside: ip.Order) -> Any:
    """Draw an order, or one without some of its samples, by itself or with a layer over it."""
    if draw(st.integers(0, 3)) == 1:
        gone = draw(st.sets(st.integers(0, inside.num_samples - 1), min_size=1, max_size=3))
        inside = ip.Without(inside, sorted(gone), cut=draw(st.sampled_from(["piece", "unit"])))
    return draw(layers(st.just(inside))) if draw(st.booleans()) else inside


@pytest.mark.parametrize("kind", [*KINDS, "global batches"])
@examples(60)
@given(st.data())
def test_units_are_the_oracles(kind: str, data: st.DataObject) -> None:
    """All of an epoch, and where it is read: by itself or in a layer.

    Of an epoch far off too, if none are walked up to it.
    """
    try:
        if kind == "global batches":
            order: ip.Order = data.draw(grouped() | mixed() | distinct())
        else:
            order = around(data.draw, data.draw(KINDS[kind]))
        walked = isinstance(order, ip.Layer | ip.Mixture)
        epoch = data.draw(st.sampled_from([0, 1, 2, 7, *([] if walked else [2**31, 2**32 - 1])]))
        row = units_of(order, epoch)
    except ip.IndexPlanError as error:  # of some layers, in the epoch that has no unit left
        assume(not any(rule in error.rule for rule in REFUSED))
        raise
    assert plain.units(order, epoch) == row
    places: list[list[int]] = [[] for _ in range(order.num_samples)]
    for position, unit in enumerate(row):
        for each in unit:
            places[each[0] if isinstance(each, list) else each].append(position)
    found, offsets = order.locate_all(epoch, np.arange(order.num_samples))
    assert places == [found[low:high].tolist() for low, high in pairwise(offsets.tolist())]


@pytest.mark.parametrize("name", every_order())
def test_each_kind_has_an_oracle(name: str) -> None:
    """But for parts of a split, which tests/orders/test_split.py compares with theirs."""
    order = every_order()[name]
    assert type(order) in plain.ORACLES or name.startswith("split")
    assert plain.units(order, 1) == units_of(order, 1)


LARGE = st.integers(1, 60) | st.integers(4000, 9000) | st.integers(1, 2**63 - 1)
HUGE: dict[str, st.SearchStrategy[Any]] = {
    "local shuffles": st.builds(
        ip.LocalShuffle,
        LARGE,
        st.integers(1, 9) | st.integers(500, 5000) | st.integers(1, 2**63 - 1),
        seeds,
    ),
    "tokens": windows(2**61).map(tokens_of),
}


@pytest.mark.parametrize("kind", HUGE)
@given(st.data())
def test_huge_ones_are_the_oracles(kind: str, data: st.DataObject) -> None:
    """Any places, and those where windows end, are read as the oracle says, and found again."""
    order, epoch = data.draw(HUGE[kind]), data.draw(st.integers(0, 2**32 - 1))
    num, window = order.num_units(epoch), getattr(order, "window", 1)
    edge = st.integers(0, (num - 1) // window).map(lambda v: max(0, v * window - 3))
    starts = data.draw(st.lists(edge | st.integers(0, num - 1), max_size=4))
    stops = [data.draw(st.integers(start, min(num, start + 9))) for start in starts]
    places = [at for low, high in zip(starts, stops, strict=True) for at in range(low, high)]
    read = order.take(epoch, starts, stops).tolist()
    assert sum(plain.units(order, epoch, places), []) == read
    assert places == order.locate(epoch, read).tolist()


@pytest.mark.parametrize("name", ANSWERS)
def test_known_answers(name: str) -> None:
    """Bits that never change, which `tests.golden.make` writes by the oracles alone."""
    for case in cases(name):
        assert case == {**case, **ANSWERS[name](case, OURS)}


@pytest.mark.parametrize("kind", KINDS)
@examples(10)
@given(st.data())
def test_the_kit(kind: str, data: st.DataObject) -> None:
    """Everything that plans, files and resuming rely on, alone and under layers."""
    order = data.draw(KINDS[kind])
    epochs = data.draw(st.sampled_from([[0], [1, 2], [0, 2**32 - 1]]))
    try:
        assert check_order(order, epochs=epochs, fresh_process=False).ok
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
    *(  # of the largest sizes, lanes and stripes
        ip.ShardShuffle(sizes, lanes=lanes, stripe=stripe, sticky=i % 2 > 0, grid=grid)
        for grid in ("epoch", "stream")
        for i, (sizes, lanes, stripe) in enumerate(
            [
                ([2**61, 0, 2**62 - 5, 17], 2**32 - 1, 2**32 - 1),
                ([2**62, 2**40], 3, 3 * 2**59),
                ([5, 7, 11], 2**32 - 1, 2**30 * (2**32 - 1)),
            ],
            start=grid == "stream",
        )
    ),
    *PARTS,
    *(ip.Subset(ip.Shuffle(len(part)), part, num_samples=40) for part in PARTS),
    ip.Weighted([(0, FIRST), (1, SECOND), (2**31, THIRD)], **FIELDS),
    ip.Weighted([1.0, *[1e-6] * 6000], 9000, seed=3),
    ip.Weighted([1 / (i + 1) for i in range(50)], seed=3, max_repeats=1),
    ip.Distinct(range(20), 20),
    ip.Distinct([0] * 9, 1),
    *map(ip.Flat, INSIDE.values()),
    Leaning(8),
    Listed([2**40, 7, 2**40], 2**62, [0.5]),
]


@pytest.mark.parametrize(
    "order", [*every_order().values(), *MORE], ids=lambda order: order.algorithm
)
def test_the_kit_on_each_algorithm(order: ip.Order) -> None:
    """Also on those that are not drawn above; and nothing that is worked out is pickled."""
    before = order.to_dict(), len(pickle.dumps(order))
    if any(order is each for each in MORE):
        epochs = [0, 1, 2**31]
    elif isinstance(order, ip.Layer | ip.Mixture | ip.Distinct | ip.ShardShuffle):
        epochs = [0, 1, 2, 2**31, 2**32 - 1]  # more than they keep
    else:
        epochs = [1]
    assert check_order(order, epochs=epochs, fresh_process=False).ok
    assert before == (order.to_dict(), len(pickle.dumps(order)))


@pytest.mark.parametrize("name", every_order())
def test_what_a_run_may_not_change(name: str) -> None:
    """Another number among an order's fields, or another kind of order, is another run."""
    order, other = every_order()[name], ip.Subset(ip.Shuffle(2), [1, 0], 3)
    saved = order.to_dict()
    assert order.continues(saved, 0, 0)
    for field in (field for field, value in saved.items() if type(value) is int):
        assert not order.continues({**saved, field: saved[field] + 1}, 0, 0), field
    assert not order.continues({**saved, "algorithm": "another-v1"}, 0, 0)
    assert not order.continues(other.to_dict(), 0, 0)


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


@pytest.mark.parametrize("name", SEVERAL)
def test_in_the_text_of_a_command(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python's words for an order make it again; they name the files of its columns."""

    def saved(column: ip.Column) -> str:
        path = tmp_path / f"{column.identity['sha256']}.npy"
        np.save(path, column.array)
        return repr(str(path))

    monkeypatch.setattr(ip.Column, "__repr__", saved)
    assert SEVERAL[name] == order_as_written(repr(SEVERAL[name]))
