"""Plans in OLMo-core's own code: its Trainer and its Checkpointer."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import islice, takewhile
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch

import indexplan as ip
from tests.adapters.small import check_steps
from tests.runs.row import Leg, Numbered, Steps
from tests.through import legs as legs_of
from tests.trainers.ranks import in_forks, run_ranks

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
    from tests.runs.frameworks.olmo_core import LENGTH, tokens_of, trained

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
    dataset = given.pop("dataset", Numbered(order.num_samples, tokens_of))
    return PlanDataLoader(dataset, order, **given)


def numbers(batch: dict[str, Any]) -> list[int]:
    """Return a batch's samples."""
    read: list[int] = batch["input_ids"][:, 0].tolist()
    return read


# --- the Trainer, with its own checkpoints, in processes


@dataclass
class Sizes(Callback):
    """A schedule of global batches by step, which no rule of OLMo-core's scheduler restrains."""

    sizes: dict[int, int] = field(default_factory=dict)

    def pre_load_batch(self) -> None:
        """Set the size that is due."""
        due = [size for step, size in self.sizes.items() if step <= self.trainer.global_step]
        self.trainer.data_loader.global_batch_size = due[-1] * LENGTH


SIZED = {0: 12, 3: 36, 5: 60, 6: 24, 9: 12}  # no multiples of each other, at steps that are none


def legs(folder: str, jobs: legs_of.Jobs, samples: int, sized: bool) -> Steps:
    """Train jobs with loaders that find the ranks of the process group, and keep a ledger."""

    def made(leg: Leg, work_dir: Path) -> PlanDataLoader:
        ranks = {"dp_world_size": None, "dp_rank": None, "ledger": f"{folder}/run.ledger"}
        size = leg.global_batch * LENGTH
        order = ip.Shuffle(leg.samples, seed=1)
        return loader(order, global_batch_size=size, work_dir=work_dir, **ranks)

    def fit(leg: Leg) -> Steps:
        return trained(leg, partial(made, leg), {"sizes": Sizes(SIZED)} if sized else {})

    return legs_of.trained(folder, fit, jobs, samples, global_batch=12)


@pytest.mark.parametrize(
    ("jobs", "samples", "sizes", "void"),
    [
        # before the first step, inside an epoch, after its last step, and in the one after, with a
        # return; epochs of 50 samples in steps of 12: 5 steps, then 4
        (
            [(2, 0), (1, 2), (2, 2), (1, 3, 1), (2, 0), (1, 1), (2, 3), (1, 0)],
            50,
            [12] * 9,
            2,
        ),
        # in the middle of an epoch, and over its end
        (
            [(2, 4), (3, 4), (1, 4)],
            200,
            [12] * 3 + [36] * 2 + [60] + [24] * 3 + [12] * 3,
            0,
        ),
    ],
    ids=["at every kind of place", "with any batch size at any step"],
)
def test_the_trainer_resumes(
    jobs: legs_of.Jobs, samples: int, sizes: list[int], void: int, tmp_path: Path
) -> None:
    """On other ranks; what the trainer has read is what the ledger tells."""
    given = str(tmp_path), jobs, samples, len({*sizes}) > 1
    (steps,) = in_forks(f"{__name__}:legs", tmp_path, given)
    legs_of.check(steps, sizes, samples)
    ledger = ip.Ledger(tmp_path / "run.ledger")
    assert steps == [sum(ranks, []) for ranks in legs_of.told_by(ledger)]
    assert void == ledger.account().num_void_steps


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
            ledger = ip.Ledger(self.ledger)
            assert self.steps == legs_of.told_by(ledger)
            # a state that counts again has void steps too
            assert self.num_void <= ledger.account().num_void_steps

    def save(self) -> Any:
        """Return the state of rank 0, equal on all ranks but for the ledger's hash."""
        state, *others = [each.state_dict() for each in self.ranks]
        alike = {key: value for key, value in state.items() if key != "ledger"}
        assert all(alike == other for other in others), (state, others)
        self.saved.append((state, self.epoch, self.position, self.least, [*self.steps]))
        return state

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
        loops, opened = [iter(each) for each in self.ranks], list[Any]()
        while True:
            if self.random.random() < 0.2:
                size = self.size() * LENGTH
                for each in self.ranks:
                    each.global_batch_size = size
            first = self.ranks[0]
            left = first.total_batches - first.batches_processed
            if self.random.random() < 0.05:
                opened += loops  # and never closed: what they have read is recorded by the next
                loops = [iter(each) for each in self.ranks]
            batches = [next(loop, None) for loop in loops]
            if batches[0] is None:
                assert left == 0
                assert [None] * len(batches) == batches
                if self.read_the_rest():
                    loops = [iter(each) for each in self.ranks]
                    continue
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

    def read_the_rest(self) -> bool:
        """Perhaps set a size that what "drop" would leave of the epoch still fills."""
        left = self.order.num_samples - self.position
        sizes = [size for size in self.sizes(self.world_size) if size <= left]
        if self.remainder != "drop" or not sizes or self.random.random() < 0.5:
            return False
        for each in self.ranks:
            each.global_batch_size = sizes[-1] * LENGTH
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
            same = takewhile(lambda pair: bool(pair[0] == pair[1]), both)
            self.num_void += len(self.written) - sum(1 for _ in same)
        self.steps.append(ranks)
        self.written = [*self.steps]


@pytest.mark.parametrize("number", range(120))
def test_histories(number: int, tmp_path: Path) -> None:
    """Every step reads what comes next, whatever the ranks, the sizes and the stops.

    A ledger, which half of them keep, has each step that counts, with what each rank has read.
    """
    random = Random(f"olmo {number}")  # noqa: S311 (for a history that comes again)
    order = ip.Shuffle(random.randint(4, 60), random.randrange(2**64))
    ledger = tmp_path / "run.ledger" if number % 2 else None
    History(random, order, random.choice(["carry", "carry", "drop"]), ledger).run()


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
    with refused("epoch must be 1, which is not read to its end; got 2; read it, or call reset()"):
        ours.reshuffle(2)
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


def test_workers_may_be_ahead_where_the_size_is_set(tmp_path: Path) -> None:
    """What they have drawn is dropped, and read in batches of the new size, and is recorded so."""
    alone, ahead = loader(), loader(num_workers=2, ledger=tmp_path / "run.ledger")
    for each in (alone, ahead):
        each.reshuffle()
    loops, steps = [iter(alone), iter(ahead)], list[list[int]]()
    for step in range(4):
        if step == 1:
            alone.global_batch_size = ahead.global_batch_size = 7 * LENGTH
        one, other = (numbers(next(loop)) for loop in loops)
        assert one == other
        steps.append(one)
    state = ahead.state_dict()
    ledger = check_steps(tmp_path / "run.ledger", steps)
    assert {**alone.state_dict(), "ledger": ledger.hash} == state


def numpy_dataset(tmp_path: Path) -> Any:
    """Return a dataset of OLMo-core's own, whose 50 instances are numbered."""
    tokens = tmp_path / "tokens.npy"
    torch.arange(50, dtype=torch.uint8).repeat_interleave(LENGTH).numpy().tofile(tokens)
    dataset = NumpyFSLDatasetConfig(
        paths=[str(tokens)],
        sequence_length=LENGTH,
        tokenizer=TokenizerConfig(51, 50, 50),
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
    with refused(f"dataset must be the saved one, {dataset.fingerprint!r}; got None; pass the "):
        loader().load_state_dict(state)


def refused(message: str) -> Any:
    """Expect an error that begins so."""
    return pytest.raises(ip.IndexPlanError, match=f"^{re.escape(message)}")


def test_what_is_refused() -> None:
    """Batches that ranks cannot share, when they are made or set; other states; finished epochs."""
    shared = "global_batch_size must be a multiple of 12 tokens, sequence_length * dp_world_size"
    with refused(f"{shared}; got 40; change one of the three"):
        loader(dp_world_size=3, global_batch_size=40)
    ours = loader(dp_world_size=3, global_batch_size=24 * LENGTH)
    with refused(f"{shared}; got 4; change one of the three"):
        ours.global_batch_size = 4
    with refused(
        "remainder must be one of carry, drop, pad, as each rank's batches must be equally large; "
        "got 'spread'; leave it out"
    ):
        loader(remainder="spread")
    ours.reshuffle()
    assert len(list(ours)) == ours.total_batches
    ours.reset()
    later, before = loader(), ours.state_dict()
    with refused(
        "state must be a PlanDataLoader's; got a dict of ['batches_processed', 'seed']; finish the "
        "run with the loader that it began with, or start another run"
    ):
        ours.load_state_dict({"batches_processed": 3, "seed": 0})
    with refused("a cursor must belong to the plan's order; got one with seed 2, not 1; resume "):
        ours.load_state_dict(loader(ip.Shuffle(50, seed=2)).state_dict())
    assert before == ours.state_dict()
    later.load_state_dict(before)
    with refused(
        "epoch must be 2 or later, where the run was resumed, as earlier ones are finished; got 1; "
        "pass none; or leave out reset() after a last step, which the Trainer calls"
    ):
        later.reshuffle(1)
    later.reshuffle()
    assert 2 == later.epoch


# --- a ledger, where the loop is another than the Trainer's


def read(ours: PlanDataLoader, num: int) -> list[list[int]]:
    """Return the samples of some more steps of the epoch."""
    return [numbers(batch) for batch in islice(ours, num)]


def test_a_state_of_a_run_with_a_ledger_needs_it(tmp_path: Path) -> None:
    """Or it is left for good; a state without one starts another ledger where it stands."""
    path = tmp_path / "run.ledger"
    ours = loader(ledger=path, global_batch_size=4 * LENGTH)
    ours.reshuffle()
    read(ours, 2)
    state = ours.state_dict()
    assert ip.Ledger(path).hash == state["ledger"]
    without, left = (loader(global_batch_size=4 * LENGTH, ledger=each) for each in (None, False))
    before = without.state_dict()
    with refused("ledger must be passed to the loader, as the state is that of a run which keeps "):
        without.load_state_dict(state)
    assert before == without.state_dict()
    left.load_state_dict(state)
    left.reshuffle()
    read(left, 1)
    state = left.state_dict()
    assert "ledger" not in state
    ours.load_state_dict(state)
    ours.reshuffle()
    with pytest.raises(ip.IndexPlanError, match="load a state that was saved with this ledger"):
        read(ours, 1)
    new = loader(ledger=tmp_path / "new.ledger", global_batch_size=4 * LENGTH)
    new.load_state_dict(state)
    new.reshuffle()
    check_steps(tmp_path / "new.ledger", read(new, 2))


def test_an_epoch_starts_over_only_without_a_ledger(tmp_path: Path) -> None:
    """Nor may it be left; the ledger keeps what was read, and the run goes on from a state."""
    path = tmp_path / "run.ledger"
    ours = loader(ledger=path, global_batch_size=12 * LENGTH)
    ours.reshuffle()
    steps = read(ours, 3)
    state, before = ours.state_dict(), path.read_bytes()
    for epoch, place in ((1, "epoch 0, sub-epoch 0, step 0, position 0"), (3, "epoch 2, ")):
        ours.reset()
        ours.reshuffle(epoch)
        stands = "must begin where the run in .* stands, at epoch 0, sub-epoch 0, step 3, position"
        with pytest.raises(ip.IndexPlanError, match=f"a pass {stands} 36; got {place}"):
            read(ours, 1)
        with pytest.raises(ip.IndexPlanError, match="a state must be saved where the run in"):
            ours.state_dict()
    assert before == path.read_bytes()
    ours.load_state_dict(state)
    ours.reshuffle()
    steps += read(ours, 9)
    assert 5 == len(steps)
    assert 0 == check_steps(path, steps).account().num_void_steps


def beside_each_other(folder: str) -> list[Any]:
    """Read on four ranks, of which two each differ only in tensor parallelism."""
    torch.distributed.init_process_group("gloo")
    ours = loader(
        dp_world_size=2,
        dp_rank=torch.distributed.get_rank() // 2,
        ledger=f"{folder}/run.ledger",
    )
    ours.reshuffle()
    steps = read(ours, 1)
    ours.global_batch_size = 10 * LENGTH
    steps += read(ours, 1)
    state = ours.state_dict()
    torch.distributed.barrier()  # the store is rank 0's
    return [state, steps]


def test_ranks_that_read_the_same_are_recorded_once(tmp_path: Path) -> None:
    """One of all writes, and all have the hash."""
    told = run_ranks(f"{__name__}:beside_each_other", 4, str(tmp_path))
    ledger = ip.Ledger(tmp_path / "run.ledger")
    ranks = zip(*legs_of.told_by(ledger), strict=True)
    assert [steps for _, steps in told] == [[*steps] for steps in ranks for _ in range(2)]
    assert {ledger.hash} == {state["ledger"] for state, _ in told}
