"""Lightning's Trainer with its default settings: two ranks over gloo."""

from __future__ import annotations

import importlib
import logging
import os
from typing import Any, NamedTuple

import lightning.pytorch as pl
import pytest
import pytorch_lightning
from lightning.fabric import Fabric
from lightning.pytorch.callbacks import BasePredictionWriter, ModelCheckpoint
from lightning.pytorch.strategies import DDPStrategy
from torch.utils.data import DataLoader

import indexplan as ip
from indexplan_torch import PlanBatchSampler, PlanLoader
from indexplan_torch.lightning import RefreshStepCounts
from tests.trainers.lightning_runs import Recorder, Recording, prepare, trainer
from tests.trainers.ranks import run_ranks

RANKS = range(2)

PLAN = ip.Plan(ip.Shuffle(103, seed=3), batch_size=5, sub_epochs=3)  # passes of 4 steps
VALID = ip.Plan(ip.Sequential(7), batch_size=2)
EXACT = ip.Plan(ip.Shuffle(103, seed=4), batch_size=6)  # 9 steps; 103 over 2 ranks is no whole

# passes of 6, 9, 13 and 10 steps: sizes change between epochs and inside two of them
CHANGING = ip.Plan(
    ip.Shuffle(103, seed=5),
    batch_size=[
        ip.Phase(at=0, size=10),
        ip.Phase(at=140, size=5),
        ip.Phase(at=(2, 0), size=4),
        ip.Phase(at=(3, 0), size=9),
        ip.Phase(at=360, size=4),
    ],
)

# passes of 6, 5, 5, 5 steps
SCHEDULED = ip.Plan(
    ip.Shuffle(103, seed=7), batch_size=[ip.Phase(0, 3), ip.Phase((0, 1), 4)], sub_epochs=3
)


class Fit(NamedTuple):
    """A training for four passes: what it reads, how, and what it tells of each pass."""

    plan: ip.Plan = PLAN
    workers: int = 0
    inside: bool = False  # whether the loader is made in the model's hook
    options: dict[str, Any] = {}  # noqa: RUF012 (which nobody changes)
    passed: bool = True  # whether the callback is passed, or found by its entry point
    num_steps: int = 16
    tell: Any = lambda batches: [*batches, "validated"]


def halved(batches: list[Any]) -> list[Any]:
    """Tell of a pass that is validated in its middle too."""
    half, told = len(batches) // 2, [*batches]
    told.insert(2 * half, "validated")
    told.insert(half, "validated")
    return told


def shortened(most: Any) -> Any:
    """Tell of a pass of which so much is read."""
    return lambda batches: [*batches[: most if most > 1 else int(len(batches) * most)], "validated"]


FITS = {
    "outside": Fit(passed=False),
    "inside, workers": Fit(workers=2, inside=True, passed=False),
    "outside, workers": Fit(workers=2, passed=False),
    "inside": Fit(inside=True, passed=False),
    "changing": Fit(CHANGING, num_steps=38),
    "changing, workers": Fit(CHANGING, 2, num_steps=38),
    "changing, found": Fit(CHANGING, passed=False, num_steps=38),
    "older name": Fit(CHANGING, num_steps=38),
    "at most 5": Fit(CHANGING, 0, False, {"limit_train_batches": 5}, True, 20, shortened(5)),
    "at most 5, found": Fit(
        CHANGING, 0, False, {"limit_train_batches": 5}, False, 20, shortened(5)
    ),
    "half": Fit(CHANGING, 0, False, {"limit_train_batches": 0.5}, True, 18, shortened(0.5)),
    # each pass ends with an optimizer step: 2 + 3 + 4 + 3
    "accumulated": Fit(CHANGING, options={"accumulate_grad_batches": 4}, num_steps=12),
    "twice": Fit(CHANGING, 0, False, {"val_check_interval": 0.5}, True, 38, halved),
    "by steps": Fit(options={"max_epochs": -1, "max_steps": 16}),
    "by steps, unvalidated": Fit(
        options={"max_epochs": -1, "max_steps": 16, "validate": False}, tell=list
    ),
}
# the checkpoints of a fit, by their names, and where they stand: (pass, step)
ALIKE = {
    "step=2": (0, 2),
    "step=6": (1, 2),
    "step=8": (2, 0),
    "validation-epoch=1": (2, 0),
    "end-epoch=1": (2, 0),
}
LONGER = {
    "step=4": (0, 4),
    "step=6": (1, 0),  # the last step of a pass, before a longer one
    "step=18": (2, 3),
    "step=28": (3, 0),  # the last step of a pass, before a shorter one
    "step=30": (3, 2),
    "validation-epoch=0": (1, 0),
    "validation-epoch=2": (3, 0),
    "end-epoch=0": (1, 0),
    "end-epoch=2": (3, 0),
}
WAYS = ["outside", "inside, workers", "outside, workers", "inside"]
PLACES = {**dict.fromkeys(WAYS, ALIKE), "changing": LONGER}
# which fit was saved, in which checkpoint, and how it goes on
RESUMES = [
    *(
        (WAYS[number % 4], place, WAYS[(number + further) % 4])
        for number, place in enumerate(ALIKE)
        for further in (1, 2)
    ),
    *(("outside", place, "by steps") for place in ALIKE),
    # without validation nothing can end a validation
    *(("outside", place, "by steps, unvalidated") for place in ALIKE if "valid" not in place),
    *(("changing", place, "changing") for place in LONGER),
]


# --- what ranks run


class OlderRecorder(Recording, pytorch_lightning.LightningModule):
    """The same for the package by its older name."""


class Indices(BasePredictionWriter):
    """A writer that keeps the indices of what it would write."""

    def __init__(self) -> None:
        super().__init__("batch_and_epoch")
        self.batches: list[Any] = []
        self.epoch: Any = None

    def write_on_batch_end(self, trainer: Any, pl_module: Any, *what: Any) -> None:
        self.batches.append(what[1])

    def write_on_epoch_end(self, trainer: Any, pl_module: Any, *what: Any) -> None:
        self.epoch = what[1][0]


def loader(plan: Any, num_workers: int = 0, *, plain: bool = False, **options: Any) -> Any:
    """A loader of a plan whose samples are their indices."""
    data = range(plan.order.num_samples)
    options["num_workers"] = num_workers
    if plain:
        return DataLoader(data, batch_sampler=PlanBatchSampler(plan), **options)
    return PlanLoader(data, plan, **options)


def fit(
    make: Any,
    *,
    inside: bool = False,
    validate: bool = True,
    ckpt: Any = None,
    package: Any = pl,
    alone: bool = False,
    **options: Any,
) -> Any:
    """Train with what `make` returns, inside the hook or outside; return the model.

    `alone` leaves out the callback that trainers put in by themselves.
    """
    model = (Recorder if package is pl else OlderRecorder)(make if inside else None)
    valid = loader(VALID) if validate else None
    fitting = trainer(package, **{"max_epochs": 4, **options})
    if alone:
        others = [each for each in fitting.callbacks if not isinstance(each, RefreshStepCounts)]
        fitting.callbacks = others
    try:
        fitting.fit(model, None if inside else make(), valid, ckpt_path=ckpt)
    except ip.IndexPlanError as error:
        model.refused = str(error)
    return model


class Elsewhere(DDPStrategy):
    """A strategy that deals data to fewer ranks than run, and tells Lightning's samplers alone."""

    @property
    def distributed_sampler_kwargs(self) -> dict[str, Any]:
        """All ranks are peers."""
        return {"num_replicas": 1, "rank": 0}


def checkpoints(folder: str, name: str) -> list[Any]:
    """Checkpoints of every second step, of every validation's end and of every epoch's end."""
    kinds: dict[str, Any] = {
        "step": {"filename": f"{name}-{{step}}", "every_n_train_steps": 2},
        "validation": {
            "filename": f"{name}-validation-{{epoch}}",
            "mode": "max",  # only to tell it from the next one
            "save_on_train_epoch_end": False,
        },
        "end": {"filename": f"{name}-end-{{epoch}}", "save_on_train_epoch_end": True},
    }
    return [ModelCheckpoint(folder, save_top_k=-1, **kind) for kind in kinds.values()]


def everything(folder: str) -> dict[str, Any]:
    """Run all that two ranks run, in one pair of processes; return the stories by name."""
    prepare()
    told: dict[str, Any] = {}

    def fits(name: str, what: str, ckpt: Any = None, **more: Any) -> None:
        """Train as a line of the table has it, and tell the story."""
        each = FITS[name]
        workers: Any = {"num_workers": each.workers}
        workers["persistent_workers"] = bool(each.workers) and each.inside
        callbacks = [RefreshStepCounts()] * each.passed + more.pop("callbacks", [])
        options = {**each.options, **more, "callbacks": callbacks, "inside": each.inside}
        options["package"] = pytorch_lightning if name == "older name" else pl
        model = fit(lambda: loader(each.plan, **workers), ckpt=ckpt, **options)
        told[what] = [model.story, model.trainer.global_step, model.validated]

    for name in FITS:
        if name in PLACES:
            saving = {"callbacks": checkpoints(folder, name), "enable_checkpointing": True}
            fits(name, f"fit {name}", **saving)
        elif not name.startswith("by steps"):
            fits(name, f"fit {name}")
    for saved, place, name in RESUMES:
        path = f"{folder}/{saved}-{place}.ckpt"
        fits(name, f"resume {saved} {place} {name}", path)

    for inside in (False, True):
        where: dict[str, Any] = {"inside": inside, "max_epochs": 1}
        plain = fit(lambda: loader(PLAN, plain=True), **where)
        overfit = fit(lambda: loader(PLAN), validate=False, overfit_batches=2, **where)
        told[f"made again {inside}"] = [plain.refused, overfit.refused]
    for workers in (0, 2):
        writer = Indices()
        trainer(callbacks=[writer]).predict(Recorder(), loader(EXACT, workers))
        told[f"writer {workers}"] = [writer.batches, writer.epoch]
    model = fit(lambda: loader(CHANGING), alone=True)
    told["not refreshed"] = [model.story, model.refused]
    model = fit(lambda: loader(PLAN), max_epochs=1, strategy=Elsewhere())
    told["another strategy"] = model.refused
    return told


def in_fabric() -> list[Any]:
    """Read in a function that Fabric launches, where it records what is set on samplers."""
    prepare()
    told: list[Any] = []

    def read(fabric: Any) -> None:
        loader = fabric.setup_dataloaders(PlanLoader(range(103), SCHEDULED))
        for _ in range(5):
            batches = [batch.tolist() for batch in loader]
            told.append([len(loader), batches])
        try:
            fabric.setup_dataloaders(
                DataLoader(range(103), batch_sampler=PlanBatchSampler(SCHEDULED))
            )  # type: ignore[arg-type]
        except ip.IndexPlanError as error:
            told.append(error.what)

    fabric = Fabric(accelerator="cpu", devices=int(os.environ["WORLD_SIZE"]), strategy="ddp")
    fabric.launch(read)
    return told


# --- what they tell


def place(plan: ip.Plan, number: int) -> tuple[int, int]:
    """The (epoch, sub_epoch) of a pass."""
    return divmod(number, plan.sub_epochs)


def passes(plan: ip.Plan, rank: int, start: int, stop: int, step: int | None = None) -> list[Any]:
    """A rank's batches of the passes [start, stop), from a step of the first one on."""
    return [
        [b.tolist() for b in plan.batches(*place(plan, n), rank=rank, start_step=first)]
        for n, first in zip(range(start, stop), [step] + [None] * (stop - start), strict=False)
    ]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """What two ranks tell: the stories of all runs, by rank."""
    return run_ranks(f"{__name__}:everything", 2, str(tmp_path_factory.mktemp("checkpoints")))


def story(name: str, rank: int, first: int = 0, step: int | None = None) -> list[Any]:
    """What a fit tells that goes on with a step of a pass: its batches, and each validation."""
    fit, plan = FITS[name], FITS[name].plan.replace(world_size=2)
    return [what for each in passes(plan, rank, first, 4, step) for what in fit.tell(each)]


@pytest.mark.parametrize("name", [name for name in FITS if not name.startswith("by steps")])
def test_fit_reads_the_plan(told: list[Any], name: str) -> None:
    """Four passes are the plan's, be they longer or shorter than the first, cut by a limit or not.

    Each validation reads the spread plan, with no sample twice, and within an epoch the same.
    """
    plan, valid = FITS[name].plan.replace(world_size=2), VALID.replace(world_size=2)
    for rank in RANKS:
        each = enumerate(passes(plan, rank, 0, 4))
        looks = [
            n for n, batches in each for _ in range(FITS[name].tell(batches).count("validated"))
        ]
        validated = sum((passes(valid, rank, n, n + 1)[0] for n in [0, *looks]), [])
        expected = [story(name, rank), FITS[name].num_steps, validated]
        assert expected == told[rank][f"fit {name}"]
    once = [passes(valid, rank, 0, 1)[0] for rank in RANKS]
    assert list(range(7)) == sorted(sum(sum(once, []), []))


@pytest.mark.parametrize(("saved", "place", "name"), RESUMES)
def test_resume_reads_the_rest(told: list[Any], saved: str, place: str, name: str) -> None:
    """Exactly what is left, whatever the checkpoint, the workers, the hook and the limit in steps.

    In the last step of a pass too, before a longer or a shorter one.
    """
    for rank in RANKS:
        expected = story(name, rank, *PLACES[saved][place])
        seen = told[rank][f"resume {saved} {place} {name}"]
        assert [expected, FITS[name].num_steps] == seen[:2]


@pytest.mark.parametrize("inside", [True, False])
def test_a_batch_sampler_is_not_made_again(told: list[Any], inside: bool) -> None:
    """Around a DistributedSampler, or a SequentialSampler for overfit_batches, it is no plan's.

    A DataLoader around a PlanBatchSampler would resume with the first pass if it had workers, which
    Lightning starts before it sets the epoch (its issue 21938).
    """
    for rank in RANKS:
        for said in told[rank][f"made again {inside}"]:
            assert said.startswith("a plan's batch sampler must not be made again around a trainer")


@pytest.mark.parametrize("workers", [0, 2])
def test_prediction_writers_get_the_indices(told: list[Any], workers: int) -> None:
    """A BasePredictionWriter is told which samples each batch and the epoch hold."""
    plan = EXACT.replace(world_size=2)
    for rank in RANKS:
        expected = passes(plan, rank, 0, 1)[0]
        assert [expected, expected] == told[rank][f"writer {workers}"]


def test_a_pass_that_lightning_cuts_is_an_error(told: list[Any]) -> None:
    """Without the callback Lightning cuts longer passes to the first's steps: seen at the next."""
    plan = CHANGING.replace(world_size=2)
    message = (
        "a pass must be read whole before a later one begins; got 6 of 9 steps of epoch 1, "
        "sub-epoch 0, and then epoch 2, sub-epoch 0; use ip.Epochs(order, 76), whose epochs "
        "have so many and lose none, under Lightning use RefreshStepCounts(), under Composer "
        "KeepState(), or pass partial=True if passes are left on purpose"
    )
    for rank in RANKS:
        first = [[*batches[:6], "validated"] for batches in passes(plan, rank, 0, 2)]
        assert [sum(first, []), message] == told[rank]["not refreshed"]


def test_a_strategy_that_deals_data_otherwise_is_an_error(told: list[Any]) -> None:
    """Ranks that the strategy gives to Lightning's own samplers are held against the loader's."""
    for rank in RANKS:
        expected = (
            f"rank and world_size must be the strategy's, 0 and 1; got {rank} and 2; pass rank= "
            "and world_size= to the loader"
        )
        assert expected == told[rank]["another strategy"]


@pytest.mark.parametrize("name", ["lightning.pytorch", "pytorch_lightning"])
def test_a_trainer_says_which_callback_it_adds(
    name: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody has to guess where a callback comes from that a Trainer was not given."""
    log = logging.getLogger(name)
    monkeypatch.setattr(log, "propagate", True)
    monkeypatch.setattr(log, "level", logging.INFO)
    alone = importlib.import_module(f"{name}.plugins.environments").LightningEnvironment()
    quiet = {"logger": False, "enable_progress_bar": False, "enable_checkpointing": False}
    made = importlib.import_module(name).Trainer
    trainer = made(accelerator="cpu", devices=1, plugins=[alone], **quiet)
    added = [each for each in trainer.callbacks if type(each).__name__ == "RefreshStepCounts"]
    assert 1 == len(added)
    assert "Adding 1 callbacks from entry point 'indexplan': RefreshStepCounts" in caplog.messages


def test_loaders_made_in_a_function_that_fabric_launches() -> None:
    """Passes and lengths are the plan's; a batch sampler, which Fabric makes again, is refused."""
    plan = SCHEDULED.replace(world_size=2)
    for rank, (*read, refused) in enumerate(run_ranks(f"{__name__}:in_fabric", 2)):
        assert [[len(each), each] for each in passes(plan, rank, 0, 5)] == read
        assert "a plan's batch sampler" == refused
