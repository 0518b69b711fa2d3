"""The ledger of a world that changes: its lines are what the run that was saved has read."""

from __future__ import annotations

from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import indexplan as ip

Step = list[list[int]]  # what each rank read


class Saved(NamedTuple):
    """A checkpoint, and what had been read before it."""

    cursor: str
    hash: str
    read: list[Step]


class Group:
    """A process that knows where the run stands, and what has been read as far as it knows."""

    def __init__(self, plan: ip.Plan, saved: Saved | None = None) -> None:
        self.read: list[Step] = []
        self.standing = ip.live.Standing(plan)
        if saved is not None:
            cursor = ip.Cursor.from_json(saved.cursor)
            self.standing = ip.live.Standing(plan, cursor, hash=saved.hash)
            self.read = list(saved.read)

    def heal(self, other: Group) -> None:
        """Take the state of another group."""
        self.standing.load_json(other.standing.to_json())
        self.read = list(other.read)

    def save(self, path: Path) -> Saved:
        """Write the ledger, and return a checkpoint."""
        digest = self.standing.record(ip.Ledger(path))
        return Saved(self.standing.cursor.to_json(), digest, list(self.read))


def step(groups: list[Group], ranks: int, commits: bool) -> None:
    """Run a step of some groups, with some ranks each, that counts or fails."""
    world = len(groups) * ranks
    read = [groups[0].standing.deal(world, rank).tolist() for rank in range(world)]
    for number, group in enumerate(groups):
        group.standing.deal(world, number * ranks)
        if commits:
            group.standing.commit()
            group.read.append(read)


def live(plan: ip.Plan, path: Path, random: Random, num_turns: int) -> None:
    """Run groups that are killed, join, run apart, and start again from any of the checkpoints."""
    ranks = random.randint(1, 2)
    groups = [Group(plan)]
    checkpoints: list[Saved] = []
    for _ in range(num_turns):
        drawn = random.random()
        if drawn < 0.1 and len(groups) < 3:
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
        elif drawn < 0.45:  # all die, and start from a checkpoint, or from the beginning
            saved = random.choice([None, *checkpoints[-3:]])
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
        assert ledger.at(number).plan.world_size == len(read)
        assert read == [ledger.batch(number, rank).tolist() for rank in range(len(read))]
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
    if remainder == "drop":
        n = max(n, size * sub_epochs)
    order = ip.Shuffle(max(n, 6 * sub_epochs), seed=seed)
    plan = ip.Plan(order, global_batch_size=size, sub_epochs=sub_epochs)
    plan = plan.replace(remainder=remainder)
    try:
        ip.live.Standing(plan, max_world=6)
    except ip.IndexPlanError:
        plan = ip.Plan(ip.Shuffle(48, seed=seed), global_batch_size=6, sub_epochs=sub_epochs)
    with TemporaryDirectory() as folder:
        live(plan, Path(folder) / "run.ledger", Random(seed), 25)  # noqa: S311 (only for a run)


def test_what_is_there_is_not_written_again(tmp_path: Path) -> None:
    """A second checkpoint adds the new lines alone; without new steps it adds nothing."""
    plan = ip.Plan(ip.Shuffle(100), global_batch_size=10)
    group = Group(plan)
    for _ in range(5):
        for groups in ([group], [group, group]):
            standing = group.standing
            standing.deal(len(groups), 0)
            standing.commit()
        standing.record(ip.Ledger(tmp_path / "run.ledger"))
    before = (tmp_path / "run.ledger").read_bytes()
    standing.record(ip.Ledger(tmp_path / "run.ledger"))
    assert before == (tmp_path / "run.ledger").read_bytes()
    ledger = ip.Ledger(tmp_path / "run.ledger")
    assert 10 == ledger.step
    assert "return" not in str(ledger)


def test_a_look_at_other_ranks_leaves_no_line(tmp_path: Path) -> None:
    """A step is written for the ranks that have read it, also where one was dealt for others."""
    plan = ip.Plan(ip.Shuffle(100), global_batch_size=10)
    standing = ip.live.Standing(plan)
    for world in (3, 1, 2):
        standing.deal(world, 0)
        standing.deal(7, 5)  # a look ahead
        standing.commit(world_size=world)
    standing.record(ip.Ledger(tmp_path / "run.ledger"))
    ledger = ip.Ledger(tmp_path / "run.ledger")
    assert [3, 1, 2] == [ledger.at(step).plan.world_size for step in range(3)]
    before = standing.to_json()
    standing.deal(2, 0)
    for wrong in (0, standing.max_world + 1, 2.5):
        with pytest.raises(ip.IndexPlanError, match="world_size must be a number of ranks"):
            standing.commit(world_size=wrong)  # type: ignore[arg-type]
    assert before == standing.to_json()


def test_a_run_that_never_stood_there(tmp_path: Path) -> None:
    """A ledger of another run is refused, and nothing is written."""
    plan = ip.Plan(ip.Shuffle(100), global_batch_size=10)
    path = tmp_path / "run.ledger"
    Group(plan).save(path)
    other = Group(plan)
    step([other], 1, commits=True)
    other.save(path)
    before = path.read_bytes()
    for cursor, digest in ((plan.cursor(3, step=2), None), (plan.cursor(0, step=1), "0" * 64)):
        standing = ip.live.Standing(plan, cursor, hash=digest)
        standing.deal(1, 0)
        standing.commit()
        with pytest.raises(ip.IndexPlanError):
            standing.record(ip.Ledger(path))
        assert before == path.read_bytes()
