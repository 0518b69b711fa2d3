"""Specs that nobody has, forged files and scarce threads: bounded memory and work, or refused."""

from __future__ import annotations

import json
import os
import resource
import tempfile
import tracemalloc
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import indexplan as ip
from indexplan.canonical import MOST_MARKS, canonical_json, parse_json_object
from indexplan.files.format import NUM_CHUNKS_MAX, PLAN, Build
from indexplan.partition import account as accounting
from indexplan.partition import locate as locating
from indexplan.partition.remainders import REMAINDERS
from indexplan.reports import laws as checks
from indexplan.reports.show import show_plan
from tests.support.children import become_nobody, in_child
from tests.support.planned import planned

MANY = 2**31 - 1  # ranks, of which an array would take 16 GiB
MB = 2**20


def peak(ask: Callable[[], Any]) -> tuple[Any, int]:
    """Return an answer, and how many bytes Python and NumPy held at most on the way to it."""
    tracemalloc.start()
    try:
        return ask(), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def said(call: Any) -> str:
    """Return what a call is refused with."""
    with pytest.raises(ip.IndexPlanError) as refused:
        call()
    return str(refused.value)


def scheduled(num_phases: int, **fields: Any) -> ip.Plan:
    """Return a plan with so many phases in its first epoch, or in as many sub-epochs of it."""
    n = 10**6
    later = [(i * (n // num_phases), 8 + i % 5) for i in range(1, num_phases)]
    if fields.get("sub_epochs", 1) > 1:
        later = [((0, i), 8 + i % 5) for i in range(1, num_phases)]
    phases = [ip.Phase(at, size) for at, size in [(0, 8), *later]]
    return ip.Plan(ip.Sequential(n), world_size=8, batch_size=phases, **fields)


@pytest.mark.parametrize("remainder", REMAINDERS)
def test_as_many_ranks_as_there_may_be(remainder: str) -> None:
    """`account`, `verify` and `diff` cost nothing for 2**31 - 1 ranks, and are right."""
    n = 10 * MANY + 7
    fields = {"world_size": MANY, "remainder": remainder, "sub_epochs": 3}
    plan = ip.Plan(ip.Sequential(n), global_batch_size=2**31 + 5, **fields)
    account, held = peak(lambda: plan.account(0))
    assert held < MB
    total = account.num_units - account.num_dropped + account.num_padded
    if remainder == "carry":
        total = -(-n // (2**31 + 5)) * (2**31 + 5)
    assert account.min_per_rank <= total // MANY <= -(-total // MANY) <= account.max_per_rank
    assert account.max_per_rank - account.min_per_rank <= (1 if remainder != "drop" else 3)
    report, held = peak(lambda: ip.verify(plan))
    assert (True, True) == (report.ok, held < 4 * MB), report
    difference, held = peak(lambda: ip.diff(plan, plan.replace(world_size=3), [0]))
    assert ((0, 0, 0), True) == (difference.ranks_from, held < 4 * MB)


def test_shares_that_are_too_many() -> None:
    """Where the shares of millions of sub-epochs all differ, the account names its limit."""
    plan = ip.Plan(
        ip.Sequential(2**50),
        world_size=MANY,
        global_batch_size=1001,
        sub_epochs=2**30,
        remainder="drop",
    )
    assert "at most 1048576" in said(lambda: plan.account(0))
    assert 2**50 == plan.replace(remainder="spread").account(0).num_read
    assert accounting.MOST_SHARES == 1048576


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many spans of a schedule `locate` has looked at, one after another."""
    counted = []
    part_of = locating.part_of

    def counting(total: int, parts: int, things: Any) -> Any:
        counted.append(len(things))
        return part_of(total, parts, things)

    monkeypatch.setattr(locating, "part_of", counting)
    return counted


@pytest.mark.parametrize("remainder", ["spread", "carry"])
def test_locating_looks_at_few_of_many_phases(remainder: str, spans: list[int]) -> None:
    """Finding a sample costs the same whether the schedule has three phases or 2,000."""
    for num_phases in (3, 2000):
        plan = scheduled(num_phases, remainder=remainder)
        spans.clear()
        where = plan.locate(567_890, 0)
        batch = plan.batch(0, step=where.step, rank=where.rank)
        assert 567_890 == batch[where.slot]
        assert [1] == spans  # one span, and one place in it


@pytest.mark.parametrize("remainder", ["spread", "carry"])
@pytest.mark.parametrize("fields", [{}, {"sub_epochs": 5000}])
def test_verify_looks_at_some_steps_of_many_phases(
    remainder: str, fields: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 2,000 phases `verify` looks at all spans, and at so many steps as take a second."""
    assert 512 == checks.MOST_STEPS
    monkeypatch.setattr(checks, "MOST_STEPS", 32)
    report = ip.verify(scheduled(2000, remainder=remainder, **fields))
    assert report.ok, str(report)
    counts = {check.name: check.num_checked for check in report.checks}
    assert checks.MOST_STEPS == counts["ranks tile their step, within one unit"]
    assert checks.MOST_STEPS == counts[checks.INVERSE]
    assert counts[checks.TILE] <= 1 + 5 * checks.FEW
    assert 10**6 == counts["every unit is accounted for"]


@pytest.mark.parametrize("n", [20, 10**12])
@pytest.mark.parametrize("remainder", REMAINDERS)
def test_batches_larger_than_memory(remainder: str, n: int) -> None:
    """Of a batch of 2**33 units `verify` draws the first and the last; `show` draws none."""
    plan = planned(ip.Sequential(n), world_size=2, batch_size=2**33, remainder=remainder)
    report, held = peak(lambda: ip.verify(plan))
    assert report.ok, str(report)
    assert held < 4 * MB
    shown, held = peak(lambda: show_plan(plan, None, 0, None))
    assert 0 == shown.to_dict()["accounts"][0]["epoch"]
    assert held < 4 * MB


HOSTILE: dict[str, Callable[[int], str]] = {  # JSON of many times its size in memory
    "fields": lambda size: "{" + ",".join(f'"{i:06d}":0' for i in range(size // 11)) + "}",
    "lists": lambda size: '{"a":[' + "[]," * (size // 3) + "0]}",
    "objects": lambda size: '{"a":[' + '{"":0},' * (size // 7) + "0]}",
    "strings": lambda size: '{"a":[' + '"ab",' * (size // 5) + "0]}",
}


@pytest.mark.parametrize("name", sorted(HOSTILE))
def test_hostile_json_is_refused(name: str, tmp_path: Path) -> None:
    """JSON that would become thirty times its size in objects is refused before it does."""
    text = HOSTILE[name](4 * MB)
    for read, written in product((ip.Plan.from_json, ip.Cursor.from_json), (text, text.encode())):
        told, held = peak(lambda read=read, written=written: said(lambda: read(written)))
        assert "must hold at most 1048576 brackets" in told
        assert held < MB
    ip.save(ip.Plan(ip.Sequential(20), batch_size=2), tmp_path / "a.plan")
    (tmp_path / "a.plan/plan.json").write_text(text)
    assert "must hold at most 1048576 brackets" in said(lambda: ip.load(tmp_path / "a.plan"))


@pytest.mark.parametrize("name", sorted(HOSTILE))
def test_json_that_is_read_costs_little(name: str) -> None:
    """What passes takes at most 100 bytes for each bracket, colon and quote: 100 MB in all."""
    text = HOSTILE[name](MB // 4)
    num_marks = sum(map(text.count, '[{:"'))
    _, held = peak(lambda: parse_json_object("a text", text))
    assert 10_000 < num_marks < MOST_MARKS
    assert held < 100 * num_marks


def test_long_lists_of_numbers_are_read() -> None:
    """An order may list a million numbers, which are no marks."""
    text = '{"a":[' + "7," * 10**6 + "0]}"
    assert 10**6 + 1 == len(parse_json_object("a text", text)["a"])


@pytest.mark.parametrize("name", ["epochs", "num_units", "traits", "sha256", "seed", "more"])
def test_millions_of_numbers_are_refused(name: str, tmp_path: Path) -> None:
    """A plan.json that lists them, wherever it does, is refused before any is read."""
    ip.save(ip.Plan(ip.Shuffle(20, seed=7), batch_size=2), tmp_path / "a.plan")
    written = json.loads((tmp_path / "a.plan/plan.json").read_text())
    (written["plan"]["order"] if name == "seed" else written)[name] = "many"
    text = json.dumps(written).replace('"many"', "[" + "0," * (5 * 10**6) + "0]")
    (tmp_path / "a.plan/plan.json").write_text(text)
    told, held = peak(lambda: said(lambda: ip.load(tmp_path / "a.plan")))
    assert "must hold at most 4194304 commas; got 50000" in told
    assert held < 4 * len(text)


@pytest.mark.slow
def test_the_most_epochs_that_are_saved_can_be_read() -> None:
    """A plan.json of as many epochs as a plan directory has chunk files at most is no such list."""
    plan = ip.Plan(ip.Shuffle(20), batch_size=2)
    build = Build.of(json.loads(plan.to_json()), plan.order, range(NUM_CHUNKS_MAX), 20, None)
    assert build.to_dict() == parse_json_object(PLAN, canonical_json(build.to_dict()))


@pytest.mark.parametrize(
    "ask",
    [
        lambda plan, epochs: ip.save(plan, "a.plan", epochs=epochs),
        lambda plan, epochs: ip.export(plan, "a.plan", epochs=epochs),
        ip.verify,
        lambda plan, epochs: ip.diff(plan, plan, epochs),
        lambda plan, epochs: ip.explain(plan, 0, epochs),
    ],
)
def test_epochs_are_not_all_listed(
    ask: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More than a million epochs are refused once a million is passed, and nothing is written."""
    monkeypatch.chdir(tmp_path)
    plan = ip.Plan(ip.Sequential(20), world_size=2, batch_size=2)
    drawn = 0

    def endless() -> Iterator[int]:
        nonlocal drawn
        while True:
            yield drawn
            drawn += 1

    told = said(lambda: ask(plan, endless()))
    assert "epochs must be at most 1048576 epochs; got 'more'; pass fewer at a time" == told
    assert 2**20 == drawn
    assert [] == list(tmp_path.iterdir())


def with_40_files(root: str) -> Any:
    """Read a plan of 200 chunks in every way where 40 files may be open, some of them already."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (40, most))
    plan = ip.load(root)
    read = [plan.indices(0, rank=rank).tolist() for rank in range(2)]
    again = ip.load(root).order.take(0, np.arange(2000)[::-7]).tolist()
    with Path(root, "plan.json").open() as one:
        more = [ip.verify(ip.load(root)).ok, one.read(1)]
    exported = ip.export(ip.load(root), f"{root}.exported").num_written
    kept = ip.save(ip.load(root), root, units_per_chunk=10).num_kept
    return read, again, more, exported, kept


def test_a_plan_of_more_chunks_than_files_may_be_open(tmp_path: Path) -> None:
    """A plan of 200 chunks is read, verified and exported where 40 files may be open."""
    plan = ip.Plan(ip.Shuffle(2000, seed=1), world_size=2, batch_size=8)
    ip.save(plan, tmp_path / "a.plan", units_per_chunk=10)
    read, again, more, exported, kept = in_child(with_40_files, str(tmp_path / "a.plan"))
    assert read == [plan.indices(0, rank=rank).tolist() for rank in range(2)]
    assert again == plan.order.take(0, np.arange(2000)[::-7]).tolist()
    assert ([True, "{"], 4, 200) == (more, exported, kept)


SAVED = ip.Plan(ip.Shuffle(1000), world_size=1, batch_size=8)


def without_threads(folder: str) -> tuple[str, str]:
    """Ask for threads where there are none to be had."""
    ip.save(SAVED, f"{folder}/there.plan")
    become_nobody()
    resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
    return (
        said(lambda: ip.save(SAVED, f"{folder}/new.plan")),
        said(lambda: ip.verify(ip.load(f"{folder}/there.plan"))),
    )


def without_files(folder: str) -> str:
    """Open a plan where a process may open no more files."""
    ip.save(SAVED, f"{folder}/there.plan")
    resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
    held = []
    try:
        while True:
            held.append(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        return said(lambda: ip.load(f"{folder}/there.plan"))


def test_no_thread_to_be_had() -> None:
    """Indices are drawn by the threads that there are; a build says which limit to raise."""
    message = (
        "the executor must run until the build is done; got RuntimeError (can't start new "
        "thread); raise the limit on processes (ulimit -u), then run it again"
    )
    with tempfile.TemporaryDirectory() as folder:  # unlike pytest's, one that others may enter
        Path(folder).chmod(0o777)
        assert (message, message) == in_child(without_threads, folder)


def test_too_many_open_files(tmp_path: Path) -> None:
    """Too many open files are no matter of permissions."""
    message = (
        f"{tmp_path}/there.plan/plan.json must be readable; got 'Too many open files'; raise "
        f"the limit on open files (ulimit -n), or close some"
    )
    assert message == in_child(without_files, str(tmp_path))
