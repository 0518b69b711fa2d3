"""verify: check that a plan keeps its laws, and that no byte of a plan directory has changed.

The laws are checked on the plan's own arithmetic, at the edges of sub-epochs and at places between
them, so that it takes seconds for any number of samples and of sub-epochs. A stored order is
generated again and compared with every byte of its files.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable

from indexplan.checks import Check, Report
from indexplan.errors import check_callable
from indexplan.files.read import Stored
from indexplan.files.verifying import check_files
from indexplan.keywords import named
from indexplan.orders.base import not_located
from indexplan.plan.plan import Plan, check_plan, layout_of
from indexplan.reports.laws import INVERSE, TILE, laws_of
from indexplan.seeds import check_epochs


@named
def verify(
    plan: Plan,
    epochs: Iterable[int] | None = None,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> Report:
    """Check that a plan reads what it promises, and that each byte of a plan directory is right.

    Call it on a plan directory that was built elsewhere, copied or kept for long, and on plans with
    an order of your own. It checks laws such as "steps tile their sub-epoch"; if the order is
    stored, it generates it again, and compares every byte of its files.

    Parameters
    ----------
    plan : Plan
        If its world_size is not set, its laws are checked for one rank; the report says so.
    epochs : iterable of int, optional
        The epochs whose steps are checked; by default those that are stored and not finished, or
        else the plan's first. Files are always checked whole.
    progress : callable, optional
        Called as progress(bytes_done, bytes_in_all) after each chunk file that is checked, in the
        calling thread.

    Returns
    -------
    Report
        `report.ok`, and the problems by check; `print(report)` to read it.

    Raises
    ------
    IndexPlanError
        If plan is not a plan, progress is not a function, or an epoch is out of range.
    PlanFileError
        If a file of a stored plan cannot be read.

    Notes
    -----
    If an epoch has more than 256 sub-epochs, only some are checked: those where size or phase
    change or where the plan was resumed, their neighbours, and some between; the report says how
    many. At most 512 steps of an epoch and 4,096 slots of a batch are looked at, so that a schedule
    of thousands of phases takes seconds, and a batch of any size takes little memory.

    If the algorithm of a stored order is not known here, its files are compared with their hashes
    and its samples are counted, but it cannot be generated again: the report says so, in `skipped`.
    This library's orders that read every sample once do so by construction; for other orders that
    claim it, samples are counted, which takes one byte of memory for each.

    Examples
    --------
    >>> import indexplan as ip
    >>> report = ip.verify(ip.Plan(ip.Shuffle(10**12), world_size=4096, batch_size=256))
    >>> report.ok
    True
    >>> print(report.checks[1])
    ok  steps tile their sub-epoch (953,675)
    """
    check_plan("plan", plan)
    check_callable("progress", progress)
    stored = plan.order if isinstance(plan.order, Stored) else None
    if epochs is None:
        written = stored.build.epochs if stored else ()
        epochs = [each for each in written if each >= plan.start.epoch] or [plan.start.epoch]
    chosen = sorted(set(check_epochs(epochs)))
    source, unknown = stored.known if stored is not None else (plan.order, "")
    if source is not None:
        plan = dataclasses.replace(plan, order=source)  # the files come last
    checks = _law_checks(plan, chosen, unknown or not_located(plan.order))
    if stored is not None:
        checks.extend(check_files(stored, progress))
    return Report(tuple(checks))


def _law_checks(plan: Plan, epochs: list[int], unlocated: str) -> list[Check]:
    """Check the laws of some epochs; `unlocated` says why samples cannot be located, if so."""
    unchecked = []
    if plan.world_size is None:
        why = "the plan's world_size is open; pass plan.replace(world_size=...), or --world-size"
        unchecked.append(Check("laws of more than one rank", 0, skipped=why))
        plan = dataclasses.replace(plan, world_size=1)
    resume = layout_of(plan).partition.resume
    left = [epoch for epoch in epochs if resume is None or epoch >= resume.epoch]
    if epochs and not left:
        why = "they were read before the plan was resumed"
        unchecked.append(Check("laws of these epochs", 0, skipped=why))
    seen: dict[str, tuple[list[int], list[str]]] = {}
    for epoch in left:
        for law, count, problems in laws_of(plan, epoch, located=not unlocated):
            counts, found = seen.setdefault(law, ([], []))
            counts.append(count)
            found.extend(problems)
    num_seen, in_all = sum(seen[TILE][0]) if seen else 0, len(left) * plan.sub_epochs
    if num_seen < in_all:
        why = f"{num_seen:,} of {in_all:,} were: those where something changes, and some between"
        unchecked.append(Check("all other sub-epochs", 0, skipped=why))
    if unlocated:
        unchecked.append(Check(INVERSE, 0, skipped=unlocated))
    checks = [Check(law, sum(counts), tuple(found)) for law, (counts, found) in seen.items()]
    return [*checks, *unchecked]
