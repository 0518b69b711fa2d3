"""Plans in torchtitan's own code: its base of loaders, its config, its checkpoints; see .ci/run."""

from __future__ import annotations

import gc
import json
import multiprocessing
import re
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import pytest
import torch
from torchtitan.components.dataloader import BaseDataLoader
from torchtitan.components.loss import IGNORE_INDEX
from torchtitan.config import ConfigManager, Configurable

import indexplan as ip
from indexplan_torch.torchtitan import PlanDataLoader
from tests.adapters.test_token_rows import Rows
from tests.support.megatron_histories import draw_order
from tests.through.torchtitan_rows_checks import LENGTH, documents

pytestmark = pytest.mark.filterwarnings("ignore")  # of torch's checkpoints, about their formats


# --- in one process


class Numbers:
    """A dataset of rows of its own number, which fails when it is told to."""

    def __init__(self, num: int, failing: Any = ()) -> None:
        self.num, self.failing = num, set(failing)

    def __len__(self) -> int:
        return self.num

    def __getitem__(self, index: int) -> Any:
        if index in self.failing:
            self.failing.remove(index)
            raise OSError(index)
        return {"input": torch.full((3,), index)}, torch.full((3,), index)


def loaders(order: ip.Order, world_size: int, rows: int, **changes: Any) -> list[PlanDataLoader]:
    """Return the loaders of all ranks."""
    sizes = {"local_batch_size": rows, "seq_len": 3, "snapshot_every_n_steps": 5}
    given = {"dataset": Numbers(order.num_samples), "order": order, **changes}
    return [
        PlanDataLoader.Config(**given).build(
            dp_world_size=world_size, dp_rank=rank, tokenizer=None, **sizes
        )
        for rank in range(world_size)
    ]


def step_of(ranks: list[PlanDataLoader], num: int = 1) -> list[int]:
    """Return what all ranks train on in an optimizer step; StopIteration at the end."""
    labels = [next(iter(each))[1] for _ in range(num) for each in ranks]
    rows = torch.cat([each.reshape(-1, 3) for each in labels])
    assert (rows == rows[:, :1]).all()
    return [number for number in rows[:, 0].tolist() if number != IGNORE_INDEX]


def rest(ranks: list[PlanDataLoader]) -> list[int]:
    """Return what finite loaders read until they end, all of them in the same step."""
    read: list[int] = []
    while True:
        try:
            read += step_of(ranks)
        except StopIteration:
            break
    for each in ranks:
        with pytest.raises(StopIteration):
            next(each)
    return read


def exchanged(state: dict[str, Any]) -> dict[str, Any]:
    """Return a state as a checkpoint keeps it: one text."""
    assert ["indexplan"] == list(state)
    assert isinstance(state["indexplan"], str)
    return dict(state)


def test_the_last_step_and_before_the_first() -> None:
    """A finite run that resumes at its end reads nothing; a later endless one the next epoch."""
    order = ip.Shuffle(22, seed=1)
    ranks = loaders(order, 2, 3, infinite=False)
    first = exchanged(ranks[0].state_dict())
    assert order.take(0, 0, 22).tolist() == rest(ranks)
    (last, other) = [exchanged(each.state_dict()) for each in ranks]
    assert last == other
    for world_size in (1, 2, 5):
        again = loaders(order, world_size, 2, infinite=False)
        for each in again:
            each.load_state_dict(last)
        assert rest(again) == []
        for each in again:
            each.load_state_dict(first)
        assert order.take(0, 0, 22).tolist() == rest(again)
    (endless,) = loaders(order, 1, 4, infinite=True)
    endless.load_state_dict(last)
    assert order.take(1, 0, 4).tolist() == step_of([endless])
    # a step before the end, whose rest is less than a batch of each rank
    ranks = loaders(order, 2, 5, infinite=False)
    step_of(ranks, 2)
    (one,) = loaders(order, 1, 8, infinite=False)
    one.load_state_dict(ranks[1].state_dict())
    assert order.take(0, 20, 22).tolist() == rest([one])


def test_a_failed_step() -> None:
    """A batch that fails is returned by the next call, and a step's state takes the loop back."""
    order = ip.Sequential(40)
    (loader,) = loaders(order, 1, 4, dataset=Numbers(40, failing=[9]))
    assert [*range(8)] == step_of([loader], 2)
    saved = exchanged(loader.state_dict())
    with pytest.raises(OSError, match="9"):
        step_of([loader])
    assert saved == loader.state_dict()
    assert [8, 9, 10, 11] == step_of([loader])
    loader.load_state_dict(saved)  # a step that failed after it had its batches
    assert [*range(8, 16)] == step_of([loader], 2)


@pytest.mark.parametrize("persistent", [True, False])
def test_closing_ends_workers(persistent: bool) -> None:
    """At once, with the garbage collector off, as torchtitan's trainer runs."""
    options = {"num_workers": 2, "persistent_workers": persistent}
    (loader,) = loaders(ip.Sequential(40), 1, 4, **options)
    before = {each.pid for each in multiprocessing.active_children()}
    gc.disable()
    try:
        for start in (0, 4):
            assert [*range(start, start + 4)] == step_of([loader])
            assert 2 == len({e.pid for e in multiprocessing.active_children()} - before)
            loader.close()
            assert before == {each.pid for each in multiprocessing.active_children()}
    finally:
        gc.enable()


@dataclass(frozen=True)
class Leg:
    """A job between two starts."""

    world_size: int
    rows: int
    steps: tuple[int, ...]  # accumulated batches of each
    fails: bool


def draw(key: str) -> tuple[ip.Order, list[Leg], bool]:
    """Draw an order, legs, and whether the run is finite."""
    random = Random(key)  # noqa: S311 (for a history that comes again, not for a secret)
    order = draw_order(random, 150)
    found = [
        Leg(
            random.choice([1, 2, 3, 4, 5, 8]),
            random.randint(1, 5),
            tuple(random.randint(1, 3) for _ in range(random.randint(0, 4))),
            random.random() < 0.3,
        )
        for _ in range(random.randint(1, 5))
    ]
    return order, found, random.random() < 0.5


def check_history(key: str) -> int:
    """Run a history; compare each optimizer step with the run's next places."""
    order, found, finite = draw(key)
    num = order.num_units(0)
    stop = num if finite else 2**62
    place, state = 0, None
    for leg in found:
        random = Random(f"{key} {place}")  # noqa: S311 (the same)
        ranks = loaders(
            order,
            leg.world_size,
            leg.rows,
            infinite=not finite,
        )
        for each in ranks if state is not None else []:
            each.load_state_dict(state)
        for accumulated in leg.steps:
            size = leg.world_size * leg.rows
            batches = min(accumulated, -(-(stop - place) // size))
            end = min(place + batches * size, stop)
            if leg.fails and place < end:
                unit = random.randrange(place, min(end, place + size))
                index = int(order.take(unit // num, unit % num, unit % num + 1)[0])
                ranks[0]._batches._loader.dataset.failing.add(index)
            read: list[int] = []
            for _ in range(batches):
                for each in ranks:
                    try:
                        _, labels = next(each)
                    except OSError:
                        _, labels = next(each)
                    read += [n for n in labels.reshape(-1, 3)[:, 0].tolist() if n != IGNORE_INDEX]
            expected: list[int] = []
            while place < end:
                upto = min(end, (place // num + 1) * num)
                expected += order.take(place // num, place % num, (upto - 1) % num + 1).tolist()
                place = upto
            assert expected == read, key
            if batches < accumulated:
                assert [] == rest(ranks)
        (state, *others) = [exchanged(each.state_dict()) for each in ranks]
        assert all(state == other for other in others), (state, others)
        assert place == json.loads(state["indexplan"])["consumed_samples"]
    return place


@pytest.mark.parametrize("number", range(60))
def test_drawn_histories(number: int) -> None:
    """Other ranks, rows, accumulations, signatures and failures; finite and endless."""
    check_history(f"titan {number}")


# --- torchtitan's config


class Job(Configurable):
    """A trainer that only has a loader."""

    @dataclass(kw_only=True, slots=True)
    class Config(Configurable.Config):
        """With the loader's config, as in torchtitan's trainer."""

        hf_assets_path: str = "."  # which the manager looks for
        dataloader: BaseDataLoader.Config = field(default_factory=BaseDataLoader.Config)


def job() -> Job.Config:
    """Return what a config registry's function returns."""
    rows = Rows(documents(80, 60), LENGTH)
    rows.__dict__["made"] = 98  # which another one has not
    order = ip.DocumentWindows([len(each) - 1 for each in rows.tokens], LENGTH, overlap=0)
    return Job.Config(dataloader=PlanDataLoader.Config(dataset=rows, order=order))


def test_the_command_line_and_the_log() -> None:
    """The command sets the options that are text or numbers; a log has the order."""
    told = ["--module", __name__, "--config", "job", "--dataloader.num_workers", "3"]
    config = ConfigManager().parse_args([*told, "--dataloader.no-infinite"]).dataloader
    assert (3, False) == (config.num_workers, config.infinite)
    assert (80, 98) == (len(config.dataset), config.dataset.__dict__["made"])
    logged = json.loads(json.dumps(config.to_dict()))
    assert ("Rows", config.order.to_dict()) == (logged["dataset"], logged["order"])
    # what torchtitan's validator does
    assert replace(config, infinite=True).infinite


# --- what is refused

BUILT = {"dp_world_size": 2, "dp_rank": 0, "tokenizer": None}


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        (
            {},
            "local_batch_size must be an integer from 1 to 2**62 - 1; got None; build the loader "
            "by its config, as torchtitan 0.3.0's trainer does",
        ),
        (
            {"num_tokens_per_batch": 64, "max_context_length": 16},  # torchtitan's main asks so
            "local_batch_size must be an integer from 1 to 2**62 - 1; got None; build the loader "
            "by its config, as torchtitan 0.3.0's trainer does",
        ),
        (
            {"local_batch_size": 4, "seq_len": 16, "dp_rank": 2},
            "rank must be an integer from 0 to 1; got 2; count ranks from 0, below world_size=2",
        ),
    ],
)
def test_arguments_that_are_refused(sizes: dict[str, Any], message: str) -> None:
    """When the trainer builds the loader."""
    with pytest.raises(ip.IndexPlanError, match=f"^{re.escape(message)}$"):
        job().dataloader.build(**{**BUILT, **sizes})


CURE = "start with this loader after another one by --checkpoint.exclude_from_loading dataloader"


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({}, f"state must be a PlanDataLoader's; got a dict of []; {CURE}"),
        (
            {"dp_rank_0": b"...", "world_size": 2},
            f"state must be a PlanDataLoader's; got a dict of ['dp_rank_0', 'world_size']; {CURE}",
        ),
        (None, f"state must be a PlanDataLoader's; got None; {CURE}"),
        (
            {"indexplan": "{"},
            f"state must be a PlanDataLoader's; got a dict of ['indexplan']; {CURE}",
        ),
        (
            {"indexplan": json.dumps({**json.loads("{}"), "version": 1})},
            "state must be a PlanIterator's; got a dict of ['version']; pass what save_state "
            "returned",
        ),
    ],
)
def test_states_that_are_refused(state: Any, message: str) -> None:
    """Nothing changes then."""
    (loader,) = loaders(ip.Sequential(40), 1, 4)
    step_of([loader])
    with pytest.raises(ip.IndexPlanError, match=f"^{re.escape(message)}$"):
        loader.load_state_dict(state)
    assert [4, 5, 6, 7] == step_of([loader])


def test_a_state_of_another_order() -> None:
    """Whose samples would be others."""
    (one,), (other,) = (loaders(ip.Shuffle(40, seed=seed), 1, 4) for seed in (1, 2))
    with pytest.raises(ip.IndexPlanError, match=r"^a cursor must belong to the plan's order; got"):
        other.load_state_dict(one.state_dict())


def test_labels_that_cannot_be_left_out() -> None:
    """At the first batch of a finite loader, not at its last."""

    class Images(Numbers):
        def __getitem__(self, index: int) -> Any:
            return {"input": torch.ones(3)}, torch.ones(3)

    (loader,) = loaders(ip.Sequential(2), 1, 2, dataset=Images(2), infinite=False)
    message = (
        "labels of a finite loader must be integers, as many for each row; got tensor([[1., 1., "
        "1.], [1., 1., 1.]]); return such ones, or leave infinite=False out"
    )
    with pytest.raises(ip.IndexPlanError, match=f"^{re.escape(message)}$"):
        next(loader)
    (endless,) = loaders(ip.Sequential(2), 1, 2, dataset=Images(2))
    assert torch.equal(torch.ones(2, 3), next(endless)[1])
