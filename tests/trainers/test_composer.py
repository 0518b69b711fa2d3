"""Composer: its default Trainer over plans, stopped on two ranks and resumed on others.

Run by path, in an environment of its own: Composer 0.32.1 asks for an older torch, so its packages
are installed without their dependencies into a folder that PYTHONPATH names; what it imports of
torchvision needs no compiled operators.
"""

from __future__ import annotations

import contextlib
import io
import runpy
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader

import indexplan as ip
from indexplan_torch import Bins, PlanBatchSampler, PlanLoader
from tests.histories.passes import Loop
from tests.runs.frameworks import FRAMEWORKS
from tests.through.test_conformance import check
from tests.trainers.ranks import ROOT, run_ranks

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of what Composer imports
    from tests.runs.frameworks.composer_trainer import ComposerModel, Event, Trainer, composer

pytestmark = pytest.mark.composer

IMPORTED_BY_RANKS = ("tests.runs.frameworks.composer_trainer", "torchmetrics", "torch._dynamo")

EPOCHS = 3
PLAN = ip.Plan(ip.Shuffle(97, seed=5), batch_size=5)
# passes of 7, 13 and 13 steps on two ranks: Composer alone would cut all to 7
LONGER = PLAN.replace(batch_size=[ip.Phase(at=0, size=8), ip.Phase(at=1, size=4)])
# a plan, the number of workers, and "epoch, batch in epoch" of its checkpoints: in mid-pass, after
# a pass's last batch, at its end, and after the run's last batch
RUNS = {
    "plain": (PLAN, 0, ("1, 5", "0, 10", "2, 0", "2, 10")),
    "workers": (PLAN, 2, ("1, 5", "2, 0")),
    "longer": (LONGER, 0, ("1, 5", "1, 0", "1, 13")),
    "carry": (PLAN.replace(remainder="carry"), 0, ("1, 5", "2, 0")),
}
WITHOUT = (
    "a resume under composer.Trainer on another number of ranks must load the loader's state; "
    "got a checkpoint of 2 ranks on {world_size}, whose steps Composer would skip by counting; "
    "use Trainer(callbacks=[indexplan_torch.composer.KeepState()]), in the run that saves too"
)
IN_PARTS = (
    "an evaluation's plan must have sub_epochs=1 under Composer, as each evaluation is one pass; "
    "got sub_epochs=3; use plan.replace(sub_epochs=1)"
)
SHARED = (
    "eval_dataloader must be a loader of its own; got the training's, whose pass it would "
    "interrupt; use another PlanLoader(dataset, plan)"
)
NOT_OURS = (
    "train_dataloader must be a PlanLoader, for KeepState; got DataLoader; use PlanLoader(dataset, "
    "plan)"
)


class Model(ComposerModel):
    """A line that notes what it is trained on, and which random numbers it draws."""

    def __init__(self) -> None:
        super().__init__()
        self.line = torch.nn.Linear(1, 1)
        self.seen: dict[str, list[Any]] = {"batches": [], "drawn": [], "evaluated": []}

    def forward(self, batch: Any) -> Any:
        rows = batch["input_ids"] if isinstance(batch, dict) else batch
        name = "batches" if self.training else "evaluated"
        self.seen[name].append(rows.int().flatten().tolist())
        if self.training:
            self.seen["drawn"].append(torch.rand(1).item())
        return self.line(rows.reshape(-1, 1) / 97)[:, 0]

    def loss(self, outputs: Any, *args: Any, **kwargs: Any) -> Any:
        return outputs.square().mean()

    def eval_forward(self, batch: Any, outputs: Any = None) -> Any:
        return self.forward(batch)

    def get_metrics(self, is_train: bool = False) -> dict[str, Any]:
        from torchmetrics import SumMetric

        return {} if is_train else {"sum": SumMetric()}

    def update_metric(self, batch: Any, outputs: Any, metric: Any) -> None:
        metric.update(batch)


def fit(loader: Any, *, keep: bool = True, fits: Any = ({},), **options: Any) -> Any:
    """Train for three epochs, or as told; return what the model noted, or the error."""
    from indexplan_torch.composer import KeepState

    callbacks = [KeepState()] * keep + options.pop("callbacks", [])
    given = {"train_dataloader": loader, "max_duration": f"{EPOCHS}ep", **options}
    line = Model()
    trainer = Trainer(model=line, progress_bar=False, callbacks=callbacks, **given)
    try:
        for each in fits:
            trainer.fit(**each)
    except ip.IndexPlanError as error:
        line.seen["refused"] = [str(error)]
    finally:
        trainer.close()
    return line.seen


def leg(folder: str, saving: bool) -> dict[str, Any]:
    """Save each run on two ranks, or only resume its checkpoints on others."""
    dataset = torch.arange(97.0)

    def trained(given: Any, **options: Any) -> Any:
        seen = fit(PlanLoader(dataset, given) if isinstance(given, ip.Plan) else given, **options)
        return seen["refused"][0] if "refused" in seen else seen

    seen: dict[str, Any] = {}
    for name, (plan, num_workers, places) in RUNS.items():

        def due(state: Any, event: Any, places: Any = places) -> bool:
            time = state.timestamp
            here = f"{int(time.epoch)}, {int(time.batch_in_epoch)}" in places
            return here and event in (Event.BATCH_CHECKPOINT, Event.EPOCH_CHECKPOINT)

        def made(plan: ip.Plan = plan, num_workers: int = num_workers) -> PlanLoader:
            return PlanLoader(dataset, plan, num_workers=num_workers)

        place = f"{folder}/{name}"
        if saving:
            files = {"save_folder": place, "save_filename": "{epoch}, {batch_in_epoch}.pt"}
            seen[name] = trained(made(), save_interval=due, **files)
        for saved in places:
            seen[f"{name} {saved}"] = trained(made(), load_path=f"{place}/{saved}.pt")
    seen["ledger"] = f"{folder}/run.ledger"
    kept: dict[str, Any] = {"load_path": f"{folder}/kept/15.pt"}
    if saving:
        kept = {"save_folder": f"{folder}/kept", "save_filename": "{batch}.pt"}
        kept["save_interval"] = "5ba"
    seen["kept"] = trained(PlanLoader(dataset, PLAN, ledger=seen["ledger"]), **kept)
    middle, end = f"{folder}/plain/1, 5.pt", f"{folder}/plain/2, 0.pt"
    seen["without"] = [trained(PLAN, keep=False, load_path=path) for path in (middle, end)]
    seen["fit twice"] = trained(
        PLAN, load_path=middle, max_duration=None, fits=({"duration": "2ba"}, {"duration": "1ep"})
    )
    shuffled = ip.Plan(ip.Shuffle(97, seed=6), batch_size=7)
    in_parts = shuffled.replace(sub_epochs=3)
    once: dict[str, Any] = {"max_duration": "2ep"}
    seen["evaluated"] = trained(PLAN, eval_dataloader=PlanLoader(dataset, shuffled), **once)
    seen["refused"] = [
        trained(PLAN, keep=keep, eval_dataloader=PlanLoader(dataset, in_parts), **once)
        for keep in (True, False)
    ]
    both = PlanLoader(dataset, PLAN)
    sampled = DataLoader(dataset, batch_sampler=PlanBatchSampler(PLAN))
    seen["refused"] += [
        trained(both, eval_dataloader=both, **once),
        trained(sampled, device_train_microbatch_size=5, **once),
    ]
    return seen


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> dict[int, list[dict[str, Any]]]:
    """What every rank saw: of the two that saved, and of those that went on."""
    folder = str(tmp_path_factory.mktemp("saved"))
    function = f"{__name__}:leg"
    return {
        world_size: run_ranks(function, world_size, folder, world_size == 2, timeout=600)
        for world_size in (2, 1, 3)
    }


def passes(plan: ip.Plan, epochs: Any, rank: int) -> list[list[int]]:
    """The batches that a rank has to receive in some epochs."""
    return [batch.tolist() for epoch in epochs for batch in plan.batches(epoch, rank=rank)]


@pytest.mark.parametrize("world_size", [1, 2, 3])
@pytest.mark.parametrize("name", RUNS)
def test_every_leg_reads_the_plan(worlds: dict[int, list[Any]], name: str, world_size: int) -> None:
    """All of every pass, be it longer than the first, wherever the first leg was stopped.

    On as many ranks, random numbers are those of the run without a stop.
    """
    plan, _, places = RUNS[name]
    first = Loop(plan.replace(world_size=2), rank=0)
    for rank, result in enumerate(worlds[world_size]):
        for place in places:
            loop, seen = Loop(plan.replace(world_size=world_size), rank), result[f"{name} {place}"]
            loop.load(first.state(*map(int, place.split(", "))))
            expected = passes(loop.plan, range(loop.start, EPOCHS), rank)
            assert expected == seen["batches"]
            if world_size == 2:
                whole = result[name]
                assert passes(first.plan, range(EPOCHS), rank) == whole["batches"]
                assert whole["drawn"][len(whole["drawn"]) - len(expected) :] == seen["drawn"]


def test_a_ledger_is_kept(worlds: dict[int, list[Any]]) -> None:
    """Two ranks and then three have read what it says; what was past the checkpoint is void."""
    ledger = ip.Ledger(worlds[2][0]["ledger"])
    assert ledger.verify().ok
    for rank, result in enumerate(worlds[2]):
        read = [ledger.batch(step, rank).tolist() for step in range(15)]
        assert result["kept"]["batches"][:15] == read
    for rank, result in enumerate(worlds[3]):
        read = [ledger.batch(step, rank).tolist() for step in range(15, ledger.step)]
        assert result["kept"]["batches"] == read
    assert [EPOCHS] * 97 == ledger.seen(range(97)).tolist()


@pytest.mark.parametrize("world_size", [1, 2, 3])
def test_fits_of_every_world(worlds: dict[int, list[Any]], world_size: int) -> None:
    """What a run reads without the callback, in a second `fit`, and in evaluations.

    Without it, another number of ranks is refused; a second `fit` goes on where the first ended,
    after a resume too; each evaluation reads the same epoch whole, and what would not is refused.
    """
    saved = PLAN.replace(world_size=2).cursor(1, step=5)
    plan = PLAN.replace(world_size=world_size).resume(saved)
    valid = ip.Plan(ip.Shuffle(97, seed=6), world_size=world_size, batch_size=7)
    for rank, result in enumerate(worlds[world_size]):
        if world_size == 2:
            expected = passes(PLAN.replace(world_size=2), range(EPOCHS), rank)
            assert [expected[15:], expected[20:]] == [each["batches"] for each in result["without"]]
        else:
            assert [WITHOUT.format(world_size=world_size)] * 2 == result["without"]
        assert passes(plan, [1], rank) == result["fit twice"]["batches"]
        assert passes(valid, [0, 0], rank) == result["evaluated"]["evaluated"]
        assert [IN_PARTS, IN_PARTS, SHARED, NOT_OURS] == result["refused"]


# --- bins, limits, moves, and the example

NUM_STEPS = 10
BINS = ip.Plan(
    ip.LengthGrouped([1 + i * 7 % 13 for i in range(97)], 8, num_buckets=3),
    batch_size=1,
    remainder="carry",
)
MIXED = PLAN.replace(
    order=ip.Mixture({"a": ip.Shuffle(60, seed=1), "b": ip.Shuffle(37, seed=2)}, {"a": 3, "b": 2})
)
MOVED_AT = 14  # of 10 steps a pass


def lighter(cursor: ip.Cursor) -> ip.Plan:
    """The mixed plan with other weights from a cursor on, and as many steps."""
    order: Any = MIXED.order
    return MIXED.replace(order=order.with_phase(cursor, {"a": 1, "b": 4}))


def of_bins() -> dict[str, Any]:
    """Bins that are batches by themselves, and one that is a row, with the settings they take."""
    samples = torch.arange(97)
    rows = Bins(samples.reshape(97, 1))
    options: dict[str, Any] = {"keep": False}
    return {
        "cut": fit(PlanLoader(samples, BINS, keep_bins=False), **options)["batches"],
        "flat": fit(
            PlanLoader(samples, BINS, keep_bins=False), device_train_microbatch_size=8, **options
        )["batches"],
        "rows": fit(PlanLoader(rows, BINS), **options)["batches"],
    }


def test_bins_are_read_whole_or_cut() -> None:
    """A bin that is a batch is trained on in as many samples at a time as Composer is told."""
    plan = BINS.replace(world_size=2)
    for rank, seen in enumerate(run_ranks("tests.trainers.test_composer:of_bins", 2)):
        fit = [b.tolist() for epoch in range(EPOCHS) for b in plan.batches(epoch, rank=rank)]
        assert (fit, fit) == (seen["flat"], seen["rows"])
        assert [[index] for batch in fit for index in batch] == seen["cut"]


def cut_short() -> dict[str, Any]:
    """Passes that Composer cuts, with and without KeepState, and as the warning's cure has it."""

    def told(plan: ip.Plan, **options: Any) -> list[Any]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            seen = fit(PlanLoader(torch.arange(97.0), plan), **options)
        said = [str(each.message) for each in caught if "sub-epoch" in str(each.message)]
        return [seen["batches"], seen.get("refused", []) + said]

    short = PLAN.replace(order=ip.Epochs(PLAN.order, 50))
    return {
        f"{name}, {keep}": told(plan, keep=keep, **options)
        for keep in (True, False)
        for name, plan, options in (
            ("limited", PLAN, {"max_duration": "4ep", "train_subset_num_batches": 5}),
            ("cured", short, {"max_duration": "4ep"}),
            ("ends early", PLAN, {"max_duration": "25ba"}),
        )
    }


def moved() -> dict[str, Any]:
    """Move to other weights in a callback, in the middle of the second epoch; two ranks."""

    def batches(num_workers: int) -> Any:
        loader = PlanLoader(torch.arange(97.0), MIXED, num_workers=num_workers)

        class Moves(composer.Callback):
            def batch_end(self, state: Any, logger: Any) -> None:
                del logger
                if int(state.timestamp.batch) == MOVED_AT:
                    loader.move(lighter(loader.cursor))

        return fit(loader, callbacks=[Moves()])["batches"]

    return {str(num_workers): batches(num_workers) for num_workers in (0, 2)}


def test_weights_change_at_a_step() -> None:
    """The steps after a move are those of the other plan, resumed there."""
    one = MIXED.replace(world_size=2)
    cursor = one.cursor(1, step=MOVED_AT - NUM_STEPS)
    plans = [one, lighter(cursor).replace(world_size=2).resume(cursor)]
    seen = run_ranks("tests.trainers.test_composer:moved", 2)
    for rank, told in enumerate(seen):
        wanted = [
            plans[step >= MOVED_AT]
            .batch(step // NUM_STEPS, step=step % NUM_STEPS, rank=rank)
            .tolist()
            for step in range(3 * NUM_STEPS)
        ]
        assert {"0": wanted, "2": wanted} == told


def test_a_limit_is_told_once_and_its_cure_loses_nothing() -> None:
    """The rule of every trainer: a limit is a warning, and an error where nobody says it is one."""
    plan, epochs = PLAN.replace(world_size=2), range(4)
    short = plan.replace(order=ip.Epochs(PLAN.order, 50))
    lost = "epoch 0, sub-epoch 0: the trainer's limit ends each pass after 5 of 10 steps, so 47 of "
    left = "a pass must be read whole before a later one begins; got 5 of 10 steps of epoch 0, "
    read: list[int] = []
    for rank, seen in enumerate(run_ranks("tests.trainers.test_composer:cut_short", 2)):
        batches = [[b.tolist() for b in plan.batches(epoch, rank=rank)] for epoch in epochs]
        limited, said = seen["limited, True"]
        assert [batch for epoch in batches for batch in epoch[:5]] == limited
        assert [True] == [message.startswith(lost) for message in said]
        assert "use ip.Epochs(order, 50), whose epochs have so many and lose none" in said[0]
        limited, said = seen["limited, False"]
        assert batches[0][:5] == limited
        assert [True] == [message.startswith(left) for message in said]
        assert "use ip.Epochs(order, 50), whose epochs have so many and lose none" in said[0]
        assert "under Composer KeepState()" in said[0]
        cured = [b.tolist() for epoch in epochs for b in short.batches(epoch, rank=rank)]
        for keep in (True, False):
            assert [cured, []] == seen[f"cured, {keep}"]
            assert [sum(batches, [])[:25], []] == seen[f"ends early, {keep}"]
        read += [index for batch in cured for index in batch]
    assert set(range(97)) == set(read)


def example(name: str) -> list[str]:
    """Run an example in this rank, as Composer's launcher does; return what it printed."""
    with contextlib.redirect_stdout(io.StringIO()) as said:
        runpy.run_path(str(ROOT / "docs" / "examples" / name), run_name="__main__")
    return said.getvalue().splitlines()


def test_composer_epochs() -> None:
    """Each Composer epoch is a sub-epoch of the plan, on both ranks, over the epoch's end too."""
    function = "tests.trainers.test_composer:example"
    lines, _ = run_ranks(function, 2, "composer_epochs.py")
    plan = ip.Plan(ip.Shuffle(103, seed=0), world_size=2, batch_size=8, sub_epochs=3)
    expected = []
    for rank in range(2):
        passes = [plan.batches(number // 3, number % 3, rank=rank) for number in range(4)]
        batches = [batch.tolist() for batches in passes for batch in batches]
        expected += [f"rank {rank} step {step} reads {b}" for step, b in enumerate(batches)]
    assert expected == [line for line in lines if line.startswith("rank")]


def test_a_run_that_changes_its_ranks_reads_each_sample_once(tmp_path: Path) -> None:
    """Composer is the one entry that others cannot stand beside."""
    (composer,) = (each for each in FRAMEWORKS if each.alone)
    check(composer, tmp_path)
