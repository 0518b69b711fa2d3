"""What a ledger answers, held against a list of all that a drawn run has read."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import indexplan as ip
from indexplan.ledger.account import LedgerAccount
from indexplan.ledger.shown import why
from indexplan.ledger.tail import Tail
from tests.histories.listing import check, num_samples
from tests.histories.runs import run_of


@pytest.mark.slow
@settings(max_examples=settings().max_examples * 2 // 5)  # each is a run of its own
@given(seed=st.integers(0, 2**32))
def test_it_answers_as_a_list_of_all_batches(seed: int) -> None:
    """Batches, reads, counts and account are those of the list, after any resumes and returns."""
    with TemporaryDirectory() as folder:
        run_of(seed, 6, Path(folder))


def test_the_drawn_runs_meet_what_they_are_for(tmp_path: Path) -> None:
    """Among them are void steps, schedules, other plans, and samples that left or joined."""
    runs = [run_of(seed, 8, tmp_path) for seed in (22, 30)]
    ledgers = [ip.Ledger(run.path) for run in runs]
    of = [list(map(json.loads, run.path.read_text().splitlines())) for run in runs]
    named = [[line["plan"] for line in each if line["kind"] == "plan"] for each in of]
    assert any(isinstance(plan["batch_size"], list) for each in named for plan in each)
    words = {word for each in named for pair in pairwise(each) for word in why(*pair)}
    assert {"world", "batch", "exclude", "weights", "sources"} == words
    for name in ("skipped", "excluded", "left_out", "dropped", "padded", "void"):
        assert any(getattr(each.account(), f"num_{name}") for each in ledgers), name
    pairs = zip(ledgers, runs, strict=True)  # one returned to before sources joined
    assert any(e.plan.order.num_samples < num_samples(e, r.steps + r.void) for e, r in pairs)


@pytest.mark.slow
def test_hundreds_of_lines_are_those_of_a_walk(tmp_path: Path) -> None:
    """Each step is found that starts where the ones before it stop, also after many returns."""
    drawn = random.Random(0)  # noqa: S311 (draws a test)
    order = ip.Shuffle(500)
    stream = [sample for epoch in range(40) for sample in order.take(epoch, 0, 500).tolist()]
    ledger, walk = ip.Ledger(tmp_path / "run.ledger"), [(0, 0, 0)]  # where a step stops; its plan
    for line in range(300):
        if line % 10 == 9:
            walk = walk[: drawn.randrange(len(walk) - 9, len(walk))]
            ledger.rewind(len(walk) - 1)
        begun, (ranks, size) = walk[-1][0], drawn.choice([(1, 7), (2, 9), (3, 20), (4, 33), (4, 5)])
        walk += [(begun + size * n, ranks, size) for n in range(1, drawn.randrange(2, 9))]
        plan = ip.Plan(order, world_size=ranks, global_batch_size=size, remainder="carry")
        ledger.record(plan.resume(plan.cursor_at(begun)), plan.cursor_at(walk[-1][0]))
    again = ip.Ledger(ledger.path)
    assert again.verify(ledger.hash).ok
    assert len(walk) - 1 == again.step
    for number, ((begun, *_), (stop, ranks, size)) in enumerate(pairwise(walk)):
        at = again.at(number)
        assert (ranks, size) == (at.plan.world_size, at.plan.global_batch_size)
        assert divmod(begun, 500) == (at.cursor.epoch, at.cursor.position)
        read = [again.batch(number, rank).tolist() for rank in range(ranks)]
        assert stream[begun:stop] == sum(read, [])


def test_ten_epochs_of_a_large_dataset() -> None:
    """Nothing depends on the number of samples: a trillion of them are asked at once."""
    with TemporaryDirectory() as folder:
        plan = ip.Plan(ip.Shuffle(10**12), world_size=4096, batch_size=256)
        ledger = ip.Ledger(f"{folder}/run.ledger")
        for step in (1000, 5000, 9000):
            ledger.record(plan, plan.cursor(epoch=10, step=step))
        step = ledger.step - 7
        sample = int(ledger.batch(step, 4095)[3])
        reads = ledger.reads(sample)
        assert [each.epoch for each in reads] == [*range(11)]
        assert (step, 4095) == reads[-1][:2]
        assert [11] == ledger.seen([sample]).tolist()


@pytest.fixture
def plan() -> ip.Plan:
    """A plan of 25 steps an epoch."""
    return ip.Plan(ip.Shuffle(1000), world_size=4, batch_size=10)


def test_a_start_inside_goes_on_there(plan: ip.Plan, tmp_path: Path) -> None:
    """A plan that was resumed by hand is looked for among the places where the run stood."""
    ledger = ip.Ledger(tmp_path / "run.ledger")
    ledger.record(plan, plan.cursor(1, step=7))
    ledger.begin(plan.replace(world_size=2).resume(plan.cursor(1, step=2)))
    assert 27 == ledger.step
    with pytest.raises(ip.IndexPlanError, match="record what was read up to there"):
        ledger.begin(plan.resume(plan.cursor(1, step=9)))


def test_a_run_of_another_order_is_refused(plan: ip.Plan, tmp_path: Path) -> None:
    """Nothing is written of a plan that does not continue the run."""
    ledger = ip.Ledger(tmp_path / "run.ledger")
    ledger.record(plan, plan.cursor(0, step=7))
    before = ledger.path.read_bytes()
    other = plan.replace(order=ip.Shuffle(1000, seed=1))
    for call in (
        lambda: ledger.begin(other),
        lambda: ledger.record(other, other.cursor(0, step=9)),
    ):
        with pytest.raises(ip.IndexPlanError, match="continues the ledger's run"):
            call()
    with pytest.raises(ip.IndexPlanError, match="as the run that is loaded has written it"):
        ledger.rewind("0" * 64)
    assert before == ledger.path.read_bytes()


def test_columns_are_written_for_a_copy_of_the_file(tmp_path: Path) -> None:
    """A run that goes on from a copy without its columns writes those of its plan beside it."""
    plan = ip.Plan(ip.Weighted([1.0, 2.0, 5.0] * 20), world_size=2, batch_size=3)
    ledger = ip.Ledger(tmp_path / "run.ledger")
    ledger.record(plan, plan.cursor(1, step=3))
    (tmp_path / "fork").mkdir()
    fork = tmp_path / "fork" / "run.ledger"
    fork.write_bytes(ledger.path.read_bytes())
    ip.Ledger(fork).begin(plan.resume(ledger.cursor))
    again = ip.Ledger(fork)
    assert again.verify(ledger.hash).ok
    assert plan.batch(1, step=2, rank=1).tolist() == again.batch(again.step - 1, 1).tolist()


@pytest.mark.parametrize("again", [False, True])  # whether another process records
def test_lost_columns_are_written_again(again: bool, tmp_path: Path) -> None:
    """A plan that is named already brings its columns back with its next steps; damage is said."""
    order = ip.Without(ip.Weighted([1.0, 2.0, 5.0] * 20), [3, 7])
    plan = ip.Plan(order, world_size=2, batch_size=3, balance=ip.Balance([1, 2, 3] * 20))
    ledger = ip.Ledger(tmp_path / "run.ledger")
    ledger.record(plan, plan.cursor(0, step=3))
    kept = {path.name: path.read_bytes() for path in (tmp_path / "columns").iterdir()}
    assert 3 == len(kept)
    lost = [(name,) for name in kept] + [tuple(kept)]
    for step, names in enumerate(lost, 4):
        for name in names:
            (tmp_path / "columns" / name).unlink()
        if len(names) == len(kept):
            (tmp_path / "columns").rmdir()
        ledger = ip.Ledger(ledger.path) if again else ledger
        ledger.record(plan, plan.cursor(0, step=step))
        assert kept == {path.name: path.read_bytes() for path in (tmp_path / "columns").iterdir()}
    assert ledger.verify().ok
    (tmp_path / "columns" / names[0]).write_bytes(b"?")
    assert not ip.Ledger(ledger.path).verify().ok
    with pytest.raises(ip.PlanFileError, match="of the sha256 in its name"):
        ip.Ledger(ledger.path).record(plan, plan.cursor(1, step=0))


def test_places_that_count_samples(plan: ip.Plan, tmp_path: Path) -> None:
    """A framework that counts samples records by `cursor_at`, whose steps have other numbers."""
    ledger = ip.Ledger(tmp_path / "run.ledger")
    ledger.record(plan, plan.cursor_at(520))
    smaller = plan.replace(batch_size=3, remainder="carry")
    smaller = smaller.resume(smaller.cursor_at(520))
    ledger.begin(smaller)
    ledger.record(smaller, smaller.cursor_at(520 + 12 * 80))
    assert (13 + 80, True) == (ledger.step, ledger.verify().ok)
    assert 520 + 12 * 80 == ledger.account().num_read
    again = ip.Ledger(ledger.path)
    back = smaller.replace(world_size=2).resume(smaller.cursor_at(520 + 12 * 7))
    again.begin(back)
    assert 13 + 7 == again.step


def test_a_ledger_that_begins_inside_a_run(plan: ip.Plan, tmp_path: Path) -> None:
    """What was read before is not said to be dropped."""
    resumed = plan.resume(plan.cursor(2, step=5))
    ledger = ip.Ledger(tmp_path / "run.ledger")
    ledger.record(resumed, resumed.cursor(3, step=0))
    account = ledger.account()
    assert (200, 0, 800) == (account.num_finished, account.num_dropped, account.num_read)
    assert 1000 == account.num_units
    assert account == ledger.account(2)
    assert "200 before the ledger" in str(account)  # perhaps skipped, as here:
    ledger = ip.Ledger(tmp_path / "jumped.ledger")
    ledger.begin(plan)
    ledger.begin(resumed, skip=True)
    ledger.record(resumed, resumed.cursor(3, step=0))
    assert account == ledger.account()
    with pytest.raises(ip.IndexPlanError, match="an integer from 2 to 3; got 1;"):
        ledger.account(1)


def test_a_return_ends_where_the_plan_has_no_step_left(plan: ip.Plan, tmp_path: Path) -> None:
    """What was read past it is void, also up to the very place where the next step would start."""
    ledger = ip.Ledger(tmp_path / "run.ledger")
    ledger.record(plan, plan.cursor(1, step=0))
    back = ledger.at(20).cursor
    other = plan.replace(batch_size=100, remainder="drop")
    ledger.begin(other.resume(back))
    assert 20 == ledger.step
    assert 200 == ledger.account().num_void
    ledger.record(other.resume(back), other.cursor(1, step=2))
    ledger.begin(plan.resume(back))  # where a segment starts, and no step of its own
    assert 20 == ledger.step


def test_a_ledger_stays_where_it_was_opened(
    plan: ip.Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that changes its folder writes the same file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    ledger = ip.Ledger("run.ledger")
    monkeypatch.chdir(tmp_path / "elsewhere")
    ledger.record(plan, plan.cursor(0, step=3))
    assert 3 == ip.Ledger(tmp_path / "run.ledger").step


def test_the_account_of_an_epoch_without_a_step_that_counts(plan: ip.Plan, tmp_path: Path) -> None:
    """All of its units are left, whether the run begins it next, or has returned to before it."""
    ledger = ip.Ledger(tmp_path / "run.ledger")
    ledger.record(plan, plan.cursor(1, step=0))
    left = LedgerAccount(num_units=1000, num_left=1000)
    assert left == ledger.account(1)
    ledger.record(plan, plan.cursor(1, step=3))
    ledger.rewind(13)
    ledger.rewind(0)
    assert replace(left, num_void=1000, num_void_steps=25) == ledger.account(0)


def test_a_return_to_before_a_jump_out_of_an_empty_ledger(plan: ip.Plan, tmp_path: Path) -> None:
    """A state that was saved before any step is one to return to, also if the run began later."""
    ledger = ip.Ledger(tmp_path / "run.ledger")
    first, later = (plan.resume(plan.cursor(0, step=step)) for step in (2, 20))
    ledger.begin(first)
    saved = ledger.hash
    ledger.begin(later, skip=True)
    ledger.record(later, plan.cursor(0, step=23))
    jumped = ledger.hash
    with pytest.raises(ip.IndexPlanError, match="stood after one of its steps"):
        ledger.begin(first)  # without its hash, nobody knows what was read before
    ledger.begin(first, saved)
    ledger = ip.Ledger(ledger.path)
    ledger.begin(first, ledger.hash)  # in another process, before a step was read
    told = Tail.from_dict(json.loads(json.dumps(ledger.tail.to_dict())))  # another rank
    assert (first.start, 0) == (ledger.cursor, ledger.step)
    ledger.record(first, plan.cursor(0, step=5))
    assert ledger.tail == told.record(first, plan.cursor(0, step=5), {})[1]
    assert (120, 120, 80) == tuple(
        getattr(ledger.account(), name) for name in ("num_read", "num_void", "num_finished")
    )
    check(ip.Ledger(ledger.path))
    ledger.begin(plan.resume(plan.cursor(0, step=23)), jumped)
    assert 3 == ledger.step
    check(ip.Ledger(ledger.path))
    ledger.begin(plan)  # before the very first unit there is nothing to know
    assert (plan.start, 0) == (ledger.cursor, ledger.step)
    ledger.record(plan, plan.cursor(0, step=4))
    check(ip.Ledger(ledger.path))
    assert ip.Ledger(ledger.path).verify(jumped).ok
