"""What loaders and samplers ask a dataset for: every form is the plan's, on every rank.

And what `item` is told of each read: against plain lists, and in workers of any kind.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, count, islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from torch.utils.data import DataLoader
from torchdata.stateful_dataloader import StatefulDataLoader

import indexplan as ip
from indexplan_torch import (
    About,
    Piece,
    PlanBatchSampler,
    PlanLoader,
    PlanSampler,
    ShardedDataset,
    open_parquet,
)
from indexplan_torch.items import Form, pieces
from tests.adapters.small import Identity, as_they_are, dealt
from tests.support.bins import Bins, Pieces, bin_orders
from tests.support.examples import examples
from tests.support.nested import layers, mixtures
from tests.support.planned import phase_at
from tests.support.strategies import balanced_plans, fresh_plans, orders, plans, sub_epochs_of
from tests.support.units import units_of

pytestmark = pytest.mark.filterwarnings("ignore:.*set_vital.*")  # of torch, about torchdata

LENGTHS = [1 + i * i % 97 for i in range(103)]
CUT, BALANCE = ip.DocumentWindows(LENGTHS, 50, block_size=8), ip.Balance(LENGTHS, quadratic=1)
ASKED = orders() | bin_orders() | bin_orders(Pieces)


@given(plans(ASKED) | balanced_plans(orders() | bin_orders()))
@example(ip.Plan(CUT, world_size=3, batch_size=3, sub_epochs=2, balance=BALANCE))
@examples(30)
def test_every_form_is_the_plans(plan: ip.Plan) -> None:
    """Fresh, resumed or balanced: lists, arrays, items, inner batches and views, in any loader."""
    size, order = plan.world_size or 1, plan.order
    # partial: a later pass than that of a resume is read too
    ours: dict[str, Any] = {"rank": size - 1, "world_size": size, "partial": True}
    as_is: dict[str, Any] = {"dataset": Identity(order.num_samples), "collate_fn": as_they_are}
    for where in sub_epochs_of(plan)[:2]:
        if not plan.account(*where).min_batch_size:
            continue  # a pass that loaders refuse, or an empty one
        wanted = dealt(plan, where, size - 1)

        def set_to(made: Any, where: Any = where) -> Any:
            made.set_epoch(where[0] * plan.sub_epochs + where[1])
            return made

        def sampler(set_to: Any = set_to, **form: Any) -> Any:
            return set_to(PlanBatchSampler(plan, **ours, **form))

        assert wanted == list(sampler())
        anew = {"batch_size": sampler().batch_size, "drop_last": False}  # as Lightning makes it
        assert wanted == list(PlanBatchSampler(sampler().sampler, **anew))
        assert wanted == list(set_to(PlanLoader(plan=plan, **as_is, **ours)))
        for kind in (DataLoader, StatefulDataLoader):
            assert wanted == list(kind(batch_sampler=sampler(), **as_is))
        flat = [unit for batch in wanted for unit in batch]
        assert flat == list(sampler().sampler)
        assert len(flat) == len(sampler().sampler)
        if plan.remainder != "spread" and isinstance(plan.batch_size, int):  # all batches are full
            singles = set_to(PlanSampler(plan, **ours))
            loader: Any = DataLoader(sampler=singles, batch_size=plan.batch_size, **as_is)
            assert wanted == list(loader)

        arrays = list(sampler(as_array=True))
        units = [unit for batch in arrays for unit in (batch if order.deals_bins else [batch])]
        assert {np.dtype(np.int64)} == {unit.dtype for unit in units}
        rows = [row for unit in units for row in unit.tolist()]
        single = [row for unit in flat for row in unit] if order.deals_bins else flat
        assert single == ([Piece(*row) for row in rows] if order.traits.cuts_samples else rows)
        items = list(sampler(item=lambda index, _: (index,)))
        asked = (
            [[(i,) for i in unit] for unit in flat] if order.deals_bins else [(i,) for i in flat]
        )
        assert asked == [unit for batch in items for unit in batch]
        if order.deals_bins and not order.traits.cuts_samples:
            assert [sum(batch, []) for batch in wanted] == list(sampler(keep_bins=False))
        nests = zip(plan.steps(*where), sampler(nested=True), wanted, strict=True)
        for step, parts, batch in nests:
            for num in (phase_at(plan, *where, step).inner_counts or (1,))[:-1]:
                assert num == len(parts)
                parts = [part for each in parts for part in each]  # noqa: PLW2901 (one level down)
            assert batch == [unit for part in parts for unit in part]


def test_a_mask_may_be_a_tensor() -> None:
    """Weights, labels and lists of samples may be, so a mask that keeps samples is one too."""
    mask = torch.arange(9) % 4 == 1
    assert ip.Subset(ip.Shuffle(2), mask.numpy(), 9) == ip.Subset(ip.Shuffle(2), mask, 9)


# --- what `item` is told

Pairs = list[tuple[int, int]]  # the first sample of each unit, and which copy the unit is


def read_in(order: ip.Order, epoch: int) -> Pairs:
    """Return what an epoch reads, in plain lists."""
    if isinstance(order, ip.Repeat):
        inside, most = read_in(order.order, epoch), copies_in(order.order)
        width = (order.span or order.copies) // order.copies
        return [
            (sample, turn * most + copy)
            for at in range(0, len(inside), width)
            for turn in range(order.copies)
            for sample, copy in inside[at : at + width]
        ]
    if isinstance(order, ip.Epochs):
        first = epoch * order.epoch_size
        return [*islice(read(order.order), first, first + order.epoch_size)]
    if isinstance(order, ip.Without):
        gone = order.samples.array.tolist()
        return [each for each in read_in(order.order, epoch) if each[0] not in gone]
    if isinstance(order, ip.Subset):
        kept = order.indices.array
        return [(int(kept[sample]), copy) for sample, copy in read_in(order.order, epoch)]
    if isinstance(order, ip.Mixture):
        reads = [read(source) for _, source in order.sources]
        begins = np.cumsum([0, *(source.num_samples for _, source in order.sources)])
        firsts = [unit[0] for each in range(epoch + 1) for unit in units_of(order, each)]
        whose = np.searchsorted(begins, firsts, "right") - 1
        pairs = [(int(begins[which]), next(reads[which])) for which in whose]
        return [(begin + sample, copy) for begin, (sample, copy) in pairs][-order.epoch_size :]
    return [(unit[0], 0) for unit in units_of(order, epoch)]


def read(order: ip.Order) -> Iterator[tuple[int, int]]:
    """Read one epoch after another."""
    return chain.from_iterable(read_in(order, epoch) for epoch in count())


def copies_in(order: Any) -> int:
    """Return how many copies of a unit an order reads at most."""
    inside = [order.order] if isinstance(order, ip.Layer) else []
    if isinstance(order, ip.Mixture):
        inside = [source for _, source in order.sources]
    most = max(map(copies_in, inside), default=1)
    return int(order.copies) * most if isinstance(order, ip.Repeat) else most


some = st.sampled_from([ip.Shuffle(9, 2), ip.Shuffle(7, 1), ip.Sequential(12), Bins(12)])
repeats = st.builds(
    lambda order, copies, width: ip.Repeat(order, copies, width and width * copies),
    some,
    st.integers(1, 4),
    st.none() | st.integers(1, 5),
)
AROUND = (
    repeats
    | layers(repeats, ("permutation", "list"))
    | mixtures(repeats | some)
    | repeats.filter(lambda order: not order.deals_bins).map(lambda order: ip.Without(order, [3]))
)


@given(st.data())
def test_copies_are_those_of_plain_lists(data: st.DataObject) -> None:
    """In every layer around and inside, on all ranks, however an epoch is cut into steps."""
    plan = data.draw(fresh_plans(AROUND, "spread"))
    for epoch in range(2):
        found: Pairs = []
        for sub_epoch in range(plan.sub_epochs):
            for step in plan.steps(epoch, sub_epoch):
                for rank in range(plan.world_size or 0):  # ranks share a step in their order
                    batch = plan.units(epoch, sub_epoch, step=step, rank=rank)
                    firsts = [int(unit[0]) for unit in batch.bins]
                    found += zip(firsts, batch.copies.tolist(), strict=True)
                    parts = [part.copies for part in batch.micro_batches]
                    if not any(part.inner_counts for part in batch.micro_batches):
                        assert batch.copies.tolist() == np.concatenate(parts).tolist()
        assert read_in(plan.order, epoch) == found


@given(st.data())
def test_item_is_told_where_the_plan_reads(data: st.DataObject) -> None:
    """Each field is that of `units`, and the place is one that `locate_all` names."""
    order = AROUND | st.just(ip.DocumentWindows([5, 3, 9, 4], 10))
    plan = data.draw(plans(order) | balanced_plans(AROUND))
    form = Form(item=lambda index, about: (index, about), nested=data.draw(st.booleans()))
    epoch, sub_epoch = data.draw(st.sampled_from(sub_epochs_of(plan, 2)))
    rank = data.draw(st.integers(0, (plan.world_size or 1) - 1))
    batches = form.requests(plan, epoch, sub_epoch, rank)
    for step, batch in zip(plan.steps(epoch, sub_epoch), batches, strict=True):
        units = plan.units(epoch, sub_epoch, step=step, rank=rank)
        phase = phase_at(plan, epoch, sub_epoch, step)
        wanted = []
        for slot, unit in enumerate(units.bins):
            rows = unit.tolist() if unit.ndim == 1 else pieces(unit)
            copy = int(units.copies[slot])
            where = (epoch, sub_epoch, step, rank, slot)
            wanted += [(row, About(*where, copy, phase)) for row in rows]
            if slot < units.num_valid and plan.remainder != "carry" and len(unit):
                first = unit[0] if unit.ndim == 1 else unit[0][0]
                places, _ = plan.locate_all([int(first)], epoch)
                assert where in list(zip(*(part.tolist() for part in places), strict=True))
        assert wanted == flat(batch)
        for name, value in phase.parameters:
            assert all(about[name] == value for _, about in wanted)


def flat(batch: Any) -> list[Any]:
    """Return the items of nested lists."""
    if not isinstance(batch, list):
        return [batch]
    return [item for part in batch for item in flat(part)]


# --- augmentation, the one line that pages recommend

COPIES = ip.Plan(
    ip.Repeat(ip.Shuffle(30, seed=4), copies=2, span=12),
    batch_size=[
        ip.Phase(at=0, size=6, parameters={"level": 1}),
        ip.Phase(at=(1, 0), size=6, parameters={"level": 2}),
    ],
)


def about_all(index: int, about: About) -> Any:
    """Hand all to the dataset."""
    return index, about


def augmented(index: int, epoch: int, copy: int) -> float:
    """Return what is drawn for a copy of a sample."""
    return float(np.random.default_rng([7, epoch, copy, index]).uniform())


class Augmented(Identity):
    """A dataset of numbers with noise, over another one."""

    def __init__(self, dataset: Any) -> None:
        super().__init__(30)
        self.dataset = dataset

    def __getitem__(self, asked: tuple[int, About]) -> Any:
        index, about = asked
        where = about.epoch, about.step, about.slot, about["level"]
        return self.dataset[index], augmented(index, about.epoch, about.copy), where


def epochs_of(loader: PlanLoader, *epochs: int) -> list[Any]:
    """Read epochs."""
    read = []
    for epoch in epochs:
        loader.set_epoch(epoch)
        read += [list(map(tuple, batch)) for batch in loader]
    return read


OTHERS = (("spawn", True), ("forkserver", False), ("not persistent", True))


@pytest.mark.parametrize(
    ("context", "shards"),
    [("fork", False), *(pytest.param(*each, marks=pytest.mark.slow) for each in OTHERS)],
)
def test_workers_augment_by_epoch_and_copy(context: str, shards: bool, tmp_path: Path) -> None:
    """Three epochs in the same workers, and a resume on two ranks: as in one plain loop."""
    lasting = context != "not persistent"

    def loader(num_workers: int, **options: Any) -> PlanLoader:
        data: Any = range(30)
        if shards:
            made = ip.shard_sizes(str(tmp_path / "*.parquet"))
            cache: Any = {"cache_dir": tmp_path / str(options["rank"]), "cache_bytes": 10**8}
            data = ShardedDataset(made, open_parquet, ranks_per_node=1, **cache)
        return PlanLoader(
            Augmented(data),
            COPIES,
            item=about_all,
            collate_fn=as_they_are,
            num_workers=num_workers,
            persistent_workers=lasting and num_workers > 0,
            multiprocessing_context=context if lasting and num_workers else None,
            **options,
        )

    if shards:
        for name, first in (("a", 0), ("b", 12)):
            pq.write_table(
                pa.table({"id": range(first, 30 if first else 12)}), tmp_path / f"{name}.parquet"
            )
    plan = COPIES.replace(world_size=1)
    wanted = []
    for epoch in range(3):
        copies = dict(enumerate(read_in(plan.order, epoch)))
        pairs = iter(copies.values())
        for step, batch in enumerate(plan.batches(epoch, rank=0)):
            read = [*islice(pairs, len(batch))]
            assert batch.tolist() == [index for index, _ in read]
            rows = [{"id": index} if shards else index for index, _ in read]
            noise = [augmented(index, epoch, copy) for index, copy in read]
            where = [(epoch, step, slot, min(epoch + 1, 2)) for slot in range(len(batch))]
            wanted.append(list(zip(rows, noise, where, strict=True)))
    assert wanted == epochs_of(loader(2, rank=0, world_size=1), 0, 1, 2)
    assert len({noise for batch in wanted for _, noise, _ in batch}) == 3 * 60  # no two are alike

    stopped = loader(0, rank=0, world_size=1)
    for _ in islice(stopped, 3):
        pass
    rest = []
    for rank in range(2):
        resumed = loader(rank, rank=rank, world_size=2)  # one of them without workers
        resumed.load_state_dict(stopped.state_dict())
        rest += epochs_of(resumed, 0, 1)
    left = [each[:2] for each in sum(wanted[3:20], [])]  # at other steps, of two ranks
    assert sorted(left, key=str) == sorted([each[:2] for each in sum(rest, [])], key=str)
