"""Holding an order to its laws."""

from __future__ import annotations

from collections.abc import Iterable

from indexplan.errors import IndexPlanError, shown, wrong
from indexplan.orders.base import Order
from indexplan.reports.verify import Check, Report
from indexplan.seeds import check_epochs
from indexplan.testing import copies, reading
from indexplan.testing.looking import Law, Look, Row

FAR = 2**31  # from this epoch on an order may refuse, as no run gets there
EPOCHS = (0, 1, 2, 2**31, 2**32 - 1)


def check_order(
    order: Order, *, epochs: Iterable[int] = EPOCHS, fresh_process: bool = True
) -> Report:
    """Check that an order keeps the laws that plans, plan directories and resuming rely on.

    Parameters
    ----------
    order : Order
        Of a small dataset: up to 4,096 units of an epoch are all looked at, and of more some
        3,000, so that any size takes seconds.
    epochs : iterable of int, optional
        The epochs that are looked at; by default 0, 1, 2, 2**31 and 2**32 - 1. From 2**31 on an
        order may refuse with an `IndexPlanError`, which the report then tells.
    fresh_process : bool, default True
        Whether to ask a new Python process too, about a second. It has to be able to import the
        module of the order's class, as workers of a DataLoader do.

    Returns
    -------
    Report
        The laws, and how many positions, samples or answers were looked at for each.

    Raises
    ------
    IndexPlanError
        If a law is broken: names the law, the order, the epoch and an example. If order is not an
        order, or an epoch is not one.

    Examples
    --------
    >>> import indexplan as ip
    >>> print(check_order(ip.Shuffle(100), epochs=[0], fresh_process=False).checks[4])
    ok  read samples from 0 to num_samples - 1 (100)
    """
    if not isinstance(order, Order):
        raise wrong("order", "an indexplan.Order", order, "pass one, such as MyOrder(100)")
    rows = [Row(order, epoch) for epoch in dict.fromkeys(check_epochs(epochs))]
    refused = {row.epoch: said for row in rows if (said := row.ask()) and row.epoch >= FAR}
    left = [row for row in rows if row.epoch not in refused]
    if not left:
        rule = "some that the order reads"
        raise wrong("epochs", rule, [row.epoch for row in rows], "leave it out")
    look = Look(order, left)
    checks = []
    for law in (*reading.LAWS, *copies.LAWS):
        if law is copies.IN_A_NEW_PROCESS and not fresh_process:
            checks.append(Check(law.words, 0, skipped="fresh_process is False"))
        else:
            checks.append(_checked(law, look))
    for epoch, said in refused.items():
        checks.append(Check(f"read epoch {epoch}", 0, skipped=f"the order refuses: {said}"))
    return Report(tuple(checks))


def _checked(law: Law, look: Look) -> Check:
    """Return what was looked at for a law, or raise `IndexPlanError` where it is broken."""
    total, problem = 0, ""
    cause: Exception | None = None
    try:
        if said := law.skipped(look):
            return Check(law.words, 0, skipped=said)
        for count, problem in law.found(look):
            total += count
            if problem:
                break
    except Exception as error:  # whatever somebody's order raises
        problem, cause = f"{type(error).__name__}{look.where} ({error})", error
    if problem:
        rule = f"{shown(look.order)} must {law.words}; got {problem}"
        raise IndexPlanError(f"{rule}; {law.cure}") from cause
    return Check(law.words, total)
