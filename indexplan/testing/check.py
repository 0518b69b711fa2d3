"""check_order: check that an order keeps its laws."""

from __future__ import annotations

from collections.abc import Iterable

from indexplan.checks import Check, Report
from indexplan.errors import IndexPlanError, invalid, shown
from indexplan.orders.base import Order
from indexplan.seeds import check_epochs
from indexplan.testing import copies, reading_laws
from indexplan.testing.looking import Law, Look, Row

FAR = 2**31  # from this epoch on an order may refuse, as no run gets there
EPOCHS = (0, 1, 2, 2**31, 2**32 - 1)


def check_order(
    order: Order, *, epochs: Iterable[int] = EPOCHS, fresh_process: bool = True
) -> Report:
    """Check that an order of your own keeps every law that plans and plan directories rely on.

    Call it in the tests of an `Order` class that you have written. It raises at the first law that
    is broken, and says what to change.

    Parameters
    ----------
    order : Order
        Best one of a small dataset: if an epoch has up to 4,096 units, all are looked at; if it has
        more, some 3,000 are, so that any size takes seconds.
    epochs : iterable of int, optional
        The epochs that are looked at; by default 0, 1, 2, 2**31 and 2**32 - 1. From 2**31 on an
        order may refuse with an `IndexPlanError`; that is reported, and isn't an error.
    fresh_process : bool, default True
        Whether to ask a new Python process too (about a second). It must be able to
        import the module of the order's class, as workers of a DataLoader must.

    Returns
    -------
    Report
        The laws, and how many positions, samples or answers were looked at for each.

    Raises
    ------
    IndexPlanError
        If a law is broken: the message has the order, the law, an example with its epoch, and the
        cure. Also if order is not an order, or epochs has none that the order reads.

    Examples
    --------
    >>> import indexplan as ip
    >>> report = check_order(ip.Shuffle(100), epochs=[0], fresh_process=False)
    >>> report.ok
    True
    >>> print(report.checks[4])
    ok  read samples from 0 to num_samples - 1 (100)
    """
    if not isinstance(order, Order):
        raise invalid("order", "an indexplan.Order", order, "pass one, such as MyOrder(100)")
    rows = [Row(order, epoch) for epoch in dict.fromkeys(check_epochs(epochs))]
    refused = {row.epoch: said for row in rows if (said := row.ask()) and row.epoch >= FAR}
    left = [row for row in rows if row.epoch not in refused]
    if not left:
        rule = "at least one that the order reads"
        raise invalid("epochs", rule, [row.epoch for row in rows], "leave it out")
    look = Look(order, left)
    checks = []
    for law in (*reading_laws.LAWS, *copies.LAWS):
        if law is copies.IN_A_NEW_PROCESS and not fresh_process:
            checks.append(Check(law.words, 0, skipped="fresh_process is False"))
        else:
            checks.append(_outcome(law, look))
    for epoch, said in refused.items():
        checks.append(Check(f"read epoch {epoch}", 0, skipped=f"the order refuses: {said}"))
    return Report(tuple(checks))


def _outcome(law: Law, look: Look) -> Check:
    """Return how much was looked at for a law, or raise `IndexPlanError` if it is broken."""
    total, problem = 0, ""
    cause: Exception | None = None
    try:
        if said := law.skipped(look):
            return Check(law.words, 0, skipped=said)
        for count, problem in law.found(look):
            total += count
            if problem:
                break
    except Exception as error:  # whatever a user's order raises
        problem, cause = f"{type(error).__name__}{look.where} ({error})", error
    if problem:
        raise IndexPlanError(shown(look.order), f"must {law.words}", problem, law.cure) from cause
    return Check(law.words, total)
