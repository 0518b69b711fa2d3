"""Errors of a run's ledger: its lines, its file, and what is asked of it."""

from __future__ import annotations

import fcntl
import json
import os
import resource
from pathlib import Path
from typing import Any

import indexplan as ip
from indexplan.ledger.lines import FIRST, LONGEST
from tests.errors.catalogue.made import OPEN, Case, Command, locked, saved, written
from tests.support.children import nobody
from tests.support.forging import ledger_of

PLAN = ip.Plan(ip.Sequential(10), world_size=2, batch_size=2)
RESUMED = PLAN.resume(PLAN.cursor(0, step=1))
OTHER = PLAN.replace(order=ip.Shuffle(10))
NAMED = {"kind": "plan", "plan": json.loads(PLAN.to_json()), "data": None}
RUN = {"kind": "run", "plan": 1, "step": 0, "steps": 2, "from": [0, 0, 0, 0], "to": [0, 0, 2, 7]}


def ledger(path: str = "run.ledger", epoch: int = 1) -> ip.Ledger:
    """Write the ledger of a run, which has 3 steps in an epoch."""
    made = ip.Ledger(path)
    made.record(PLAN, PLAN.cursor(epoch, step=0))
    return made


def holding(*lines: dict[str, Any]) -> ip.Ledger:
    """Open a ledger of any lines, each with the checksum and hash that it needs."""
    written("run.ledger", ledger_of(lines))
    return ip.Ledger("run.ledger")


def changed(**fields: Any) -> ip.Ledger:
    """Open a ledger whose second line, of two steps, has other fields."""
    return holding(NAMED, {**RUN, **fields})


def naming(**fields: Any) -> ip.Ledger:
    """Open a ledger whose plan has other fields."""
    return holding({**NAMED, "plan": {**json.loads(PLAN.to_json()), **fields}})


def endless() -> None:
    """Open a file of a line without an end."""
    written("run.ledger", b" " * LONGEST)
    ip.Ledger("run.ledger")


def after(**line: Any) -> ip.Ledger:
    """Open a ledger with one more line after two steps."""
    return holding(NAMED, RUN, line)


def flipped() -> None:
    """Open a ledger of which one byte was changed."""
    ledger()
    path = Path("run.ledger")
    path.write_bytes(path.read_bytes().replace(b'"steps":3', b'"steps":4'))
    ip.Ledger("run.ledger")


def two_writers() -> None:
    """Write a ledger that another process has written since."""
    one, other = ledger(), ip.Ledger("run.ledger")
    one.rewind(2)
    other.rewind(1)


def at_once() -> None:
    """Write a ledger while another process holds its lock."""
    made = ledger()
    with open("run.ledger", "rb") as stream:  # noqa: PTH123 (as another process has it open)
        fcntl.flock(stream, fcntl.LOCK_EX)
        made.rewind(1)


def read_only(made: ip.Ledger) -> None:
    """Write a ledger whose file may not be written."""
    with nobody({".": 0o755, "run.ledger": 0o444}):
        made.rewind(1)


def too_long() -> None:
    """Write a ledger where no file may grow."""
    made, before = ledger(), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (Path("run.ledger").stat().st_size, before[1]))
    try:
        made.rewind(1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def far() -> None:
    """Read more sub-epochs without a break than are added up."""
    plan = PLAN.replace(sub_epochs=5)
    ip.Ledger("run.ledger").record(plan, plan.cursor(2**19, 0, step=0))


def long_step() -> None:
    """Read a step that reads on through more epochs than a line may."""
    plan = ip.Plan(ip.Sequential(1), world_size=1, batch_size=2**15, remainder="carry")
    ip.Ledger("run.ledger").record(plan, plan.cursor(0, step=1))


def sparse() -> None:
    """Open a file of many bytes that takes no room."""
    written("run.ledger", b"")
    os.truncate("run.ledger", 40 * 2**30)
    ip.Ledger("run.ledger")


def shut() -> None:
    """Open a ledger in a folder that may not be entered."""
    Path("shut").mkdir()
    ledger("shut/run.ledger")
    with nobody({".": 0o755, "shut": 0o700}):
        ip.Ledger("shut/run.ledger")


def varying() -> Any:
    """Ask a ledger of a line through more sub-epochs than one may have, without a sample."""
    plan = ip.Plan(ip.Sequential(2**15), world_size=1, batch_size=1, sub_epochs=2**15)
    since = plan.cursor(0, 1, step=0)
    plan = plan.replace(order=ip.Without(plan.order, [1], since=since))
    ip.Ledger("run.ledger")._file.keep_columns(plan)
    line = {**RUN, "steps": 40, "to": [1, 0, 0, 0]}
    return holding({**NAMED, "plan": json.loads(plan.to_json())}, line).account(0)


def padded() -> Any:
    """Ask a ledger of a line whose steps read an epoch again and again to be full."""
    plan = ip.Plan(ip.Sequential(1), world_size=1, batch_size=2**15, remainder="pad")
    line = {**RUN, "steps": 40, "to": [40, 0, 0, 0]}
    return holding({**NAMED, "plan": json.loads(plan.to_json())}, line).account(0)


def without_columns() -> None:
    """Ask a ledger whose columns are gone."""
    plan = ip.Plan(ip.Weighted([1, 2, 3]), world_size=1, batch_size=1)
    ip.Ledger("run.ledger").record(plan, plan.cursor(1, step=0))
    for path in Path("columns").iterdir():
        path.unlink()
    ip.Ledger("run.ledger").batch(0, 0)


def lost_columns() -> None:
    """Record with a plan whose columns were read from the ledger's folder, and are gone."""
    plan = ip.Plan(ip.Weighted([1, 2, 3]), world_size=1, batch_size=1)
    made = ip.Ledger("run.ledger")
    made.record(plan, plan.cursor(1, step=0))
    plan = made.plan
    for path in Path("columns").iterdir():
        path.unlink()
    made.record(plan, plan.cursor(2, step=0))


def past_it() -> None:
    """Record what a plan read that starts past the place where the ledger stands."""
    made = ledger()
    later = PLAN.resume(PLAN.cursor(1, step=2))
    made.record(later, later.cursor(2, step=0))


def jump(epoch: int) -> None:
    """Skip all steps up to an epoch."""
    ledger().begin(PLAN.resume(PLAN.cursor(epoch, step=0)), skip=True)


def begun_elsewhere(epoch: int, step: int) -> None:
    """Begin with a plan where the run never stood."""
    ledger().begin(
        PLAN.replace(batch_size=1).resume(PLAN.replace(batch_size=1).cursor(epoch, step=step))
    )


def begun() -> ip.Ledger:
    """Begin a run, and read no step."""
    made = ip.Ledger("run.ledger")
    made.begin(PLAN)
    return made


CASES: list[Case] = [
    # the file
    ("a path that is none", lambda: ip.Ledger(7)),  # type: ignore[arg-type]
    ("a folder", lambda: (Path("run.ledger").mkdir(), ip.Ledger("run.ledger"))),
    (
        "a file that may not be read",
        lambda: (ledger(), locked({"run.ledger": 0o000}, lambda: ip.Ledger("run.ledger"))),
    ),
    ("a file that may not be written", lambda: read_only(ledger())),
    ("a file that may not grow", too_long),
    ("a folder that is not there", lambda: ledger("no/run.ledger")),
    ("two writers, one after the other", two_writers),
    ("two writers at once", at_once),
    ("columns that are gone", without_columns),
    ("columns that are gone, of a plan that was read there", lost_columns),
    # its lines
    ("no ledger", lambda: (written("run.ledger", "a\n"), ip.Ledger("run.ledger"))),
    ("a byte that was changed", flipped),
    ("a line that was dropped", lambda: holding(NAMED, {**RUN, "previous": FIRST})),
    ("a kind of line that is none", lambda: holding({"kind": "sum"})),
    ("a line without a field", lambda: holding({"kind": "plan", "plan": {}})),
    ("a plan that is no object", lambda: holding({**NAMED, "plan": 7})),
    ("data that is no object", lambda: holding({**NAMED, "data": 7})),
    ("a note that is no object", lambda: changed(note=7)),
    ("steps that are no number", lambda: changed(steps="2")),
    ("a place of three numbers", lambda: changed(to=[0, 0, 2])),
    ("a place in no epoch", lambda: changed(to=[-1, 0, 2, 7])),
    ("a place below 0", lambda: changed(to=[0, 0, -1, 7])),
    ("a place before the other", lambda: changed(to=[0, 0, 0, 0])),
    ("a plan of no line", lambda: changed(plan=2)),
    ("a step that does not follow", lambda: changed(step=1)),
    ("a place that does not follow", lambda: after(**{**RUN, "step": 2, "to": [0, 0, 3, 10]})),
    ("a return to a later step", lambda: after(kind="discard", step=2)),
    ("a plan that is open", lambda: holding({**NAMED, "plan": json.loads(OPEN.to_json())}, RUN)),
    ("a plan that was resumed", lambda: holding({**NAMED, "plan": json.loads(RESUMED.to_json())})),
    ("a plan of no order", lambda: naming(order=[])),
    (
        "a plan of an order that nobody registers",
        lambda: naming(order={**PLAN.order.to_dict(), "algorithm": "gone-v1"}).plan,
    ),
    ("a folder that may not be entered", shut),
    ("a line of many sub-epochs of an order that varies", varying),
    ("a line of steps that read an epoch too often", padded),
    ("a plan of no partition", lambda: naming(partition=2)),
    ("a place in no sub-epoch", lambda: changed(to=[0, 1, 2, 7])),
    ("steps that the plan lacks", lambda: changed(steps=3).batch(0, 0)),
    ("a place at which no step stops", lambda: changed(to=[0, 0, 2, 6]).batch(0, 0)),
    ("a sparse file", sparse),
    ("a line without an end", endless),
    # what a run writes
    ("an open plan", lambda: ip.Ledger("run.ledger").record(OPEN, PLAN.cursor(1, step=0))),
    ("no plan", lambda: ip.Ledger("run.ledger").record(7, PLAN.cursor(1, step=0))),  # type: ignore[arg-type]
    ("no cursor", lambda: ip.Ledger("run.ledger").record(PLAN, 7)),  # type: ignore[arg-type]
    ("a cursor that lies back", lambda: ledger().record(PLAN, PLAN.cursor(0, step=1))),
    ("a plan that does not continue", lambda: ledger().record(OTHER, OTHER.cursor(2, step=0))),
    ("steps of too many sub-epochs", far),
    ("a step of too many sub-epochs", long_step),
    (
        "a note that is not JSON",
        lambda: ip.Ledger("run.ledger").record(PLAN, PLAN.cursor(1, step=0), {"a": {1}}),
    ),
    ("a start that is no step's", lambda: begun_elsewhere(0, 3)),
    ("a plan that starts past its end", past_it),
    ("a jump over too many epochs", lambda: jump(20_000)),
    ("a return to no step", lambda: ledger().rewind(9)),
    ("a checkpoint of another run", lambda: ledger().rewind("0" * 64)),
    # what is asked
    ("a plan of an empty ledger", lambda: ip.Ledger("run.ledger").plan),
    ("the place of a run without a step", lambda: begun().cursor),
    ("reads of an empty ledger", lambda: ip.Ledger("run.ledger").reads(0)),
    ("a step of an empty ledger", lambda: ip.Ledger("run.ledger").at(0)),
    ("a step that does not count", lambda: ledger().batch(3, 0)),
    ("a rank that there was not", lambda: ledger().batch(0, 2)),
    ("a sample that is none", lambda: ledger().reads(10)),
    ("samples that are none", lambda: ledger().seen([10])),
    ("a step that was not reached", lambda: ledger().seen([0], 4)),
    ("an epoch that was not begun", lambda: ledger().account(2)),
    ("epochs of runs", lambda: ip.diff(ledger("a"), ledger("b"), [0])),
    ("a run and an open plan", lambda: ip.diff(ledger(), OPEN)),
    ("a picture of no ledger", lambda: ip.plot.life(PLAN)),  # type: ignore[arg-type]
    ("a picture of no step", lambda: ip.plot.life(ip.Ledger("run.ledger"))),
]

ACCOUNT = "ledger run.ledger account"
COMMANDS: list[Command] = [
    ("ledger", ledger, ledger, ACCOUNT),
    ("ledger run.ledger replay", ledger, "ledger run.ledger replay --step 0"),
    (f"{ACCOUNT} --epoch 2", ledger, ACCOUNT),
    (f"{ACCOUNT} --step 1", ledger, ACCOUNT, "ledger run.ledger replay --step 1"),
    (
        "ledger run.ledger replay --step 3",
        ledger,
        "show run.ledger",
        "ledger run.ledger replay --step 2",
    ),
    ("ledger nowhere account", ledger, ACCOUNT),
    ("show run.ledger --step 0 --rank 2", ledger, "show run.ledger --step 0 --rank 1"),
    ("locate run.ledger --index 10", ledger, "locate run.ledger --index 9"),
    (
        "ledger a.plan account",
        saved,
        lambda: Path("run.ledger").unlink(missing_ok=True),
        ledger,
        ACCOUNT,
    ),
    (
        ACCOUNT,
        lambda: written("run.ledger"),
        lambda: Path("run.ledger").unlink(missing_ok=True),
        ledger,
        ACCOUNT,
    ),
    (
        "ledger notes.txt account",
        lambda: written("notes.txt", "a line\n"),
        lambda: Path("run.ledger").unlink(missing_ok=True),
        ledger,
        ACCOUNT,
    ),
    (
        "verify plan.json --checkpoint 1",
        lambda: written("plan.json", PLAN.to_json()),
        "verify plan.json",
    ),
    ("diff run.ledger run.ledger --epochs 1", ledger, "diff run.ledger run.ledger"),
    ("plot run.ledger -o a.png --world-size 3", ledger, "plot run.ledger -o a.png"),
    ("show run.ledger --epoch 0", ledger, "show run.ledger"),
    ("verify run.ledger --world-size 3", ledger, "verify run.ledger"),
    ("explain run.ledger --index 1", ledger, "show run.ledger"),
]
