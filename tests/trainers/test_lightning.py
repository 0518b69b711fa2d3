"""Lightning's Trainer with its default settings: two ranks over gloo."""

import importlib
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import indexplan as ip
from tests.trainers.ranks import run_ranks

RUNS = "tests.trainers.lightning_runs"
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

# checkpoint: (of which run, resumed with how many workers, where); its name says what it is of
RESUMES = {
    "step=2 a": ("loader-0-outside", 0, "outside"),
    "step=6 a": ("loader-0-outside", 2, "inside"),
    "step=6 b": ("loader-2-inside", 0, "outside"),
    "step=6 c": ("loader-2-outside", 2, "outside"),
    "step=8 a": ("loader-0-inside", 0, "inside"),
    "step=8 b": ("loader-2-inside", 2, "inside"),
    "validation-epoch=1 a": ("loader-0-inside", 0, "outside"),
    "validation-epoch=1 b": ("loader-2-outside", 2, "inside"),
    "end-epoch=1 a": ("loader-0-outside", 0, "inside"),
    "end-epoch=1 b": ("loader-2-inside", 2, "outside"),
}
# where those checkpoints stand: (pass, step)
PLACES = {
    "step=2": (0, 2),
    "step=6": (1, 2),
    "step=8": (2, 0),
    "validation-epoch=1": (2, 0),
    "end-epoch=1": (2, 0),
}
FITS = [
    *(f"loader-{workers}-{where}" for workers in (0, 2) for where in ("outside", "inside")),
]
KINDS = ["loader 0", "loader 2"]
CHANGING_RESUMES = [
    ("step=4", (0, 4)),
    ("step=6", (1, 0)),  # the last step of a pass, before a longer one
    ("step=18", (2, 3)),
    ("step=28", (3, 0)),  # the last step of a pass, before a shorter one
    ("step=30", (3, 2)),
    ("validation-epoch=0", (1, 0)),
    ("validation-epoch=2", (3, 0)),
    ("end-epoch=0", (1, 0)),
    ("end-epoch=2", (3, 0)),
]


def place(plan: ip.Plan, number: int) -> tuple[int, int]:
    """The (epoch, sub_epoch) of a pass."""
    return divmod(number, plan.sub_epochs)


def passes(plan: ip.Plan, rank: int, start: int, stop: int, step: int | None = None) -> list[Any]:
    """A rank's batches of the passes [start, stop), from a step of the first one on."""
    return [
        [b.tolist() for b in plan.batches(*place(plan, n), rank=rank, start_step=first)]
        for n, first in zip(range(start, stop), [step] + [None] * (stop - start), strict=False)
    ]


def story(passes: list[Any]) -> list[Any]:
    """What a training tells that validates after each pass."""
    return [what for batches in passes for what in [*batches, "validated"]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where checkpoints are."""
    return tmp_path_factory.mktemp("checkpoints")


@pytest.fixture(scope="module")
def told(folder: Path) -> list[Any]:
    """What two ranks tell: the stories of all runs, by rank."""
    return run_ranks(f"{RUNS}:everything", 2, str(folder))


@pytest.mark.parametrize("name", FITS)
def test_fit_reads_the_plan(told: list[Any], name: str) -> None:
    """Four passes of three sub-epochs per epoch are the plan's, and each is validated."""
    plan = PLAN.replace(world_size=2)
    for rank in RANKS:
        assert story(passes(plan, rank, 0, 4)) == told[rank][f"fit {name}"]


@pytest.mark.parametrize("name", FITS)
def test_fit_validates_every_sample_once(told: list[Any], name: str) -> None:
    """The sanity check and each validation read the spread plan, with no sample twice."""
    plan = VALID.replace(world_size=2)
    for rank in RANKS:
        expected = sum((passes(plan, rank, n, n + 1)[0] for n in [0, 0, 1, 2, 3]), [])
        assert expected == told[rank][f"validated {name}"]
    once = [passes(plan, rank, 0, 1)[0] for rank in RANKS]
    assert list(range(7)) == sorted(sum(sum(once, []), []))


@pytest.mark.parametrize("name", RESUMES)
def test_resume_reads_the_rest(told: list[Any], name: str) -> None:
    """A resume reads exactly what is left, whatever the checkpoint, the workers and the hook."""
    number, step = PLACES[name.split(maxsplit=1)[0]]
    plan = PLAN.replace(world_size=2)
    for rank in RANKS:
        expected = story(passes(plan, rank, number, 4, step))
        assert expected == told[rank][f"resume {name}"]


@pytest.mark.parametrize("where", ["inside", "outside"])
@pytest.mark.parametrize("name", ["plain", "overfit"])
def test_a_batch_sampler_is_not_made_again(told: list[Any], name: str, where: str) -> None:
    """Around a DistributedSampler, or a SequentialSampler for overfit_batches, it is no plan's.

    A DataLoader around a PlanBatchSampler would resume with the first pass if it had workers, which
    Lightning starts before it sets the epoch (its issue 21938).
    """
    for rank in RANKS:
        said = told[rank][f"{name} {where}"]
        assert said.startswith("a plan's batch sampler must not be made again around a trainer's ")


@pytest.mark.parametrize("name", ["step=6", "step=8", "validation-epoch=1", "end-epoch=1"])
def test_resume_by_max_steps_reads_the_rest(told: list[Any], name: str) -> None:
    """With the callback, a training by steps resumes exactly from all checkpoints too."""
    number, step = PLACES[name]
    plan = PLAN.replace(world_size=2)
    for rank in RANKS:
        expected = passes(plan, rank, number, 4, step)
        assert story(expected) == told[rank][f"max_steps {name} True"]
        if name != "validation-epoch=1":  # which nothing without validation can end
            assert sum(expected, []) == told[rank][f"max_steps {name} False"]


@pytest.mark.parametrize("name", KINDS)
def test_prediction_writers_get_the_indices(told: list[Any], name: str) -> None:
    """A BasePredictionWriter is told which samples each batch and the epoch hold."""
    plan = EXACT.replace(world_size=2)
    for rank in RANKS:
        expected = passes(plan, rank, 0, 1)[0]
        assert [expected, expected] == told[rank][f"writer {name}"]


def test_validation_repeats_itself_within_an_epoch(told: list[Any]) -> None:
    """Validating twice in an epoch reads the same batches twice."""
    plan, valid = PLAN.replace(world_size=2), VALID.replace(world_size=2)
    for rank in RANKS:
        (batches,) = passes(plan, rank, 0, 1)
        expected = [*batches[:2], "validated", *batches[2:], "validated"]
        assert [expected, 3 * passes(valid, rank, 0, 1)[0]] == told[rank]["validated twice"]


@pytest.mark.parametrize("name", ["by itself", "refreshed", "workers", "older name"])
def test_refreshed_counts_follow_the_schedule(told: list[Any], name: str) -> None:
    """With the callback every step of longer and shorter passes is taken, and each validated."""
    plan = CHANGING.replace(world_size=2)
    assert [6, 9, 13, 10] == [plan.steps(number).stop for number in range(4)]
    for rank in RANKS:
        expected = story(passes(plan, rank, 0, 4))
        assert [expected, 38] == told[rank][f"changing {name}"]


def test_refreshed_counts_respect_limits(told: list[Any]) -> None:
    """limit_train_batches holds for each pass: a number of its batches, or a share."""
    plan = CHANGING.replace(world_size=2)
    for rank in RANKS:
        whole = passes(plan, rank, 0, 4)
        for name in ("changing at most 5", "changing at most 5, by itself"):
            assert [story([b[:5] for b in whole]), 20] == told[rank][name]
        assert [story([b[: len(b) // 2] for b in whole]), 18] == told[rank]["changing half"]


def test_refreshed_counts_accumulate(told: list[Any]) -> None:
    """With accumulated gradients each pass ends with an optimizer step: 2 + 3 + 4 + 3."""
    plan = CHANGING.replace(world_size=2)
    for rank in RANKS:
        assert [story(passes(plan, rank, 0, 4)), 12] == told[rank]["changing accumulated"]


def test_refreshed_counts_validate_within_an_epoch(told: list[Any]) -> None:
    """A val_check_interval of half an epoch is half of each pass."""
    plan = CHANGING.replace(world_size=2)
    for rank in RANKS:
        expected = []
        for batches in passes(plan, rank, 0, 4):
            for number, batch in enumerate(batches, 1):
                expected += [batch] + ["validated"] * (number % (len(batches) // 2) == 0)
        assert [expected, 38] == told[rank]["changing twice"]


@pytest.mark.parametrize(("name", "where"), CHANGING_RESUMES)
def test_refreshed_counts_resume(told: list[Any], name: str, where: tuple[int, int]) -> None:
    """Resumed anywhere, in the last step of a pass too, every step that is left is taken once."""
    plan = CHANGING.replace(world_size=2)
    for rank in RANKS:
        expected = story(passes(plan, rank, where[0], 4, where[1]))
        assert [expected, 38] == told[rank][f"changing resume {name}"]


def test_a_pass_that_lightning_cuts_is_an_error(told: list[Any]) -> None:
    """Without the callback Lightning cuts longer passes to the first's steps: seen at the next."""
    plan = CHANGING.replace(world_size=2)
    for rank in RANKS:
        expected = story([batches[:6] for batches in passes(plan, rank, 0, 2)])
        message = (
            "a pass must be read whole before a later one begins; got 6 of 9 steps of epoch 1, "
            "sub-epoch 0, and then epoch 2, sub-epoch 0; use ip.Epochs(order, 76), whose epochs "
            "have so many and lose none, under Lightning use RefreshStepCounts(), under Composer "
            "KeepState(), or pass partial=True if passes are left on purpose"
        )
        assert [expected, message] == told[rank]["changing not refreshed"]


def test_a_strategy_that_deals_data_otherwise_is_an_error(told: list[Any]) -> None:
    """Ranks that the strategy gives to Lightning's own samplers are held against the loader's."""
    for rank in RANKS:
        expected = (
            f"rank and world_size must be the strategy's, 0 and 1; got {rank} and 2; pass rank= "
            "and world_size= to the loader"
        )
        assert expected == told[rank]["another strategy"]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("world_size", [1, 2])
def test_a_model_that_estimates_its_steps_resumes(
    world_size: int, workers: int, tmp_path: Path
) -> None:
    """Lightning counts steps for it before it loads a state, which costs other loaders theirs."""
    told = run_ranks(f"{RUNS}:estimated", world_size, str(tmp_path), 13, workers)
    plan = EXACT.replace(world_size=world_size)
    for rank, (before, after) in enumerate(told):
        assert sum(passes(plan, rank, 0, 3), []) == before + after
        assert 13 == len(before)


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
