"""What a ledger answers, held against a list of all that a drawn run has read."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import indexplan as ip
from tests.ledger.runs import live


@settings(max_examples=settings().max_examples * 2 // 5)  # each is a run of its own
@given(seed=st.integers(0, 2**32))
def test_it_answers_as_a_list_of_all_batches(seed: int) -> None:
    """Batches, reads, counts and account are those of the list, after any resumes and returns."""
    with TemporaryDirectory() as folder:
        live(seed, 6, Path(folder))


def test_the_drawn_runs_meet_what_they_are_for(tmp_path: Path) -> None:
    """Among them are void steps, steps read again, other plans, and samples that left bins."""
    runs = [live(seed, 8, tmp_path) for seed in (0, 17, 64)]
    assert any(run.void for run in runs)
    lines = [json.loads(line) for run in runs for line in run.path.read_text().splitlines()]
    words = {word for line in lines for word in line.get("why", ())}
    assert {"world", "batch", "exclude", "skip"} == words
    accounts = [ip.Ledger(run.path).account() for run in runs]
    for name in (
        "num_skipped",
        "num_excluded",
        "num_left_out",
        "num_dropped",
        "num_padded",
        "num_void",
    ):
        assert any(getattr(account, name) for account in accounts), name


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
        assert [11] == ledger.seen().count([sample]).tolist()


@pytest.fixture
def plan() -> ip.Plan:
    """A plan of 25 steps an epoch."""
    return ip.Plan(ip.Shuffle(1000), world_size=4, batch_size=10)


def test_a_start_from_anew_makes_what_was_read_void(plan: ip.Plan, tmp_path: Path) -> None:
    """A run that finds no checkpoint starts at the first step, and the ledger says so."""
    ledger = ip.Ledger(tmp_path / "run.ledger")
    ledger.record(plan, plan.cursor(0, step=7))
    ledger.begin(plan)
    assert (0, 7) == (ledger.step, ledger.account().num_void_steps)
    ledger.record(plan, plan.cursor(0, step=3))
    assert 3 == ip.Ledger(ledger.path).step


def test_a_start_inside_goes_on_there(plan: ip.Plan, tmp_path: Path) -> None:
    """A plan that was resumed by hand is looked for among the places where the run stood."""
    ledger = ip.Ledger(tmp_path / "run.ledger")
    ledger.record(plan, plan.cursor(1, step=7))
    ledger.begin(plan.replace(world_size=2).resume(plan.cursor(1, step=2)))
    assert 27 == ledger.step
    with pytest.raises(ip.IndexPlanError, match="a ledger of its own"):
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
        ledger.return_to("0" * 64)
    assert before == ledger.path.read_bytes()


def test_a_cursor_past_which_samples_left(plan: ip.Plan, tmp_path: Path) -> None:
    """A run that has read excluded samples since cannot go on without them."""
    ledger = ip.Ledger(tmp_path / "run.ledger")
    ledger.record(plan, plan.cursor(0, step=9))
    late = plan.replace(order=ip.Without(plan.order, [1, 2], since=plan.cursor(0, step=5)))
    with pytest.raises(ip.IndexPlanError, match="since which units are left out"):
        ledger.record(late, late.cursor(0, step=12))
    skipped = plan.skip(plan.cursor(0, step=3), plan.cursor(0, step=5))
    with pytest.raises(ip.IndexPlanError, match="since which units are left out"):
        ledger.record(skipped, skipped.cursor(0, step=12))


def test_the_dataset_is_compared(plan: ip.Plan, tmp_path: Path) -> None:
    """A ledger that names its dataset is not opened for another."""
    for name, num in (("a", 1000), ("b", 999)):
        (tmp_path / name).mkdir()
        for sample in range(num):
            (tmp_path / name / f"{sample}.txt").touch()
    data = [ip.Dataset.scan(tmp_path / name) for name in "ab"]
    ledger = ip.Ledger(tmp_path / "run.ledger", data[0])
    ledger.record(plan, plan.cursor(0, step=9))
    assert ip.Ledger(ledger.path, data[0]).verify().ok
    with pytest.raises(ip.PlanFileError, match=r"1,000 samples, has 999"):
        ip.Ledger(ledger.path, data[1])


def test_weights_travel_with_the_ledger(tmp_path: Path) -> None:
    """Columns are beside the file, so that it can be asked where nobody has the weights."""
    weights = [1.0, 2.0, 5.0] * 20
    plan = ip.Plan(ip.Weighted(weights), world_size=2, batch_size=3)
    ledger = ip.Ledger(tmp_path / "run.ledger")
    ledger.record(plan, plan.cursor(1, step=3))
    again = ip.Ledger(tmp_path / "run.ledger")
    assert plan.batch(1, step=2, rank=1).tolist() == again.batch(again.step - 1, 1).tolist()
    (column,) = (tmp_path / "columns").iterdir()
    column.write_bytes(column.read_bytes()[:-1] + b"?")
    assert not again.verify().ok


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
