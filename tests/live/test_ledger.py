"""The ledger of a world that changes, by the recipe of docs/live.md: what a run has read."""

from __future__ import annotations

from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

import indexplan as ip
from indexplan.plan.plan import smallest_step
from tests.live import recipe

Step = list[list[int]]  # what each rank read


class Saved(NamedTuple):
    """A checkpoint, and what had been read before it."""

    cursor: str
    hash: str
    read: list[Step]


class Group:
    """A process that knows where the run stands, and what has been read as far as it knows."""

    def __init__(self, plan: ip.Plan, saved: Saved | None = None) -> None:
        self.read: list[Step] = [] if saved is None else list(saved.read)
        self.cursor = plan.start if saved is None else ip.Cursor.from_json(saved.cursor)
        self.plan, self.one = plan, plan.replace(world_size=1).resume(self.cursor)

    def heal(self, other: Group) -> None:
        """Take the state of another group."""
        self.cursor = other.cursor
        self.read = list(other.read)

    def save(self, path: Path) -> Saved:
        """Write the ledger as if one rank had read all, and return a checkpoint."""
        ledger = ip.Ledger(path)
        ledger.rewind(min(len(self.read), ledger.step))
        ledger.record(self.one, self.cursor)
        return Saved(self.cursor.to_json(), ledger.hash, list(self.read))


def step(groups: list[Group], ranks: int, commits: bool) -> None:
    """Run a step of some groups, with some ranks each, that counts or fails."""
    for group in groups if commits else []:
        group.read.append(recipe.dealt(group.plan, group.cursor, len(groups) * ranks).ranks)
        group.cursor = recipe.after(group.plan, group.cursor)


def live(plan: ip.Plan, path: Path, random: Random, num_turns: int) -> None:
    """Run groups that are killed, join, run apart, and start again from any of the checkpoints.

    When they start again, it is with another batch size, under which other steps follow.
    """
    ranks = random.randint(1, 2)
    groups = [Group(plan)]
    checkpoints: list[Saved] = []
    for _ in range(num_turns):
        most = smallest_step(groups[0].one) // ranks  # fewer where a run starts again in an epoch
        groups, drawn = groups[:most], random.random()
        if drawn < 0.1 and len(groups) < min(3, most):
            groups.append(Group(plan))
            groups[-1].heal(groups[0])
        elif drawn < 0.2 and len(groups) > 1:
            groups.pop(random.randrange(len(groups)))
        elif drawn < 0.3 and len(groups) > 1:  # one runs on alone, and its state is lost or kept
            alone, *others = random.sample(groups, len(groups))
            for part in ([alone], others):
                for _ in range(random.randint(0, 3)):
                    step(part, ranks, commits=True)
                if random.random() < 0.5:
                    checkpoints.append(checked(part[0], path))
            source = random.choice([alone, others[0]])
            for group in groups:
                group.heal(source)
        elif drawn < 0.4:
            checkpoints.append(checked(random.choice(groups), path))
        elif drawn < 0.45 and checkpoints:  # all die, and start from a checkpoint
            saved = random.choice(checkpoints[-3:])
            ip.Ledger(path).rewind(saved.hash)
            plan = plan.replace(global_batch_size=random.randint(6, 12))
            groups = [Group(plan, saved) for _ in range(random.randint(1, 3))]
        else:
            for _ in range(random.randint(1, 6)):
                step(groups, ranks, commits=random.random() < 0.8)
    checked(groups[0], path)
    assert ip.Ledger(path).verify().ok


def checked(group: Group, path: Path) -> Saved:
    """Save a checkpoint; all that the ledger says must be what the group's run has read."""
    saved = group.save(path)
    ledger = ip.Ledger(path)
    assert ledger.hash == saved.hash
    assert ledger.step == len(group.read)
    for number, read in enumerate(group.read):
        assert sum(read, []) == ledger.batch(number, rank=0).tolist()
    return saved


@settings(max_examples=40)
@given(
    st.integers(0, 2**32),
    st.integers(12, 60),
    st.integers(6, 12),
    st.sampled_from(["spread", "drop", "pad", "carry"]),
    st.integers(1, 2),
)
def test_the_lines_are_what_the_saved_run_has_read(
    seed: int, n: int, size: int, remainder: str, sub_epochs: int
) -> None:
    """Whatever was killed, ran apart or started again: a void commit has no line that counts."""
    order = ip.Shuffle(max(n, 12 * sub_epochs), seed=seed)
    plan = ip.Plan(order, global_batch_size=size, sub_epochs=sub_epochs)
    plan = plan.replace(remainder=remainder)
    if smallest_step(plan) < 6:
        plan = ip.Plan(ip.Shuffle(48, seed=seed), global_batch_size=6, sub_epochs=sub_epochs)
    with TemporaryDirectory() as folder:
        live(plan, Path(folder) / "run.ledger", Random(seed), 25)  # noqa: S311 (only for a run)
