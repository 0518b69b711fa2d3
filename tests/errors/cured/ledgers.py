"""The cures of errors of a run's ledger: its lines, its file, and what is asked of it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import indexplan as ip
from tests.errors.catalogue.ledgers import CASES, OTHER, PLAN, begun, jump, ledger
from tests.errors.catalogue.made import OPEN, written


def one_sample(**changes: Any) -> ip.Plan:
    """Return a plan of one sample."""
    return ip.Plan(ip.Sequential(1), world_size=1, batch_size=1).replace(**changes)


def weighted(path: str = "run.ledger") -> tuple[ip.Ledger, ip.Plan]:
    """Write the ledger of a plan with columns; return it, and the plan."""
    plan = ip.Plan(ip.Weighted([1, 2, 3]), world_size=1, batch_size=1)
    made = ip.Ledger(path)
    made.record(plan, plan.cursor(1, step=0))
    return made, plan


def put_in_its_place() -> None:
    """Put the file in the place of a folder."""
    Path("run.ledger").mkdir()
    Path("run.ledger").rmdir()
    ledger().batch(0, 0)


def permitted(mode: int) -> None:
    """Give a file back the permissions that it lacked."""
    made = ledger()
    Path("run.ledger").chmod(mode)
    Path("run.ledger").chmod(0o644)
    ip.Ledger("run.ledger").batch(0, 0)
    made.rewind(1)


def one_writer() -> None:
    """Let one process write a ledger, and give each run one of its own."""
    one, other = ledger(), ledger("other.ledger")
    one.rewind(2)
    other.rewind(1)
    one.rewind(1)


def columns_restored() -> None:
    """Restore the columns from a copy; and pass the plan as the script makes it."""
    made, plan = weighted()
    shutil.copytree("columns", "copy")
    shutil.rmtree("columns")
    shutil.copytree("copy", "columns")
    ip.Ledger("run.ledger").batch(0, 0)
    made.record(made.plan, plan.cursor(2, step=0))


def columns_made_again() -> None:
    """Record with the plan as the script makes it, where its columns are gone."""
    made, plan = weighted("other.ledger")
    assert made.plan == plan
    for path in Path("columns").iterdir():
        path.unlink()
    made.record(plan, plan.cursor(2, step=0))
    assert made.step == 6


def restored() -> None:
    """Restore a ledger from a copy."""
    ledger()
    shutil.copy("run.ledger", "copy.ledger")
    written("run.ledger", b"what was written over it")
    shutil.copy("copy.ledger", "run.ledger")
    assert ip.Ledger("run.ledger").step == 3


def cut_at_the_line() -> None:
    """Keep the lines before one that is broken, which are whole."""
    ledger()
    path = Path("run.ledger")
    lines = path.read_bytes().splitlines(keepends=True)
    lines[1] = lines[1].replace(b'"steps":3', b'"steps":4')
    path.write_bytes(b"".join(lines[:1]))
    made = ip.Ledger("run.ledger")
    made.record(PLAN, PLAN.cursor(1, step=0))
    assert made.step == 3


def another_run() -> None:
    """Give a run that does not continue a ledger's one of its own; and pass one that does."""
    made = ledger()
    ip.Ledger("other.ledger").record(OTHER, OTHER.cursor(2, step=0))
    made.record(PLAN, PLAN.cursor(2, step=0))


def shorter_steps() -> None:
    """Record steps of a smaller batch size."""
    plan = ip.Plan(ip.Sequential(1), world_size=1, batch_size=2**13, remainder="carry")
    ip.Ledger("run.ledger").record(plan, plan.cursor(0, step=1))


def in_several_lines() -> None:
    """Record the first two of several lines; all of them take minutes."""
    plan, made = PLAN.replace(sub_epochs=5), ip.Ledger("run.ledger")
    for epoch in (2**9, 2**10):
        made.record(plan, plan.cursor(epoch, 0, step=0))
    assert made.step == 5 * 2**10


def from_its_place() -> None:
    """Begin where the run stands; and in a ledger of its own, elsewhere."""
    plan = PLAN.replace(batch_size=1)
    ledger().begin(plan.resume(PLAN.cursor(1, step=0)))
    ip.Ledger("own.ledger").begin(plan.resume(plan.cursor(0, step=3)))


def up_to_there() -> None:
    """Record what was read up to there first; and begin with the plan."""
    later = PLAN.resume(PLAN.cursor(1, step=2))
    made = ledger()
    made.record(PLAN, PLAN.cursor(1, step=2))
    made.record(later, later.cursor(2, step=0))
    made.rewind(4)
    made.begin(later, skip=True)
    made.record(later, later.cursor(2, step=0))


def to_its_own_hash() -> None:
    """Return to a line of a ledger, and of its copy."""
    made = ledger()
    kept = made.hash
    shutil.copy("run.ledger", "copy.ledger")
    made.record(PLAN, PLAN.cursor(2, step=0))
    made.rewind(kept)
    ip.Ledger("copy.ledger").rewind(kept)


def as_begun() -> None:
    """Start with the plan of a run without a step."""
    made = begun()
    made.record(PLAN, PLAN.cursor(0, step=1))
    assert made.cursor == PLAN.cursor(0, step=1)


DAMAGED = [name for name, _ in CASES]
DAMAGED = DAMAGED[DAMAGED.index("no ledger") : DAMAGED.index("a sparse file")]
CURED: dict[str, Callable[[], Any]] = {
    "a path that is none": lambda: ledger(),  # noqa: PLW0108 (as all others)
    "a folder": put_in_its_place,
    "a file that may not be read": lambda: permitted(0o000),
    "a file that may not be written": lambda: permitted(0o444),
    "a file that may not grow": lambda: ledger().rewind(1),
    "a folder that is not there": lambda: [Path("no").mkdir(), ledger("no/run.ledger")],
    "two writers, one after the other": one_writer,
    "two writers at once": one_writer,
    "columns that are gone": columns_restored,
    "columns that are gone, of a plan that was read there": lambda: [
        columns_made_again(),
        columns_restored(),
    ],
    **dict.fromkeys(set(DAMAGED) - {"a plan of no partition"}, restored),
    "a byte that was changed": lambda: [restored(), cut_at_the_line()],
    "a sparse file": lambda: ledger("new.ledger"),
    "a line without an end": restored,
    "an open plan": lambda: ip.Ledger("run.ledger").record(
        OPEN.replace(world_size=2), PLAN.cursor(1, step=0)
    ),
    "no plan": lambda: ip.Ledger("run.ledger").record(PLAN, PLAN.cursor(1, step=0)),
    "no cursor": lambda: ip.Ledger("run.ledger").record(PLAN, PLAN.cursor(0, step=1)),
    "a cursor that lies back": lambda: ledger().record(PLAN, PLAN.cursor(1, step=1)),
    "a plan that does not continue": another_run,
    "steps of too many sub-epochs": in_several_lines,
    "a step of too many sub-epochs": shorter_steps,
    "a note that is not JSON": lambda: ip.Ledger("run.ledger").record(
        PLAN, PLAN.cursor(1, step=0), {"global_step": 500}
    ),
    "a start that is no step's": from_its_place,
    "a plan that starts past its end": up_to_there,
    "a jump over too many epochs": lambda: jump(10_000),
    "a return to no step": lambda: ledger().rewind(2),
    "a checkpoint of another run": to_its_own_hash,
    "a plan of an empty ledger": lambda: ledger().plan,
    "the place of a run without a step": as_begun,
    "reads of an empty ledger": lambda: ledger().reads(0),
    "a step of an empty ledger": lambda: ledger().at(0),
    "a step that does not count": lambda: [(made := ledger()).batch(made.step - 1, 0)],
    "a rank that there was not": lambda: ledger().batch(0, 1),
    "a sample that is none": lambda: ledger().reads(9),
    "samples that are none": lambda: ledger().seen([9]),
    "a step that was not reached": lambda: ledger().seen([0], 3),
    "an epoch that was not begun": lambda: ledger().account(),
    "epochs of runs": lambda: [
        ip.diff(ledger("a"), ledger("b")),
        ip.diff(ledger("c").plan, ledger("d").plan, [0]),
    ],
    "a run and an open plan": lambda: ip.diff(ledger(), OPEN.replace(world_size=2)),
    "a picture of no ledger": lambda: ip.plot.life(ledger()),
    "a picture of no step": lambda: ip.plot.life(ledger()),
}
