"""OnDevice, and the arithmetic of Shuffle: the package's bits, on any device; here a CPU."""

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

import indexplan as ip
from indexplan.partition.remainders import REMAINDERS
from indexplan_torch import OnDevice, PlanLoader, on_device
from indexplan_torch.networks import num_rounds, num_walks, numbers_of, shuffled, sides
from tests.support import strategies
from tests.support.planned import reading

LARGEST = 2**63 - 1
AT_ONCE = 50  # positions looked at, at each end of an epoch and inside it


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Small tensors are no work for several threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


numbers = st.one_of(
    st.integers(1, 300),
    st.integers(1, 2**20),
    st.integers(0, 62).flatmap(lambda bits: st.integers(2**bits, 2 ** (bits + 1) - 1)),
    st.integers(LARGEST - 3, LARGEST),
)


def found(order: ip.Shuffle, epoch: int, start: int, stop: int) -> list[int]:
    """What the arithmetic returns for some positions."""
    data = torch.tensor(numbers_of(order, epoch))
    return shuffled(torch.arange(start, stop), data, num_walks(order.num_samples)).tolist()


@given(
    n=numbers,
    seed=strategies.seeds,
    epoch=st.one_of(st.integers(0, 3), st.integers(0, 2**32 - 1)),
    data=st.data(),
)
def test_the_same_bits(n: int, seed: int, epoch: int, data: st.DataObject) -> None:
    """At the ends of an epoch, and anywhere inside it."""
    order, num = ip.Shuffle(n, seed), min(AT_ONCE, n)
    for start in {0, data.draw(st.integers(0, n - num)), n - num}:
        expected = order.take(epoch, start, start + num).tolist()
        assert expected == found(order, epoch, start, start + num)


@pytest.mark.parametrize("n", [*range(1, 230), 1025, 4095, 4096, 4097, 65_537])
def test_small_networks_end_all_their_walks(n: int) -> None:
    """The fixed number of turns suffices for each position of a few whole epochs."""
    order = ip.Shuffle(n, seed=11)
    for epoch in range(2):
        assert order.take(epoch, 0, n).tolist() == found(order, epoch, 0, n)


def test_fewer_turns_end_some_walks_outside() -> None:
    """The turns are needed: with one less, some index of 230 small networks is out of range."""
    outside = 0
    for n in range(2, 230):
        if (walks := num_walks(n)) > 1:
            data = torch.tensor(numbers_of(ip.Shuffle(n, seed=11), 0))
            fewer = max(1, walks // 8)
            outside += int((shuffled(torch.arange(n), data, fewer) >= n).sum())
    assert outside > 100


@given(n=numbers)
def test_a_walk_is_hardly_ever_longer(n: int) -> None:
    """A walk from a random point passes so many different points outside with chance < 2**-64."""
    a, b = sides(n)
    assert a * b >= n > (a - 1) ** 2
    assert b % 2 == 0
    outside, chance = a * b - n, Fraction(1)
    for turn in range(num_walks(n)):
        chance *= Fraction(max(0, outside - turn), a * b - turn)
    assert chance < Fraction(1, 2**64) * (1 + Fraction(1, 2**40))  # it is computed in floats
    if n >= 2**20:
        assert num_walks(n) <= 8
    assert len(numbers_of(ip.Shuffle(n), 0)) == 4 + 2 * num_rounds(n)


def test_torch_compile_breaks_no_graph() -> None:
    """The arithmetic is one graph, which serves the other epochs as it is."""
    torch.compiler.reset()
    graphs = []

    def counted(graph: Any, _: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    order = ip.Shuffle(LARGEST, seed=1)  # of few rounds and turns, as tracing takes 3 ms each
    compiled = torch.compile(shuffled, fullgraph=True, backend=counted, dynamic=True)
    for epoch in range(3):
        data = torch.tensor(numbers_of(order, epoch))
        got = compiled(torch.arange(100), data, num_walks(LARGEST)).tolist()
        assert order.take(epoch, 0, 100).tolist() == got
    assert len(graphs) == 1


@st.composite
def small_orders(draw: st.DrawFn) -> ip.Order:
    """Draw one of the orders, of a few samples."""
    n, seed = draw(strategies.nums_samples), draw(strategies.seeds)
    return draw(st.sampled_from([ip.Sequential(n), ip.Shuffle(n, seed)]))


@given(order=small_orders(), ahead=st.integers(1, 50), data=st.data())
def test_reads_as_a_loader_does(order: ip.Order, ahead: int, data: st.DataObject) -> None:
    """Under any plan, stopped anywhere, each goes on from the other's state."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(on_device, "AHEAD", ahead)
        reads_as_a_loader_does(order, data)


def reads_as_a_loader_does(order: ip.Order, data: st.DataObject) -> None:
    """Compare some passes over parts of epochs, on worlds that change."""
    sub_epochs = data.draw(st.integers(1, 3))
    plan = ip.Plan(order, batch_size=data.draw(strategies.sizes(9)), sub_epochs=sub_epochs,
                   remainder=data.draw(strategies.remainders))  # fmt: skip
    state: Any = None
    for _ in range(3):
        world_size = data.draw(st.integers(1, 3))
        ranks: dict[str, Any] = {"rank": data.draw(st.integers(0, world_size - 1))}
        ranks |= {"world_size": world_size, "partial": True}
        theirs = reading(lambda: PlanLoader(range(order.num_samples), plan, **ranks))  # noqa: B023
        ours = OnDevice(plan, torch.arange(order.num_samples), **ranks)
        for loader in (theirs, ours):
            if state is not None:
                reading(lambda: loader.load_state_dict(state))  # noqa: B023
        number = theirs.run.coming
        for each in range(number, number + 2):
            running, _ = reading(theirs.run.running)
            account = reading(lambda: running.account(*divmod(each, sub_epochs)))  # noqa: B023
            assume(account.min_batch_size or not account.num_steps)
        for _ in range(2):
            stop = data.draw(st.integers(0, len(theirs) + 1))
            read: list[list[list[int]]] = [[], []]
            for loader, batches in zip((theirs, ours), read, strict=True):
                for batch in loader:
                    batches.append(batch.tolist())
                    if len(batches) == stop:
                        break
            assert read[0] == read[1]
            assert theirs.state_dict() == ours.state_dict()
            assert (len(theirs), theirs.cursor) == (len(ours), ours.cursor)
        state = data.draw(st.sampled_from([theirs, ours])).state_dict()


def test_many_steps_at_a_time() -> None:
    """Indices are computed some steps ahead, and the steps stay what they are."""
    order, world_size = ip.Shuffle(2**21, seed=9), 3
    plan = ip.Plan(order, batch_size=100_000, world_size=world_size, remainder="carry")
    rows = torch.arange(order.num_samples, dtype=torch.int32)
    loader = OnDevice(plan, rows, rank=2, world_size=world_size)
    batches = [batch.numpy() for epoch in range(2) for batch in loader]
    expected = [batch for epoch in range(2) for batch in plan.batches(epoch, rank=2)]
    assert len(expected) == len(batches) > 12
    for each, batch in zip(expected, batches, strict=True):
        np.testing.assert_array_equal(each, batch)


@pytest.mark.parametrize("n", range(2, 20))
def test_steps_that_leave_their_epoch(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under "carry", with some ranks of the last step wholly in the next epoch, one step a time."""
    monkeypatch.setattr(on_device, "AHEAD", 1)
    plan = ip.Plan(ip.Shuffle(n, seed=1), world_size=3, batch_size=2, remainder="carry")
    for rank in range(3):
        loader = OnDevice(plan, torch.arange(n), rank=rank, world_size=3)
        for epoch in range(3):
            expected = [batch.tolist() for batch in plan.batches(epoch, rank=rank)]
            assert expected == [batch.tolist() for batch in loader]


def test_forms() -> None:
    """A batch has the form of the tensors, and their rows."""
    plan = ip.Plan(ip.Sequential(5), batch_size=3)
    rows = torch.arange(10.0).reshape(5, 2)
    first = next(iter(OnDevice(plan, rows)))
    torch.testing.assert_close(rows[:3], first)
    for pair in ((rows, rows[:, 0]), [rows, rows[:, 0]]):
        found = next(iter(OnDevice(plan, pair)))
        assert isinstance(found, tuple)
        torch.testing.assert_close((rows[:3], rows[:3, 0]), found)
    found = next(iter(OnDevice(plan, {"x": rows})))
    torch.testing.assert_close({"x": rows[:3]}, found)
    assert [rows.tolist()[4], 5] == [OnDevice(plan, rows).dataset[4].tolist(), len(rows)]


def test_again() -> None:
    """Each step may be dealt several times."""
    plan = ip.Plan(ip.Shuffle(8, seed=1), global_batch_size=4)
    loader = OnDevice(plan, torch.arange(8), again=2)
    steps = [
        plan.replace(world_size=1).batch(0, step=step, rank=0).tolist() for step in (0, 0, 1, 1)
    ]
    assert steps == [batch.tolist() for batch in loader]
    assert OnDevice(plan, torch.arange(8), again=2).again == 2
    assert set(REMAINDERS) == {"spread", "drop", "pad", "carry"}
