"""Accelerate: plans in prepared loaders, on ranks over gloo, and in one process."""

from __future__ import annotations

from typing import Any

import accelerate
import pytest
import torch
from accelerate import Accelerator, DataLoaderConfiguration
from accelerate.data_loader import BatchSamplerShard, prepare_data_loader
from torch.utils.data import BatchSampler, DataLoader, default_collate

import indexplan as ip
from indexplan_torch import Bins, PlanBatchSampler, PlanLoader, PlanSampler, join
from indexplan_torch.accelerate import gather, prepare
from tests.trainers.ranks import ON_CPU, run_ranks

IMPORTED_BY_RANKS = ("accelerate",)

REMAINDERS = ("spread", "drop", "pad", "carry")
OPTIONS = ("none", "split_batches", "dispatch_batches", "use_stateful_dataloader")
CASES = [(option, remainder, 0) for option in OPTIONS for remainder in REMAINDERS]
CASES += [("none", remainder, 2) for remainder in REMAINDERS]  # with workers
# how bins are dealt out, and what a dataset makes of them
OF_BINS = [(name, form) for name in REMAINDERS for form in ("batches", "rows", "stacked")]
OF_BINS.remove(("spread", "stacked"))  # whose ranks have different numbers of bins
LENGTHS = [1 + i * 7 % 13 for i in range(104)]
BINS = ip.Plan(ip.LengthGrouped(LENGTHS, 8, num_buckets=3, seed=4), batch_size=1)  # 13, all full
PLAN = ip.Plan(ip.Shuffle(103, seed=5), batch_size=5)
TWO = PLAN.replace(world_size=2)
STOP = 3  # micro-batches of the first pass: one update, and half of another
NOT_OURS = (
    "a PlanLoader must not be given to accelerator.prepare, which would deal its batches out "
    "again; got one of this rank; use indexplan_torch.accelerate.prepare(accelerator, "
    "PlanLoader(dataset, plan)); under transformers.Trainer, use "
    "indexplan_torch.transformers.use_plan(trainer, plan)"
)
NOT_SKIPPED = (
    "a PlanLoader must hand its batches to the loop itself once it is resumed or prepared, or has "
    "a ledger; got another loader around its batch sampler, such as that of skip_first_batches; "
    "leave that out, as load_state_dict(state) and plan.resume(cursor) skip what was read"
)
NOT_COUNTED = (
    "a sampler must not be asked for a cursor or step_size inside a pass, as it knows what was "
    "drawn, not what the loop has received; got a pass that another loader draws; loop over a "
    "PlanLoader, or use the state of torchdata's StatefulDataLoader; at the end of a pass, name "
    "the next with set_epoch first"
)


class Moved:
    """A batch that records where it was moved to."""

    def __init__(self, samples: list[Any]) -> None:
        self.indices = [int(sample) for sample in samples]
        self.device = "nowhere"

    def to(self, device: Any, non_blocking: bool = False) -> Moved:
        self.device = str(device)
        return self


class Asked(torch.utils.data.Dataset[Any]):
    """A dataset that counts what it is asked for."""

    num_asked = 0

    def __len__(self) -> int:
        return 103

    def __getitem__(self, index: int) -> Any:
        self.num_asked += 1
        return torch.tensor(float(index))


def read(option: str, remainder: str, num_workers: int) -> dict[str, Any]:
    """Read two epochs; tell of each batch, and of what all ranks gather."""
    given: Any = {} if option == "none" else {option: True}
    accelerator = Accelerator(dataloader_config=DataLoaderConfiguration(**given))
    data, plan = Asked(), PLAN.replace(remainder=remainder)
    loader = PlanLoader(data, plan, num_workers=num_workers)
    prepared = prepare(accelerator, loader)
    seen: dict[str, Any] = {"length": len(prepared), "batches": [], "gathered": [], "held": []}
    for epoch in range(2):
        prepared.set_epoch(epoch)
        for batch in prepared:
            seen["batches"].append(batch.int().tolist())
            if remainder == "spread":
                rows, sums = gather(accelerator, [batch, batch.sum()])
                assert (2, rows.sum()) == (len(sums), sums.sum())
            else:
                rows = accelerator.gather_for_metrics(batch)
            seen["gathered"] += rows.int().tolist()
            state = prepared.state_dict()["cursor"]
            for each in (prepared, loader):
                seen["held"].append([each.step_size, each.cursor.to_dict(), state])
    seen["asked"] = data.num_asked
    seen["active"] = accelerator.gradient_state.in_dataloader
    return seen


def of_bins(remainder: str, form: str) -> list[Any]:
    """Read bins that are batches by themselves, or rows, joined or stacked; and gather them."""
    accelerator, samples = Accelerator(), torch.arange(104)
    data: Any = {"batches": samples, "stacked": Bins(samples, default_collate)}
    data["rows"] = Bins([torch.tensor([i]) for i in range(104)])
    options: Any = {"batches": {"keep_bins": False}, "rows": {"collate_fn": join}}
    plan = BINS.replace(remainder=remainder, batch_size=3 if remainder == "spread" else 1)
    loader = PlanLoader(data[form], plan, **options.get(form, {}))
    batches, gathered = [], []
    for batch in prepare(accelerator, loader):
        rows = batch["input_ids"] if form == "rows" else batch
        batches.append(rows.flatten().tolist())
        if remainder != "spread":  # all ranks have as many rows
            gathered += accelerator.gather_for_metrics(rows).flatten().tolist()
    return [batches, gathered]


def said(ask: Any) -> Any:
    """What is answered, or how it is refused."""
    try:
        return ask()
    except ip.IndexPlanError as error:
        return str(error)


def every() -> dict[str, Any]:
    """All options, and what is moved, skipped and refused, in one process."""
    seen: dict[str, Any] = {str(case): read(*case) for case in CASES}
    seen |= {str(case): of_bins(*case) for case in OF_BINS}
    accelerator, data = Accelerator(), torch.arange(103.0)

    def fresh(**options: Any) -> Any:
        return prepare(accelerator, PlanLoader(data, PLAN, **options))

    seen["moved"] = [[batch.indices, batch.device] for batch in fresh(collate_fn=Moved)]
    seen["device"] = str(accelerator.device)
    loader = PlanLoader(data, PLAN)
    loader.set_epoch(1)
    asked: list[Any] = [lambda: loader.step_size, lambda: loader.cursor, loader.state_dict]
    seen["skipped"] = [
        [batch.int().tolist(), *map(said, asked)]
        for batch in accelerate.skip_first_batches(loader, 4)
    ]
    loader.set_epoch(2)
    seen["after it"] = [[batch.int().tolist(), loader.step_size] for batch in loader]
    again: list[Any] = [
        lambda: accelerator.prepare(PlanLoader(data, PLAN)),
        lambda: next(iter(accelerator.skip_first_batches(fresh(), 4))),
        lambda: next(iter(accelerate.skip_first_batches(fresh(), 0))),
    ]
    seen["refused"] = [said(each) for each in again]
    plan = PLAN.replace(remainder="drop")
    seen["dealt out"] = []
    for option in ("dispatch_batches", "use_seedable_sampler"):
        other = Accelerator(dataloader_config=DataLoaderConfiguration(**{option: True}))
        forms: list[Any] = [{"batch_sampler": PlanBatchSampler(plan)}]
        forms += [{"sampler": PlanSampler(plan), "batch_size": 5}]
        for form in forms:
            drawn = other.prepare(DataLoader(data, **form))  # type: ignore[arg-type]
            seen["dealt out"].append(said(lambda drawn=drawn: next(iter(drawn))))
    accelerator.end_training()
    return seen


@pytest.fixture(scope="module")
def ranks() -> list[Any]:
    """What two ranks saw of it all."""
    return run_ranks(f"{__name__}:every", 2, **ON_CPU)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_prepared_loader_is_the_plans(ranks: list[Any], case: tuple[str, str, int]) -> None:
    """A rank reads its own batches, whatever Accelerate's way of dealing; a metric sees no padding.

    Steps, cursors and states are of the batch that the loop has, though the next is fetched.
    """
    _, remainder, num_workers = case
    plan = TWO.replace(remainder=remainder)
    places = [(epoch, step) for epoch in range(2) for step in plan.steps(epoch)]
    rows = [
        index
        for epoch, step in places
        for each in range(2)
        for index in plan.batch(epoch, step=step, rank=each)[
            : plan.units(epoch, step=step, rank=each).num_valid
        ].tolist()
    ]
    after = [plan.cursor(epoch, step=step + 1).to_dict() for epoch, step in places]
    sizes = [plan.step_size(epoch, step=step) for epoch, step in places]
    for rank, result in enumerate(ranks):
        batches = [batch.tolist() for epoch in range(2) for batch in plan.batches(epoch, rank=rank)]
        asked = 0 if num_workers else sum(map(len, batches))
        assert result[str(case)] == {
            "length": plan.steps(0).stop,
            "batches": batches,
            "gathered": rows,
            "held": [[*told, told[1]] for told in zip(sizes, after, strict=True) for _ in range(2)],
            "asked": asked,
            "active": False,
        }


@pytest.mark.parametrize("case", OF_BINS, ids=str)
def test_bins_are_whole(ranks: list[Any], case: tuple[str, str]) -> None:
    """Each rank has its own; of metrics, no row is left out that is not padding."""
    remainder, form = case
    plan = BINS.replace(
        world_size=2, remainder=remainder, batch_size=3 if remainder == "spread" else 1
    )
    rows = [
        sample
        for step in range(plan.steps(0).stop)
        for rank in range(2)
        for sample in plan.batch(0, step=step, rank=rank)
        .reshape(-1, 8)[: plan.units(0, step=step, rank=rank).num_valid if form != "rows" else None]
        .ravel()
        .tolist()
    ]
    for rank, result in enumerate(ranks):
        batches = [batch.tolist() for batch in plan.batches(0, rank=rank)]
        assert [batches, [] if remainder == "spread" else rows] == result[str(case)]


def test_what_is_moved_skipped_and_refused(ranks: list[Any]) -> None:
    """Both ranks are told whose batches are dealt out: one alone let the other wait for ever."""
    for rank, seen in enumerate(ranks):
        batches = [[b.tolist() for b in TWO.batches(epoch, rank=rank)] for epoch in range(3)]
        assert seen["device"].startswith("cpu")
        assert [[batch, seen["device"]] for batch in batches[0]] == seen["moved"]
        assert [[batch, *3 * [NOT_COUNTED]] for batch in batches[1][4:]] == seen["skipped"]
        sizes = [TWO.step_size(2, step=step) for step in TWO.steps(2)]
        assert [list(each) for each in zip(batches[2], sizes, strict=True)] == seen["after it"]
        assert [NOT_OURS, NOT_SKIPPED, NOT_SKIPPED] == seen["refused"]
        assert 4 == len(seen["dealt out"])
        assert all(each.startswith("a plan's sampler must not") for each in seen["dealt out"])


def leg(folder: str, saving: bool) -> dict[str, Any]:
    """Train for STOP micro-batches and save, or go on from there to the end of the next pass."""
    accelerator = Accelerator(gradient_accumulation_steps=2)
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    loader = PlanLoader(torch.arange(103.0), PLAN)
    model, optimizer, loader = prepare(accelerator, model, optimizer, loader)
    assert type(optimizer).__name__ == "AcceleratedOptimizer"
    assert prepare(accelerator, loader) is accelerator.prepare(loader) is loader
    if not saving:
        accelerator.load_state(folder)
    seen: dict[str, Any] = {"batches": [], "synchronised": []}
    for epoch in range(2):
        loader.set_epoch(epoch)
        for batch in loader:
            with accelerator.accumulate(model):
                accelerator.backward(model(batch[:, None]).sum())
                optimizer.step()
                optimizer.zero_grad()
            seen["batches"].append(batch.int().tolist())
            seen["synchronised"].append(accelerator.sync_gradients)
            if saving and len(seen["batches"]) == STOP:
                accelerator.save_state(folder)
                return seen
    return seen


@pytest.mark.parametrize("world_size", [1, 2, 3])
def test_other_ranks_synchronise_together(tmp_path: Any, world_size: int) -> None:
    """Ranks that join go on in the middle of the update, as the others do; nothing is left out."""
    function = f"{__name__}:leg"
    folder = str(tmp_path / "saved")
    run_ranks(function, 2, folder, True, timeout=120, **ON_CPU)
    then = run_ranks(function, world_size, folder, False, timeout=120, **ON_CPU)
    rest = PLAN.replace(world_size=world_size).resume(TWO.cursor(0, step=STOP))
    for rank, result in enumerate(then):
        expected = [b.tolist() for epoch in range(2) for b in rest.batches(epoch, rank=rank)]
        assert expected == result["batches"]
        assert then[0]["synchronised"] == result["synchronised"]
        assert [True, False, True, False] == result["synchronised"][:4]


# --- in one process


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("num_workers", [0, 1])
@pytest.mark.parametrize("kind", ["PlanLoader", "PlanBatchSampler", "PlanSampler", "view"])
def test_a_seedable_sampler_deals_nothing_out(kind: str, num_workers: int, split: bool) -> None:
    """With it Accelerate reads nothing of ours: rank 1 of 2 read 3 of its 6 batches in silence."""
    plan, ranks = ip.Plan(ip.Shuffle(48, seed=1), batch_size=4), {"rank": 1, "world_size": 2}
    options: dict[str, Any] = {"num_workers": num_workers}
    loader = PlanLoader(range(48), plan, **ranks, **options)
    if kind == "PlanBatchSampler":
        loader = DataLoader(range(48), batch_sampler=PlanBatchSampler(plan, **ranks), **options)
    elif kind == "PlanSampler":
        sampler = PlanSampler(plan.replace(remainder="drop"), **ranks)
        loader = DataLoader(range(48), sampler=sampler, batch_size=4, **options)
    elif kind == "view":
        loader = DataLoader(range(48), sampler=loader.sampler, batch_size=4, **options)
    given: dict[str, Any] = {"num_processes": 2, "process_index": 1, "split_batches": split}
    prepared = prepare_data_loader(loader, use_seedable_sampler=True, **given)
    with pytest.raises(ip.IndexPlanError, match=r"^a plan's sampler must not be given to accelera"):
        next(iter(prepared))


def test_a_name_that_was_refused_is_forgotten() -> None:
    """The loop that is refused has begun, so a trainer names the next pass as ever."""
    plan = ip.Plan(ip.Shuffle(12, seed=1), world_size=1, batch_size=3)
    loader = PlanLoader(range(12), plan.resume(plan.cursor(2, step=0)), collate_fn=list)
    prepared = prepare(Accelerator(cpu=True), loader)
    prepared.set_epoch(0)
    with pytest.raises(ip.IndexPlanError, match="epoch must be 2 or later"):
        next(iter(prepared))
    loader.sampler.set_epoch(3)
    assert [batch.tolist() for batch in plan.batches(3, rank=0)] == list(prepared)


@pytest.mark.parametrize("num_workers", [0, 1])
@pytest.mark.parametrize("split_batches", [False, True])
def test_a_shard_made_by_hand_deals_out_no_rank_s_batches(
    split_batches: bool, num_workers: int
) -> None:
    """It read 12 of a rank's 20 samples in silence; one plan for all ranks is dealt out right."""
    plan = ip.Plan(ip.Shuffle(45, seed=5), batch_size=4, remainder="drop")

    def shard(world_size: int, num_processes: int, form: Any = None) -> Any:
        ours: Any = PlanBatchSampler(plan, rank=0, world_size=world_size)
        if form is not None:
            ours = BatchSampler(PlanSampler(plan, rank=0, world_size=world_size), 4, drop_last=True)
        ours = BatchSamplerShard(ours, num_processes, 0, split_batches=split_batches)
        return list(
            DataLoader(range(45), batch_sampler=ours, num_workers=num_workers, collate_fn=list)
        )

    for form in (None, PlanSampler):
        with pytest.raises(ip.IndexPlanError, match=r"^a plan's sampler must not be given to Bat"):
            shard(2, 2, form)
    # also from afar, and where the sampler is asked for its iterator before there is a shard
    batches: Any = iter(PlanBatchSampler(plan, rank=0, world_size=2))
    for _ in range(50):
        batches = (batch for batch in batches)
    with pytest.raises(ip.IndexPlanError, match=r"^a plan's sampler must not be given to Bat"):
        next(iter(BatchSamplerShard(batches, 2, 0)))
    one, two = (plan.replace(world_size=size) for size in (1, 2))
    assert [batch.tolist() for batch in two.batches(0, rank=0)] == shard(2, 1)
    whole = [batch.tolist() for batch in one.batches(0, rank=0)]
    half = [batch[:2] for batch in whole] if split_batches else whole[::2]
    assert half[: len(whole) // 2] == shard(1, 2)[: len(whole) // 2]
