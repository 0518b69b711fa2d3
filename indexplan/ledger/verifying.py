"""Whether a ledger holds together: every byte by the chain, every line by arithmetic."""

from __future__ import annotations

from collections.abc import Iterator

from indexplan.checks import Check, Report
from indexplan.errors import IndexPlanError, PlanFileError
from indexplan.files.columns import damage
from indexplan.ledger.changes import why
from indexplan.ledger.file import LedgerFile
from indexplan.ledger.history import History
from indexplan.ledger.lines import FIRST, ChangeLine, DiscardLine, PlanLine, RunLine
from indexplan.ledger.walking import steps_to
from indexplan.shards.dataset import Dataset
from indexplan.stores.folder import Folder

CHAIN = "each line holds the sha256 of the line before"
STEPS = "each line continues where the one before stops, by as many steps as it says"
PLANS = "each plan can be made, and continues the one before"
CHANGES = "each change is what the two plans say"
DATASET = "the dataset stays the same"
NAMED = "the line of the checkpoint is there"


def verified(read: LedgerFile, data: Dataset | None, checkpoint: str | None) -> Report:
    """Check a ledger, as its file is now."""
    try:
        file = LedgerFile(read.path)
    except PlanFileError as error:
        return Report((Check(CHAIN, 0, (str(error),)),))
    problems: dict[str, list[str]] = {name: [] for name in (STEPS, PLANS, CHANGES, DATASET)}
    counts = dict.fromkeys(problems, 0)
    for name, problem in _found(file, data):
        counts[name] += 1
        problems[name] += [problem] if problem else []
    lost = (
        [] if file.hashes[: len(read.hashes)] == read.hashes else ["lines that were read are gone"]
    )
    checks = [Check(CHAIN, len(file.lines), tuple(lost))]
    checks += [Check(name, counts[name], tuple(found)) for name, found in problems.items()]
    if checkpoint is not None:
        there = checkpoint in (FIRST, *file.hashes)
        said = () if there else (f"no line has the sha256 {checkpoint[:16]}...",)
        checks.append(Check(NAMED, 1, said))
    return Report(tuple(checks))


def _found(file: LedgerFile, data: Dataset | None) -> Iterator[tuple[str, str]]:
    """Yield each thing that was looked at, by the name of its check, and what is wrong or ""."""
    history = History(file.columns())
    known = None if data is None else data.to_dict()
    folder = Folder(file.path.parent)
    for number, line in enumerate(file.lines, 1):
        where = file.where(number)
        try:
            before = history.plans.get(history.last)
            history.add(line, number)
            if isinstance(line, PlanLine):
                known = line.data if known is None else known
                same = line.data is None or line.data == known
                yield DATASET, "" if same else f"{where}: another dataset than before"
                for problem in damage(folder, line.plan):
                    yield PLANS, f"{where}: {problem}"
                history.plans[number].plan  # noqa: B018 (it raises)
                yield PLANS, ""
            elif isinstance(line, ChangeLine):
                words = why(*(history.plans[each].line.plan for each in line[1:]))
                said = "" if words == line.why else f"{where}: {list(words)} changed"
                yield CHANGES, said
            elif isinstance(line, RunLine):
                named = history.plans[line.plan]
                if before is not None and before is not named:
                    order, old = named.plan.order, before.line.plan
                    at = line.start.epoch, line.start.position
                    continues = order.continues(old["order"], *at)
                    same = continues and named.plan.sub_epochs == old["sub_epochs"]
                    if history.step > line.steps and not same:  # what was read begins otherwise
                        yield PLANS, f"{where}: its plan does not continue the one before"
                found = steps_to(named.layout, line.start, line.stop)
                right = found == (line.steps, line.stop)
                said = "" if right else f"{where}: {found[0]} steps up to {list(found[1])}"
                yield STEPS, said
            elif isinstance(line, DiscardLine):
                yield STEPS, ""
        except IndexPlanError as error:
            name = PLANS if isinstance(line, PlanLine) else STEPS
            yield name, f"{where}: {error}"
            return  # what follows builds on it
