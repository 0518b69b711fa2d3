"""The arguments of an order's methods, checked: indices, runs, a saved order, what is planned."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from indexplan.errors import Cure, as_integer, counted, integer, invalid
from indexplan.orders.columns import as_array
from indexplan.seeds import check_epoch

Int64 = NDArray[np.int64]

NUM_SAMPLES_STOP = 2**63
MOST_DIGITS = 4000  # of a decimal's exponent, as that many zeros are written out
CURSOR = "pass plan.cursor(...) of a plan with that order"
LENGTH = Cure("pass len(dataset)", "pass how many samples there are")


def as_written(what: str, value: Any, cure: str) -> int | Fraction:
    """Return a number of at least 0 exactly as it is written: a float of 0.1 is a tenth."""
    number: int | Fraction | None = as_integer(value)
    try:
        if number is None and not isinstance(value, bool | str | bytes | np.bool_):
            exact = value if isinstance(value, Decimal | Fraction) else Decimal(repr(float(value)))
            if isinstance(exact, Fraction) or abs(exact.adjusted()) <= MOST_DIGITS:
                number = Fraction(exact)
    except Exception:  # not a number, not finite, or whatever a user's class raises
        number = None
    if number is None or number < 0:
        rule = f"a number, 0 or from 1e-{MOST_DIGITS} to 1e{MOST_DIGITS}"
        raise invalid(what, rule, value, cure)
    return number


def as_int64(what: str, values: ArrayLike) -> Int64:
    """Return integers as an int64 array; refuse booleans, and floats even if they are whole."""
    if isinstance(values, np.ndarray) and values.dtype == np.int64:
        return values
    rule = "an integer below 2**63, or an array of them"
    cure = "pass integers, such as an int64 array"
    try:
        array = as_array(values)
    except Exception:  # lists of different lengths, or whatever a user's class raises
        raise invalid(what, rule, values, cure) from None
    if array.size == 0:
        return array.astype(np.int64)
    if array.dtype.kind not in "iu" or (array.dtype.kind == "u" and array.max() >= 2**63):
        raise invalid(what, rule, values, cure)
    return array.astype(np.int64)


def check_num_samples(value: Any) -> int:
    """Return `value` as an int in [1, 2**63), or raise `IndexPlanError`."""
    return integer("num_samples", value, 1, NUM_SAMPLES_STOP, LENGTH)


def check_indices(indices: ArrayLike, num_samples: int) -> Int64:
    """Return indices of samples as a C-contiguous int64 array of their shape."""
    array = as_int64("index", indices)
    if array.size and not 0 <= array.min() <= array.max() < num_samples:
        bad = array.flat[np.argmax((array < 0) | (array >= num_samples))]
        cure = f"name one of the order's {counted(num_samples, 'sample')}"
        raise invalid("index", f"from 0 to {num_samples - 1}", int(bad), cure)
    return np.ascontiguousarray(array).reshape(array.shape)


def check_runs(epoch: int, num_units: int, starts: Any, stops: Any) -> tuple[Int64, Int64]:
    """Return runs of an epoch's positions as two flat int64 arrays; without stops, single ones."""
    if type(starts) is int and type(stops) is int and 0 <= starts <= stops <= num_units:
        return np.array([starts], np.int64), np.array([stops], np.int64)  # 2 us sooner
    first = np.ascontiguousarray(as_int64("position", starts)).ravel()
    if stops is None:
        last = np.minimum(first, num_units) + 1  # no wrap past 2**63
    else:
        last = np.ascontiguousarray(as_int64("stop", stops)).ravel()
    if first.shape != last.shape:
        rule = f"of the same shape as starts, {first.shape}"
        raise invalid("stops", rule, last.shape, "give each start a stop")
    bad = (first < 0) | (last > num_units) | (first > last)
    if bad.any():
        i = int(np.argmax(bad))
        rule = f"an interval inside [0, {num_units}), the positions of epoch {epoch}"
        cure = f"name some of the epoch's {counted(num_units, 'unit')}"
        raise invalid("positions", rule, (int(first[i]), int(last[i])), cure)
    return first, last


def keeps_planned(planned: Any, later: str) -> bool:
    """Return whether a change keeps what is planned from a later place on, "" if nothing is."""
    if not (planned is None or (isinstance(planned, str) and planned in ("keep", "drop"))):
        cure = "pass one of the two" if later else "leave it out"
        raise invalid("planned", 'one of "keep" and "drop"', planned, cure)
    if later and planned is None:
        rule = f'"keep" or "drop", as other weights are planned from {later} on'
        cure = 'planned="keep" lets these begin as planned, planned="drop" leaves them out'
        raise invalid("planned", rule, None, f"pass one of the two: {cure}")
    return planned == "keep"


def check_saved(saved: Any, epoch: Any, position: Any) -> None:
    """Raise `IndexPlanError` unless `Order.continues` can be called with these arguments."""
    if not isinstance(saved, Mapping):
        raise invalid("saved", "the dict form of an order", saved, "pass order.to_dict()")
    for name, number in (("epoch", epoch), ("position", position)):
        integer(name, number, 0, 2**63, f"pass the cursor's {name}")


def saved_in(cursor: Any, what: str, cure: str = CURSOR) -> tuple[Mapping[str, Any], int, Any]:
    """Return the order, epoch and position that a cursor was saved with, or raise."""
    try:
        saved = getattr(cursor, "_form", None) or cursor.order  # not copied, where that will do
        epoch, position = cursor.epoch, cursor.position
    except Exception:  # AttributeError, or whatever a user's class raises
        raise invalid(what, "a Cursor", cursor, cure) from None
    epoch = check_epoch(epoch)
    check_saved(saved, epoch, position)
    return saved, epoch, position


def place_of(order: Any, cursor: Any, what: str, cure: str = CURSOR) -> tuple[int, int]:
    """Return the epoch and position of a cursor of an order, which `what` names in errors.

    Raises
    ------
    IndexPlanError
        If it is not a cursor, or was saved under an order that this one does not continue.
    """
    saved, epoch, position = saved_in(cursor, what, cure)
    if not order.continues(saved, epoch, position):
        got = f"one of {saved.get('algorithm')} with other fields"
        raise invalid(what, "a cursor of the order that is read", got, cure)
    num_units = order.num_units(epoch)
    return epoch, integer(f"{what}'s position", position, 0, num_units + 1, cure)
