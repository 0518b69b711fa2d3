"""Balance: what each rank reads of a step is what plain integers say; the rest is as without it."""

from __future__ import annotations

import json
import pickle
import zlib
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import indexplan as ip
from indexplan.plan import layout as module
from indexplan.plan.plan import columns_of
from tests.golden.plans import numbers
from tests.support import balance_oracle, model
from tests.support.bins import Bins, ChangingBins, Drawn
from tests.support.examples import examples
from tests.support.micro import micro_batches, nested_bins
from tests.support.planned import replaced
from tests.support.strategies import (
    balanced_plans,
    epochs_of,
    nums_samples,
    some_ranks,
    sub_epochs_of,
)

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "balance_v1.json").read_text())["cases"]
KINDS = (ip.Sequential, ip.Shuffle, Bins, ChangingBins, Drawn)
ORDERS = st.builds(lambda kind, n: kind(n), st.sampled_from(KINDS), nums_samples)


def without(plan: ip.Plan) -> ip.Plan:
    """Return the plan without its balance."""
    changed = plan.replace(balance=None)
    return changed if plan._resumed is None else changed.resume(plan.start)


def units_of(order: ip.Order, epoch: int) -> list[list[int]]:
    """Return the samples of each unit of an epoch."""
    num = order.num_units(epoch)
    samples, offsets = order.take(epoch, 0, num), order.offsets(epoch, 0, num)
    return [part.tolist() for part in np.split(samples, offsets[1:-1])]


def nested(batch: Any) -> Any:
    """Return arrays in lists as lists in lists."""
    return [nested(each) for each in batch] if isinstance(batch, list) else batch.tolist()


def flat(batch: list[list[int]]) -> list[int]:
    """Return the samples of some units."""
    return [sample for unit in batch for sample in unit]


@examples(40)
@given(balanced_plans(ORDERS))
def test_every_batch_is_what_plain_integers_say(plan: ip.Plan) -> None:
    """Batches, inner batches, bins and offsets are those of the oracle, one by one and in bulk."""
    lengths, epochs = plan.balance.lengths.array.tolist(), {}
    for epoch, sub_epoch, first, _, steps in model.walk(model.run_of(plan), epochs_of(plan)):
        ranks, pair = some_ranks(plan.world_size), (epoch, sub_epoch)
        drawn = {rank: list(plan.batches(*pair, rank=rank, units=True)) for rank in ranks}
        bulk = {rank: [batch.bins for batch in each] for rank, each in drawn.items()}
        parts = {rank: [nested_bins(batch) for batch in each] for rank, each in drawn.items()}
        streams = {rank: list(plan.batches(*pair, rank=rank)) for rank in ranks}
        for step in steps:
            units = []
            for slot in step.slots:
                if slot.epoch not in epochs:
                    epochs[slot.epoch] = units_of(plan.order, slot.epoch)
                units.append(epochs[slot.epoch][slot.position])
            cost_of = {
                place: balance_oracle.cost_of(plan.balance, [lengths[i] for i in units[place]])
                for place, slot in enumerate(step.slots)
                if not slot.padded
            }
            counts = plan._layout.phases[step.phase].inner_counts
            held = balance_oracle.balanced(step, counts, cost_of)
            for rank in ranks:
                batch = [units[place] for place in held[rank]]
                where = {"step": step.number, "rank": rank}
                assert flat(batch) == plan.batch(epoch, sub_epoch, **where).tolist()
                ends = plan.units(epoch, sub_epoch, **where).offsets.tolist()
                assert np.cumsum([0, *map(len, batch)]).tolist() == ends
                inner = model.nest(batch, counts or (1,))
                assert inner == nested(parts[rank][step.number - first])
                if not plan.order.deals_bins:
                    found = nested(micro_batches(plan.units(epoch, sub_epoch, **where)))
                    assert found == nested(flattened(inner, len(counts or (1,))))
                assert batch == nested(bulk[rank][step.number - first])
                assert flat(batch) == streams[rank][step.number - first].tolist()


def flattened(inner: Any, depth: int) -> Any:
    """Return nested batches of units of one sample as arrays of samples."""
    if depth:
        return [flattened(part, depth - 1) for part in inner]
    return np.array(flat(inner), np.int64)


@examples(40)
@given(balanced_plans(ORDERS), st.data())
def test_steps_counts_and_cursors_are_those_without_balance(
    plan: ip.Plan, data: st.DataObject
) -> None:
    """A step reads the same units, every rank as many of them; so cursors are the same."""
    other = without(plan)
    for pair in sub_epochs_of(plan):
        assert other.account(*pair) == plan.account(*pair)
        assert other.steps(*pair) == plan.steps(*pair)
        ranks = range(plan.world_size)
        for rank in some_ranks(plan.world_size):
            expected, sizes = (each.batch_sizes(*pair, rank=rank) for each in (other, plan))
            assert expected.tolist() == sizes.tolist()
        drawn = [[each.batches(*pair, rank=rank) for rank in ranks] for each in (other, plan)]
        for step in plan.steps(*pair):
            sets = [sorted(np.concatenate([*map(next, each)]).tolist()) for each in drawn]
            assert sets[0] == sets[1]
            assert other.cursor(*pair, step=step) == plan.cursor(*pair, step=step)
        if steps := plan.steps(*pair):
            step, rank = data.draw(st.sampled_from(steps)), data.draw(st.sampled_from(ranks))
            valid = [each.units(*pair, step=step, rank=rank).num_valid for each in (other, plan)]
            assert valid[0] == valid[1]


def test_a_rank_whose_units_are_as_many_as_its_steps() -> None:
    """Two units in the first step and none in the second are drawn as that, not one in each."""
    sizes = [ip.Phase(0, 4), ip.Phase(4, 1)]
    balance = ip.Balance([1, 2, 3, 4, 5])
    plan = ip.Plan(ip.Sequential(5), world_size=2, global_batch_size=sizes, balance=balance)
    by_rank = [[batch.tolist() for batch in plan.batches(0, rank=rank)] for rank in range(2)]
    assert [[[0, 3], [4]], [[1, 2], []]] == by_rank
    assert by_rank[1] == [plan.batch(0, step=step, rank=1).tolist() for step in range(2)]


@examples(40)
@given(balanced_plans(st.builds(lambda kind, n: kind(n), st.sampled_from(KINDS[:4]), nums_samples)))
def test_locate_is_the_inverse_of_batch(plan: ip.Plan) -> None:
    """The step, rank and slot that locate names reads the sample there, and all are named so."""
    for epoch in range(epochs_of(plan)):
        samples = np.arange(plan.order.num_samples)
        where, other = plan.locate(samples, epoch), without(plan).locate(samples, epoch)
        assert other.step.tolist() == where.step.tolist()
        for sample in samples[where.step >= 0].tolist():
            found = plan.locate(sample, epoch)
            assert found == tuple(part[sample] for part in where)
            place = {"step": found.step, "rank": found.rank}
            batch = plan.batch(found.epoch, found.sub_epoch, **place)
            ends = plan.units(found.epoch, found.sub_epoch, **place).offsets
            assert sample in batch[ends[found.slot] : ends[found.slot + 1]].tolist()
            assert found.slot < plan.units(found.epoch, found.sub_epoch, **place).num_valid


@examples(25)
@given(balanced_plans(st.builds(Drawn, nums_samples), "spread"))
def test_all_reads_of_repeated_samples_are_found(plan: ip.Plan) -> None:
    """Of an order that repeats samples, the reads are those that batches show."""
    for epoch in range(epochs_of(plan)):
        shown: dict[int, list[tuple[int, ...]]] = {}
        for sub_epoch in range(plan.sub_epochs):
            if plan._resumed is not None and (epoch, sub_epoch) < plan._resumed[:2]:
                continue
            for rank in range(plan.world_size):
                first = plan.steps(epoch, sub_epoch).start
                for step, batch in enumerate(plan.batches(epoch, sub_epoch, rank=rank), first):
                    for slot, sample in enumerate(batch.tolist()):
                        read = (epoch, sub_epoch, step, rank, slot)
                        shown.setdefault(sample, []).append(read)
        every, offsets = plan.locate_all(np.arange(plan.order.num_samples), epoch)
        reads = list(zip(*(part.tolist() for part in every), strict=True))
        for sample, (low, high) in enumerate(pairwise(offsets)):
            assert sorted(shown.get(sample, [])) == sorted(reads[low:high])


@given(st.lists(st.integers(1, 60), min_size=1, max_size=90), st.integers(60, 200), st.data())
def test_bins_that_know_their_costs_agree_with_their_samples(
    lengths: list[int], most: int, data: st.DataObject
) -> None:
    """Packed draws no samples to tell what bins cost; by lengths of another column it does."""
    least, seed = data.draw(st.sampled_from([1, 4])), data.draw(st.integers(0, 9))
    order = ip.Packed(lengths, most, min_stratum=least, seed=seed)
    every = np.array([0]), np.array([order.num_units(1)])
    for row in (lengths, [length + 1 for length in lengths], [1 for _ in lengths]):
        for weights in ({}, {"linear": 3, "quadratic": 2}):
            balance = ip.Balance(row, **weights)
            expected = [
                balance_oracle.cost_of(balance, [row[i] for i in unit])
                for unit in units_of(order, 1)
            ]
            found = order.ip_costs(1, *every, balance.lengths, balance.cost)
            assert expected == found.tolist()


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: case["fingerprint"])
def test_known_answers(case: dict[str, Any]) -> None:
    """The batches are those of the first version, which plain Python once wrote down."""
    fields = {**case["fields"]}
    for name in ("batch_size", "global_batch_size"):
        if isinstance(fields.get(name), list):
            fields[name] = tuple(fields[name])
    lengths = numbers(case["lengths"])
    balance = ip.Balance(lengths, **case["weights"])
    plan = ip.Plan(ip.Sequential(len(lengths)), **fields, balance=balance)
    assert case["fingerprint"] == plan.fingerprint[:16]
    steps = [
        [plan.batch(0, part, step=step, rank=rank).tolist() for rank in range(plan.world_size)]
        for part in range(plan.sub_epochs)
        for step in range(plan.steps(0, part).stop)
    ]
    assert case["num_steps"] == len(steps)
    assert [case["first_step"], case["last_step"]] == [steps[0], steps[-1]]
    row = np.array([sample for step in steps for batch in step for sample in batch], "<i8")
    assert case["crc32"] == zlib.crc32(row.tobytes())


@given(balanced_plans(st.builds(ip.Shuffle, nums_samples)))
def test_a_plan_is_itself_again_from_json_and_pickles(plan: ip.Plan) -> None:
    """JSON has the lengths by their sha256; another balance is another plan."""
    plan = plan.replace(remainder=plan.remainder)  # not resumed
    again = ip.Plan.from_json(plan.to_json(), columns=columns_of(plan).values())
    for each in (again, pickle.loads(pickle.dumps(plan))):  # noqa: S301 (our own)
        assert (plan, plan.fingerprint) == (each, each.fingerprint)
        assert hash(plan) == hash(each)
    numbers = {"linear": plan.balance.linear + 1, "quadratic": plan.balance.quadratic}
    for other in (None, ip.Balance(plan.balance.lengths, **numbers)):
        changed = plan.replace(balance=other)
        assert plan != changed
        assert plan.fingerprint != changed.fingerprint
    assert "balance" not in json.loads(plan.replace(balance=None).to_json())
    assert plan.balance == replaced(plan, world_size=3).balance


@pytest.mark.parametrize("remainder", ["spread", "pad"])
@pytest.mark.parametrize(
    ("world_size", "size"), [(2**31 - 1, 10), (2**31 - 1, 2**40), (2**20, (2**20, 2**20)), (3, 70)]
)
def test_far_more_ranks_and_slots_than_units(remainder: str, world_size: int, size: Any) -> None:
    """Balance costs what there is, be there billions of ranks, inner batches or padded slots."""
    lengths = [1 + 7 * i % 20 for i in range(60)]
    fields = {"world_size": world_size, "global_batch_size": size, "remainder": remainder}
    plan = ip.Plan(ip.Shuffle(60, seed=3), **fields, balance=ip.Balance(lengths))
    where, before = plan.locate(np.arange(60), 0), without(plan).locate(np.arange(60), 0)
    assert before.step.tolist() == where.step.tolist()
    assert sorted(zip(before.step, before.rank, before.slot, strict=True)) == sorted(
        zip(where.step, where.rank, where.slot, strict=True)
    )
    if world_size > 3:
        for sample in range(0, 60, 7):
            step, rank, slot = (int(part[sample]) for part in where[2:])
            assert sample == plan.batch(0, step=step, rank=rank)[slot]


def test_verify_notices_a_balance_that_loses_units(monkeypatch: pytest.MonkeyPatch) -> None:
    """Were a unit dealt twice, and another not at all, `verify` would say so, and where."""
    balance = ip.Balance([1 + 7 * i % 20 for i in range(60)])
    plan = ip.Plan(ip.Shuffle(60, seed=3), world_size=4, batch_size=3, balance=balance)
    assert ip.verify(plan).ok

    def losing(costs: np.ndarray, cells: Any) -> np.ndarray:
        units = balanced(costs, cells)
        units[1] = units[0]
        return units

    balanced = module.balanced
    monkeypatch.setattr(module, "balanced", losing)
    plan = plan.replace(balance=ip.Balance(balance.lengths))  # which keeps no answers
    report = ip.verify(plan)
    assert not report.ok
    assert "epoch 0, sub-epoch 0, step 2: rank" in str(report)
    assert "is not found again" in str(report)


@pytest.mark.parametrize("size", [32, (4, 8)])
def test_work_is_more_even_on_average(size: Any) -> None:
    """The slowest of 8 ranks, and in each inner batch, comes within 4% of the mean, on average.

    Without balance it was 25% off, of inner batches twice as much; one step may fare worse with it.
    """
    lengths = np.random.default_rng(0).lognormal(5.5, 1, 8192).clip(1, 2048).astype(int)
    plan = ip.Plan(ip.Shuffle(8192), world_size=8, batch_size=size)
    ratios = []
    for each in (plan, plan.replace(balance=ip.Balance(lengths))):
        work = np.array(
            [
                [
                    [
                        lengths[part].sum()
                        for part in micro_batches(each.units(0, step=step, rank=rank))
                    ]
                    for rank in range(8)
                ]
                for step in range(each.steps(0).stop)
            ]
        )  # steps, ranks, inner batches
        slowest = work.max(axis=1).sum(axis=1)
        ratios.append((8 * slowest / work.sum(axis=(1, 2))).mean())
    before, after = ratios
    assert before > (1.2 if size == 32 else 1.5)
    assert after < 1.04
