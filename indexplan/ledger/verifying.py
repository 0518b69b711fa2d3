"""Whether a ledger holds together: every byte by the chain, every line by arithmetic."""

from __future__ import annotations

from collections.abc import Iterator

from indexplan.checks import Check, Report
from indexplan.errors import IndexPlanError, PlanFileError
from indexplan.files.columns import damage, identities
from indexplan.ledger.file import LedgerFile
from indexplan.ledger.history import History, NamedPlan
from indexplan.ledger.lines import FIRST, PlanLine, RunLine
from indexplan.partition.steps import Resume
from indexplan.stores.folder import Folder

CHAIN = "each line holds the sha256 of the line before"
STEPS = "each line continues where the one before stops, by as many steps as it says"
PLANS = "each plan can be made, and continues the one before"
NAMED = "the line of the checkpoint is there"


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


def _found(file: LedgerFile) -> Iterator[tuple[str, str]]:
    """Yield each thing that was looked at, by the name of its check, and what is wrong or ""."""
    history, folder = History(file.columns(), file.where), Folder(file.path.parent)
    compared: set[str] = set()  # columns
    for number, line in enumerate(file.lines, 1):
        name, where = PLANS if isinstance(line, PlanLine) else STEPS, f"{file.where(number)}: "
        old, at = history.plans.get(history.last_plan), history.place
        try:
            history.add(line, number)
            if isinstance(line, PlanLine):
                named = identities(line.plan)  # each once, as most are those of the plan before
                new = [each for path, each in named.items() if path not in compared]
                for problem in damage(folder, new):
                    yield PLANS, where + problem
                compared.update(named)
                history.plans[number].plan  # noqa: B018 (it raises)
            elif isinstance(line, RunLine):
                plan = history.plans[line.plan]
                if history.step > line.steps and not (old and at and _continues(plan, old, at)):
                    yield PLANS, f"{where}its plan does not continue the one before"
                history.walk(history.live[-1])
            yield name, ""
        except IndexPlanError as error:
            yield name, where + str(error).removeprefix(where)
            return  # what follows builds on it


def _continues(plan: NamedPlan, old: NamedPlan, at: Resume) -> bool:
    """Return whether a plan continues at a place what another has read up to there."""
    if plan is old:
        return True
    order, before = plan.plan.order, old.line.plan
    same = plan.plan.sub_epochs == before["sub_epochs"]
    return same and order.continues(before["order"], at.epoch, at.position)
