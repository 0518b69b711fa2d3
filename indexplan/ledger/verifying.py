"""Whether a ledger holds together: every byte by the chain, every line by arithmetic."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from indexplan.checks import Check, Report
from indexplan.errors import IndexPlanError, PlanFileError
from indexplan.files.columns import damage, identities
from indexplan.ledger.file import LedgerFile
from indexplan.ledger.history import History
from indexplan.ledger.lines import FIRST, Line, PlanLine, RunLine
from indexplan.stores.folder import Folder

CHAIN = "each line holds the sha256 of the line before"
STEPS = "each line continues where the one before stops, by as many steps as it says"
PLANS = "each plan can be made, and continues the one before"
NAMED = "the line of the checkpoint is there"

Found: TypeAlias = "Iterator[tuple[str, str]]"  # a check, and what is wrong or ""


class _Ledger(NamedTuple):
    """What a line is held against: the lines before it, and where columns are."""

    history: History
    folder: Folder
    columns: set[str]  # those that were compared


def verified(read: LedgerFile, checkpoint: str | None) -> Report:
    """Check a ledger, as its file is now."""
    try:
        file = LedgerFile(read.path)
    except PlanFileError as error:
        return Report((Check(CHAIN, 0, (str(error),)),))
    problems: dict[str, list[str]] = {name: [] for name in (STEPS, PLANS)}
    counts = dict.fromkeys(problems, 0)
    for name, problem in _found(file):
        counts[name] += 1
        problems[name] += [problem] if problem else []
    lost = (
        [] if file.hashes[: len(read.hashes)] == read.hashes else ["lines that were read are gone"]
    )
    checks = [Check(CHAIN, len(file.lines), tuple(lost))]
    checks += [Check(name, counts[name], tuple(found)) for name, found in problems.items()]
    if checkpoint is not None:
        known = checkpoint in (FIRST, *file.hashes)
        missing = () if known else (f"no line has the sha256 {checkpoint[:16]}...",)
        checks.append(Check(NAMED, 1, missing))
    return Report(tuple(checks))


def _found(file: LedgerFile) -> Found:
    """Yield each thing that was looked at, by the name of its check, and what is wrong or ""."""
    ledger = _Ledger(History(file.columns(), file.where), Folder(file.path.parent), set())
    for number, line in enumerate(file.lines, 1):
        try:
            found = _looked_at(ledger, number, line)
            yield from ((name, each and f"{file.where(number)}: {each}") for name, each in found)
        except IndexPlanError as error:
            name, where = PLANS if isinstance(line, PlanLine) else STEPS, f"{file.where(number)}: "
            yield name, where + str(error).removeprefix(where)
            return  # what follows builds on it


def _looked_at(ledger: _Ledger, number: int, line: Line) -> Found:
    """Look at a line, and add it to those before it."""
    if isinstance(line, PlanLine):
        yield from _plan(ledger, number, line)
    elif isinstance(line, RunLine):
        yield from _run(ledger, number, line)
    else:
        ledger.history.add(line, number)
        yield STEPS, ""


def _plan(ledger: _Ledger, number: int, line: PlanLine) -> Found:
    """Look at a line that names a plan."""
    history = ledger.history
    history.add(line, number)
    named = identities(line.plan)  # each column once, as most are those of the plan before
    new = [column for name, column in named.items() if name not in ledger.columns]
    for problem in damage(ledger.folder, new):
        yield PLANS, problem
    ledger.columns.update(named)
    history.plans[number].plan  # noqa: B018 (it raises)
    yield PLANS, ""


def _run(ledger: _Ledger, number: int, line: RunLine) -> Found:
    """Look at a line of steps: where they start and stop, and whether their plan continues."""
    history = ledger.history
    before, at = history.plans.get(history.last_plan), history.place or line.start
    history.add(line, number)
    named = history.plans[line.plan]
    if before is not None and before is not named and history.step > line.steps:
        order, old = named.plan.order, before.line.plan
        continues = order.continues(old["order"], at.epoch, at.position)
        if not (continues and named.plan.sub_epochs == old["sub_epochs"]):
            yield PLANS, "its plan does not continue the one before"  # which has read steps
    history.walk(history.live[-1])
    yield STEPS, ""
