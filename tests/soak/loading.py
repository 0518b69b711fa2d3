"""Ways to read what all ranks of a plan read, by the loaders and samplers that trainers use.

Each rank has a loader of its own, as in its own process; all of them have to end in one state.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from random import Random
from typing import Any

import numpy as np
from torchdata.stateful_dataloader import StatefulDataLoader

import indexplan as ip
from indexplan_torch import About, PlanBatchSampler, PlanLoader
from tests.soak.carrying import Saved
from tests.soak.drawing import Part
from tests.soak.reading import Read, WrongError, joined

# a loader's kind, and of which kind its state is
KINDS = {
    "PlanLoader": "loader",
    "PlanBatchSampler": "loader",
    "StatefulDataLoader": "torchdata",
}


class Echo:
    """A dataset whose samples are their indices, however it is asked for them."""

    def __init__(self, num_samples: int) -> None:
        self.num_samples = num_samples

    def __len__(self) -> int:
        return self.num_samples

    def __getitems__(self, batch: Any) -> list[int]:
        """Return the samples of a batch, which may be an array, nested, or of items."""
        return samples_of(batch)


def samples_of(batch: Any) -> list[int]:
    """Return the indices of a batch, flat."""
    if isinstance(batch, np.ndarray):
        return [int(index) for index in batch]
    found = []
    for item in batch:
        found += samples_of(item) if isinstance(item, list | np.ndarray) else [item]
    return [item[0] if isinstance(item, tuple) else item for item in found]


def itself(batch: Any) -> Any:
    """Collate nothing."""
    return batch


def with_phase(index: int, about: About) -> tuple[int, int]:
    """Bring the size of a phase along with an index."""
    return index, about.phase.num_units


@dataclass(frozen=True)
class Setting:
    """What a leg chooses for all its loaders."""

    kind: str
    workers: dict[str, Any]
    form: dict[str, Any]
    named: bool  # whether the plan names the world size
    by_state: bool  # whether a state is loaded, where there is one, rather than its cursor
    explicit: bool  # whether the loop calls set_epoch
    again: bool  # and begins with the pass that the run was stopped in, finished or not
    breaks: bool  # whether a loop leaves a pass with its last batch, and asks for no more

    def __str__(self) -> str:
        words = [self.kind, f"{self.workers['num_workers']} workers", *self.form]
        words += ["set_epoch"] * self.explicit + ["again"] * self.again + ["break"] * self.breaks
        return ", ".join(words)


def setting(random: Random, *, workers: bool) -> Setting:
    """Draw the setting of a leg."""
    kind = random.choices(list(KINDS), [5, 2, 3])[0]
    options: dict[str, Any] = {"num_workers": 0}
    if workers and kind in ("PlanLoader", "StatefulDataLoader"):
        options = {
            "num_workers": random.randint(1, 2),
            "prefetch_factor": random.randint(1, 4),
            "persistent_workers": random.random() < 0.5,
            "multiprocessing_context": "fork",  # a spawned job's own would import torch each time
        }
    forms: list[dict[str, Any]] = [{}, {"as_array": True}, {"item": with_phase}, {"nested": True}]
    forms += [{"keep_bins": False}, {"nested": True, "keep_bins": False}]
    return Setting(
        kind=kind,
        workers=options,
        form=random.choice(forms),
        named=random.random() < 0.3,
        by_state=random.random() < 0.8,
        explicit=random.random() < 0.5,
        again=random.random() < 0.5,
        breaks=random.random() < 0.5,
    )


class Loader:
    """One rank's loader or sampler."""

    def __init__(self, chosen: Setting, plan: ip.Plan, rank: int, saved: Saved) -> None:
        world_size = plan.world_size
        given = plan.replace(world_size=world_size if chosen.named else None)
        load = chosen.by_state and saved.kind == KINDS[chosen.kind]
        if load and saved.kind == "torchdata":  # which takes states of as many workers only
            snapshot = saved.value.get("_snapshot", {}).get("_main_snapshot", {})
            load = snapshot.get("_num_workers", 0) == chosen.workers["num_workers"]
        if not load:
            given = given.resume(saved.cursor)
        ours: dict[str, Any] = {"rank": rank, "world_size": world_size, **chosen.form}
        self.sampler: Any = PlanBatchSampler(given, **ours)
        self.loader = self.sampler
        options = {**chosen.workers, "collate_fn": itself}
        dataset: Any = Echo(plan.order.num_samples)
        if chosen.kind == "PlanLoader":
            self.loader = PlanLoader(dataset, given, **ours, **options)
            self.sampler = self.loader
        if chosen.kind == "StatefulDataLoader":
            with warnings.catch_warnings():  # of torch, about torchdata
                warnings.filterwarnings("ignore", message=".*set_vital.*")
                self.loader = StatefulDataLoader(dataset, batch_sampler=self.sampler, **options)
        if load:
            self.loader.load_state_dict(copy.deepcopy(saved.value))
        self.chosen, self.plan = chosen, plan
        # torchdata ends a pass that the loop did not see the end of: it has nothing left
        self.ends_first = load and saved.kind == "torchdata" and saved.inside
        self.inside, self.number = False, 0
        self.begins = saved.number if load and chosen.explicit and chosen.again else None

    def run(self, part: Part, *, last: bool) -> list[list[int]]:
        """Return the rank's batches of a part."""
        self.number = part.epoch * self.plan.sub_epochs + part.sub_epoch
        if self.begins is not None and self.begins < self.number:
            self.sampler.set_epoch(self.begins)
            if left := list(self.loader):
                raise WrongError(f"pass {self.begins} was finished, and has {left} again")
        self.begins = None
        if self.chosen.explicit:
            self.sampler.set_epoch(self.number)
        num_batches = part.stop - part.start
        self.inside = part.whole and self.chosen.breaks and num_batches > 0 and last
        most = None if part.whole and not self.inside else num_batches
        self.batches: Iterator[Any] = iter(self.loader)  # kept, as a loop keeps it
        found = [samples_of(batch) for batch in islice(self.batches, most)]
        if self.ends_first and num_batches and not found:
            self.batches = iter(self.loader)
            found = [samples_of(batch) for batch in islice(self.batches, most)]
        self.inside |= self.ends_first and not num_batches  # it has read nothing: the same state
        self.ends_first = False
        return found

    def saved(self) -> Saved:
        """Return where the run stands."""
        # a sampler has no state of its own, but that of an iterator counts what was drawn
        of = self.batches if self.chosen.kind == "PlanBatchSampler" else self.loader
        state = copy.deepcopy(of.state_dict())  # type: ignore[attr-defined]
        return Saved(KINDS[self.chosen.kind], state, inside=self.inside, number=self.number)


def read(
    chosen: Setting, plan: ip.Plan, parts: list[Part], saved: Saved
) -> tuple[list[Read], Saved]:
    """Read parts on all ranks; return what was read, and where the run stands then."""
    world_size = plan.world_size or 0
    runs, states = [], []
    for rank in range(world_size):
        # one after another: torch's workers complain of other loaders' that they inherit
        loader = Loader(chosen, plan, rank, saved)
        runs.append([loader.run(part, last=part is parts[-1]) for part in parts])
        states.append(loader.saved())
        del loader
    reads = []
    for part, *ranks in zip(parts, *runs, strict=True):
        reads.append(joined(part, ranks))
    if any(state.cursor != states[0].cursor for state in states):
        raise WrongError(f"the states of {world_size} ranks differ after {parts[-1]}")
    return reads, states[0]


def takes(plan: ip.Plan, parts: list[Part]) -> bool:
    """Return whether every rank has a unit in every step, without which loaders refuse a pass."""
    accounts = [plan.account(part.epoch, part.sub_epoch) for part in parts]
    return all(account.min_batch_size or not account.num_steps for account in accounts)
