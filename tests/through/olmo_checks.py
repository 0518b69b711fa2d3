"""Plans in OLMo-core's own code: its Trainer and its Checkpointer."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import count, takewhile
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch

import indexplan as ip
from tests.runs.row import Leg, Steps, in_processes
from tests.support.forked import results
from tests.trainers.ranks import forks_of

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of OLMo-core, about what is not installed
    from olmo_core.data import (
        DataCollator,
        NumpyFSLDataLoader,
        NumpyFSLDatasetConfig,
        TokenizerConfig,
    )
    from olmo_core.train.callbacks import Callback

    from indexplan_torch.olmo import PlanDataLoader
    from tests.runs.frameworks.olmo_core import LENGTH, Numbered, trained

pytestmark = pytest.mark.filterwarnings("ignore")

ORDER = ip.Shuffle(50, seed=1)


def loader(order: ip.Order = ORDER, **changes: Any) -> PlanDataLoader:
    """Return a loader of numbered samples, of one rank among one unless it is said."""
    given = {
        "collator": DataCollator(pad_token_id=0),
        "global_batch_size": 24 * LENGTH,
        "sequence_length": LENGTH,
        "work_dir": ".",
        "dp_world_size": 1,
        "dp_rank": 0,
        **changes,
    }
    dataset = given.pop("dataset", Numbered(order.num_samples))
    return PlanDataLoader(dataset, order, **given)


def numbers(batch: dict[str, Any]) -> list[int]:
    """Return a batch's samples."""
    read: list[int] = batch["input_ids"][:, 0].tolist()
    return read


def stream(order: ip.Order) -> Iterator[int]:
    """Yield the index at each place of a run, epoch by epoch."""
    for epoch in count():
        yield from order.take(epoch, 0, order.num_units(epoch)).tolist()


# --- the Trainer, with its own checkpoints, in processes


@dataclass
class Sizes(Callback):
    """A schedule of global batches by step, which no rule of OLMo-core's scheduler restrains."""

    sizes: dict[int, int] = field(default_factory=dict)

    def pre_load_batch(self) -> None:
        """Set the size that is due."""
        due = [size for step, size in self.sizes.items() if step <= self.trainer.global_step]
        self.trainer.data_loader.global_batch_size = due[-1] * LENGTH


def fit(leg: Leg, callbacks: Callable[[], dict[str, Callback]]) -> Steps:
    """Train a leg."""
    return trained(leg, partial(loader_of_ranks, leg), callbacks())


def loader_of_ranks(leg: Leg, work_dir: Path) -> PlanDataLoader:
    """Return a loader that finds the ranks of the process group, and keeps a ledger."""
    ranks: dict[str, Any] = {"dp_world_size": None, "dp_rank": None}
    assert leg.save is not None
    ranks["ledger"] = leg.save.parent / "run.ledger"
    order = ip.Shuffle(leg.samples, seed=1)
    size = leg.global_batch * LENGTH
    return loader(order, global_batch_size=size, work_dir=work_dir, **ranks)


def legs(folder: str, jobs: list[list[int]], samples: int, callbacks: str) -> list[list[int]]:
    """Train jobs of (ranks, steps) one after another; return the samples of each optimizer step.

    A third number is that of the job from whose checkpoint one goes on, in place of the last.
    """
    ip.Plan(ORDER, world_size=1, batch_size=2).batch(0, step=0, rank=0)  # compiled before the forks
    train = partial(fit, callbacks={"none": dict, "sized": sized}[callbacks])
    steps: list[list[int]] = []
    checkpoint = None
    for number, (world_size, num_steps, *loads) in enumerate(jobs):
        for load in loads:
            checkpoint = Path(folder, f"checkpoint-{load}")
            steps = steps[: sum(job[1] for job in jobs[: load + 1])]
        save = Path(folder, f"checkpoint-{number}")
        made = [
            Leg(rank, world_size, num_steps, checkpoint, save, samples, 12)
            for rank in range(world_size)
        ]
        ranks = in_processes(train, made, Path(folder, f"leg-{number}"))
        assert [num_steps] * world_size == [len(rank) for rank in ranks]
        steps += [sum(parts, []) for parts in zip(*ranks, strict=True)]
        checkpoint = save
    return steps


def trained_in_legs(
    folder: Path, jobs: list[tuple[int, ...]], samples: int = 50, callbacks: str = "none"
) -> list[list[int]]:
    """Return what `legs` does in a process without threads, from which ranks may be forked.

    What the trainer has read is what the ledger tells.
    """
    job, log = f"{__name__}:legs", folder / "legs.log"
    arguments = (str(folder), jobs, samples, callbacks)
    forked = forks_of(__name__).start(job, log, *arguments, TIMEOUT="900")
    steps: list[list[int]]
    (steps,) = results([forked])
    ledger = ip.Ledger(folder / "run.ledger")
    assert ledger.verify().ok
    told = [
        [
            sample
            for rank in range(ledger.at(step).plan.world_size or 0)
            for sample in ledger.batch(step, rank).tolist()
        ]
        for step in range(ledger.step)
    ]
    assert steps == told
    return steps


def check(steps: list[list[int]], sizes: list[int], samples: int = 50) -> None:
    """Compare each step's samples with the next places of the run, in any sequence of ranks."""
    places = stream(ip.Shuffle(samples, seed=1))
    assert sizes == [len(step) for step in steps]
    for step in steps:
        assert sorted(next(places) for _ in step) == sorted(step)


def test_the_trainer_resumes_at_every_kind_of_place(tmp_path: Path) -> None:
    """Before the first step, inside an epoch, after its last step, and in the one after."""
    # epochs of 50 samples in steps of 12: 5 steps, then 4
    returns = 3, 3, 1
    jobs = [(4, 0), (3, 2), (2, 2), returns, (4, 0), (3, 1), (1, 3), (2, 0)]
    check(trained_in_legs(tmp_path, jobs), [12] * 9)
    assert 2 == ip.Ledger(tmp_path / "run.ledger").account().num_void_steps


def sized() -> dict[str, Callback]:
    """Return sizes that are no multiples of each other, set at steps that are none."""
    return {"sizes": Sizes({0: 12, 3: 36, 5: 60, 6: 24, 9: 12})}


def test_the_trainer_with_any_batch_size_at_any_step(tmp_path: Path) -> None:
    """On 4, 3 and 2 ranks in the middle of an epoch, and over its end."""
    steps = trained_in_legs(tmp_path, [(4, 4), (3, 4), (2, 4)], 200, "sized")
    check(steps, [12] * 3 + [36] * 2 + [60] + [24] * 3 + [12] * 3, samples=200)


# --- drawn histories, through the protocol that the Trainer calls


@dataclass
class History:
    """Loops as the Trainer makes them, on ranks and with sizes that a random stream draws.

    With a ledger, they also return to earlier states, and the ledger tells what each step has read.
    """

    random: Random
    order: ip.Order
    remainder: Any
    ledger: Path | None = None
    steps: list[list[list[int]]] = field(default_factory=list)  # that count, by rank
    written: list[list[list[int]]] = field(default_factory=list)  # that the ledger counts
    num_void: int = 0
    unread: bool = True  # whether a size has been set since the last step
    least: int = 1  # the size of the smallest global batch that may come
    saved: list[tuple[Any, ...]] = field(default_factory=list)

    def run(self) -> None:
        """Run a few jobs; raise where a step reads other than what comes next."""
        self.epoch, self.position, state = 1, 0, None
        num = self.random.randint(1, 5)
        for job in range(num):
            if self.ledger and self.saved:
                state, self.epoch, self.position, self.least, steps = self.random.choice(self.saved)
                self.steps = [*steps]
            self.world_size = self.random.choice([num for num in range(1, 5) if self.sizes(num)])
            size = self.size() * LENGTH
            self.ranks = [
                loader(
                    self.order,
                    global_batch_size=size,
                    dp_world_size=self.world_size,
                    dp_rank=rank,
                    remainder=self.remainder,
                    ledger=False if self.ledger and rank else self.ledger,  # no process group
                )
                for rank in range(self.world_size)
            ]
            for each in self.ranks if state else []:
                each.load_state_dict(state)
            self.left = self.random.randint(int(self.ledger is not None and job + 1 == num), 12)
            while self.fit_epoch():
                pass
            state = self.save()
        if self.ledger:
            self.compare_ledger(ip.Ledger(self.ledger))

    def save(self) -> Any:
        """Return the state of rank 0, equal on all ranks but for the ledger's hash."""
        state, *others = [each.state_dict() for each in self.ranks]
        alike = {key: value for key, value in state.items() if key != "ledger"}
        assert all(alike == other for other in others), (state, others)
        self.saved.append((state, self.epoch, self.position, self.least, [*self.steps]))
        return state

    def compare_ledger(self, ledger: ip.Ledger) -> None:
        """Compare each step of each rank with what the ledger tells."""
        assert ledger.verify().ok, str(ledger.verify())
        assert len(self.steps) == ledger.step
        for step, ranks in enumerate(self.steps):
            assert len(ranks) == ledger.at(step).plan.world_size
            assert ranks == [ledger.batch(step, rank).tolist() for rank in range(len(ranks))]
        # a state that counts again has void steps too
        assert self.num_void <= ledger.account().num_void_steps

    def size(self) -> int:
        """Draw a global batch, in samples."""
        self.unread = True
        return self.random.choice(self.sizes(self.world_size))

    def sizes(self, world_size: int) -> list[int]:
        """Return the global batches of some ranks; they fit into an epoch: "drop" has steps."""
        most = self.order.num_samples // world_size
        sizes = [world_size * each for each in range(1, min(most, 9) + 1)]
        return [size for size in sizes if size >= self.least]

    def fit_epoch(self) -> bool:
        """Do what `Trainer._fit_epoch` does; return whether the job continues."""
        if self.left == 0:
            return False
        for each in self.ranks:
            each.reshuffle(self.epoch)
        loops = [iter(each) for each in self.ranks]
        while True:
            if self.random.random() < 0.2:
                size = self.size() * LENGTH
                for each in self.ranks:
                    each.global_batch_size = size
            first = self.ranks[0]
            left = first.total_batches - first.batches_processed
            batches = [next(loop, None) for loop in loops]
            if batches[0] is None:
                assert left == 0
                assert [None] * len(batches) == batches
                break
            self.compare([numbers(batch) for batch in batches if batch])
            self.left -= 1
            if self.left == 0:
                return False
            if self.ledger and self.random.random() < 0.2:
                self.save()
            if self.ledger and self.random.random() < 0.1:
                self.ranks[0].get_mock_batch()
        self.epoch += 1
        if self.remainder == "drop":
            self.position = 0
            if self.ledger and self.unread:  # what this size dropped, smaller ones could read
                self.least = self.ranks[0].global_batch_size // LENGTH
        for each in self.ranks:
            each.reset()
        return True

    def compare(self, ranks: list[list[int]]) -> None:
        """Compare a step with the next places of the run, or of the epoch."""
        first = self.ranks[0]
        size = first.global_batch_size // LENGTH
        assert [size // self.world_size] * self.world_size == [len(rank) for rank in ranks]
        assert size * LENGTH == first.global_num_tokens_in_batch({})
        num, start = self.order.num_samples, self.position
        if self.remainder == "drop":
            expected = self.order.take(self.epoch - 1, start, start + size).tolist()
            assert start + size <= num
        else:
            places = [divmod(place, num) for place in range(start, start + size)]
            expected = [int(self.order.take(epoch, at, at + 1)[0]) for epoch, at in places]
        assert expected == sum(ranks, [])
        self.position += size
        self.unread, self.least = False, 1
        if self.ledger and self.steps != self.written:  # a ledger returns where a pass begins
            both = zip(self.steps, self.written, strict=False)
            self.num_void += len(self.written) - sum(1 for _ in takewhile(_same, both))
        self.steps.append(ranks)
        self.written = [*self.steps]


def _same(pair: tuple[Any, Any]) -> bool:
    return bool(pair[0] == pair[1])


@pytest.mark.parametrize("number", range(120))
def test_histories(number: int) -> None:
    """Every step reads what comes next, whatever the ranks, the sizes and the stops."""
    random = Random(f"olmo {number}")  # noqa: S311 (for a history that comes again)
    order = ip.Shuffle(random.randint(4, 60), random.randrange(2**64))
    History(random, order, random.choice(["carry", "carry", "drop"])).run()


@pytest.mark.parametrize("number", range(80))
def test_histories_with_a_ledger(number: int, tmp_path: Path) -> None:
    """It has each step that counts, with what each rank has read, and as many void ones."""
    random = Random(f"olmo, with a ledger {number}")  # noqa: S311 (for a history that comes again)
    order = ip.Shuffle(random.randint(4, 60), random.randrange(2**64))
    remainder = random.choice(["carry", "carry", "drop"])
    History(random, order, remainder, tmp_path / "run.ledger").run()


# --- what else a loader has


def test_the_mock_batch() -> None:
    """It is the loop's first, and takes nothing from it, nor from torch's random stream."""
    ours = loader(dp_world_size=2, dp_rank=1)
    ours.reshuffle()
    before = torch.get_rng_state()
    mock = numbers(ours.get_mock_batch())
    assert torch.equal(before, torch.get_rng_state())
    assert [mock] == [numbers(batch) for batch in ours][:1]
    with pytest.raises(TypeError, match="not implemented"):  # Plan.batch has each
        ours[0]


def test_epochs_as_olmo_counts_them() -> None:
    """Batches in epochs under carry; an epoch is left by reset alone, and may be read again."""
    ours = loader(global_batch_size=12 * LENGTH)
    assert [5, 4, 4, 4, 4, 4] == [ours.batches_in_epoch(epoch) for epoch in range(1, 7)]
    ours.reshuffle()
    first = numbers(next(iter(ours)))
    rule = "epoch must be 1, which is not read to its end; got 2; "
    refuses(rule + "read it, or call reset() to leave it", lambda: ours.reshuffle(2))
    ours.reset()
    ours.reshuffle()
    assert first == numbers(next(iter(ours)))
    ours.reset()
    ours.reshuffle(4)
    assert (4, 4, 0) == (ours.epoch, ours.total_batches, ours.batches_processed)
    assert 4 == len([*ours])
    ours.reset()
    ours.reshuffle()
    assert 5 == ours.epoch


def test_workers_may_be_ahead_where_the_size_is_set() -> None:
    """What they have drawn is dropped, and read in batches of the new size."""
    alone, ahead = loader(ORDER, num_workers=0), loader(ORDER, num_workers=2)
    for each in (alone, ahead):
        each.reshuffle()
    loops = [iter(alone), iter(ahead)]
    for step in range(4):
        if step == 1:
            alone.global_batch_size = ahead.global_batch_size = 7 * LENGTH
        one, other = (numbers(next(loop)) for loop in loops)
        assert one == other
    assert alone.state_dict() == ahead.state_dict()


def numpy_dataset(tmp_path: Path, num: int = 50) -> Any:
    """Return a dataset of OLMo-core's own, whose instances are numbered."""
    tokens = tmp_path / f"{num}.npy"
    torch.arange(num, dtype=torch.uint8).repeat_interleave(LENGTH).numpy().tofile(tokens)
    dataset = NumpyFSLDatasetConfig(
        paths=[str(tokens)],
        sequence_length=LENGTH,
        tokenizer=TokenizerConfig(num + 1, num, num),
        work_dir=str(tmp_path),
    ).build()
    dataset.prepare()
    return dataset


Fits = tuple[int | str, ...]  # optimizer steps of a fit; or what is done between two


def fitted(make: Callable[[], Any], fits: Fits) -> list[Any]:
    """Return each step's epoch, first sample and counts, in loops as the Trainer's `fit` makes."""
    loader, epoch, told = make(), 1, list[Any]()
    for each in fits:
        if each == "resume":
            state, loader = loader.state_dict(), make()
            loader.load_state_dict(state)
        elif isinstance(each, str):
            loader.reset()
        left = each if isinstance(each, int) else 0
        while left:
            loader.reshuffle(epoch)
            for batch in loader:
                counts = loader.batches_processed, loader.tokens_processed, loader.total_batches
                told.append((epoch, numbers(batch)[0], *counts))
                left -= 1
                if not left:
                    break  # as the Trainer, which neither resets then nor counts the epoch
            else:
                epoch += 1
                loader.reset()
    return told


@pytest.mark.parametrize(
    "fits",
    [
        (2, 3),
        (4, 2),  # the first ends with the epoch
        (2, "reset", 3),
        (4, "reset", 3),
        (6, "reset", 1, "resume", 2),
        (2, "resume", 3),
        (4, "resume", 2),
        (2, "resume", "reset", 3),
        (2, "reset", "resume", 3),
        (3, "reset", "reset", 2),
    ],
)
def test_a_fit_after_a_reset_reads_what_olmos_own_loader_does(fits: Fits, tmp_path: Path) -> None:
    """It starts the epoch over; without one it continues, through checkpoints and epochs' ends."""
    dataset = numpy_dataset(tmp_path)
    given: dict[str, Any] = {"global_batch_size": 12 * LENGTH, "work_dir": str(tmp_path)}
    ours = partial(loader, ip.Sequential(50), dataset=dataset, remainder="drop", **given)
    ranks = {"dp_world_size": 1, "dp_rank": 0, "fs_local_rank": 0}
    collator = DataCollator(pad_token_id=0)
    theirs = partial(
        NumpyFSLDataLoader, dataset, collator=collator, seed=0, shuffle=False, **ranks, **given
    )
    assert fitted(theirs, fits) == fitted(ours, fits)


def test_an_epoch_that_a_resume_has_finished_is_not_read_again() -> None:
    """OLMo-core's own loader reads it once more; what to write instead is said, and works."""
    ours = partial(loader, ip.Sequential(50), global_batch_size=12 * LENGTH, remainder="drop")
    with pytest.raises(ip.IndexPlanError, match=r"leave out reset\(\) after a last step"):
        fitted(ours, (4, "resume", "reset", 1))
    assert fitted(ours, (4, "resume", 1))[-1][:2] == (2, 0)


def test_olmos_datasets_are_known_by_their_fingerprint(tmp_path: Path) -> None:
    """A run continues with the dataset that it began with, and with no other."""
    dataset = numpy_dataset(tmp_path)
    ours = loader(dataset=dataset)
    ours.reshuffle()
    assert ORDER.take(0, 0, 24).tolist() == numbers(next(iter(ours)))
    state = ours.state_dict()
    loader(dataset=dataset).load_state_dict(state)
    saved, of = dataset.fingerprint, "pass the dataset that the run began with, or start another"
    message = f"dataset must be the saved one, {saved!r}; got None; {of} run"
    refuses(message, lambda: loader().load_state_dict(state))


def refuses(message: str, call: Callable[[], Any]) -> None:
    """Expect an error of a whole message."""
    with pytest.raises(ip.IndexPlanError) as raised:
        call()
    assert message == str(raised.value)


def test_what_is_refused_when_it_is_made() -> None:
    """Batches that ranks cannot share, or that no epoch fills."""
    refuses(
        "global_batch_size must be a multiple of 12 tokens, sequence_length * dp_world_size; "
        "got 40; change one of the three",
        lambda: loader(dp_world_size=3, global_batch_size=40),
    )
    refuses(
        "remainder must be one of carry, drop, pad, as each rank's batches must be equally large; "
        "got 'spread'; leave it out",
        lambda: loader(remainder="spread"),
    )
    refuses(
        "sequence_length must be an integer from 1 to 2**62 - 1; got 0; pass the tokens of each "
        "sample, as the collator returns them",
        lambda: loader(sequence_length=0),
    )
    refuses(
        "epoch 0 must have a full step, as remainder='drop' reads no other; got global batches of "
        "51 units, and 50 units in it; let a global batch have at most 50 units, or use "
        "remainder='spread' or 'pad'",
        lambda: loader(global_batch_size=51 * LENGTH, remainder="drop"),
    )


def test_what_is_refused_of_a_state() -> None:
    """What OLMo-core's own loader has saved, another version's, and another order's."""
    ours = loader()
    refuses(
        "state must be a PlanDataLoader's; got a dict of ['batches_processed', 'seed']; finish the "
        "run with the loader that it began with, or start another run",
        lambda: ours.load_state_dict({"batches_processed": 3, "seed": 0}),
    )
    refuses(
        "state must be of version 1; got 2; load it with the version of indexplan that saved it",
        lambda: ours.load_state_dict({**ours.state_dict(), "version": 2}),
    )
    refuses(
        "a cursor must belong to the plan's order; got one with seed 2, not 1; resume it with the "
        "order it was saved under",
        lambda: ours.load_state_dict(loader(ip.Shuffle(50, seed=2)).state_dict()),
    )


def test_what_is_refused_on_the_way() -> None:
    """A size that ranks cannot share; what was read before a resume."""
    ours = loader(dp_world_size=2)
    refuses(
        "global_batch_size must be a multiple of 8 tokens, sequence_length * dp_world_size; "
        "got 4; change one of the three",
        lambda: setattr(ours, "global_batch_size", 4),
    )
    ours.reshuffle()
    next(iter(ours))
    state = ours.state_dict()
    later = loader()
    later.load_state_dict(state)
    later.reshuffle(1)
    refuses(
        "epoch must be an integer from 1 to 2**32 - 1; got 0; count from 1, as OLMo-core does",
        lambda: later.batches_in_epoch(0),
    )
    ours = loader()
    ours.reshuffle()
    assert len(list(ours)) == ours.total_batches
    ours.reset()
    later.load_state_dict(ours.state_dict())
    rule = "epoch must be 2 or later, where the run was resumed, as earlier ones are finished; got "
    refuses(
        rule + "1; pass none; or leave out reset() after a last step, which the Trainer calls",
        lambda: later.reshuffle(1),
    )
    later.reshuffle()
    assert 2 == later.epoch
