"""What the tests of bad input share: plans to ask, and the check of a refusal."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

import indexplan as ip

PLAN = ip.Plan(ip.Sequential(10), world_size=2, batch_size=2, sub_epochs=2)
WHOLE = ip.Plan(ip.Sequential(10), world_size=2, batch_size=2)
RESUMED = PLAN.resume(PLAN.cursor(1, 1, step=1))
EMPTY = ip.Plan(ip.Sequential(7), world_size=1, batch_size=6, remainder="drop").resume(
    ip.Plan(ip.Sequential(7), world_size=1, batch_size=2).cursor(0, step=1)
)  # the rest of its epoch does not fill a step
CURSOR = PLAN.cursor(0, 1, step=1)


def refuses(message: str, function: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Check that a call raises an error with this message, and leaves plans as they were."""
    before = [repr(plan) for plan in (PLAN, WHOLE, RESUMED, EMPTY, CURSOR)]
    with pytest.raises(ip.IndexPlanError, match=f"^{re.escape(message)}$"):
        function(*args, **kwargs)
    assert before == [repr(plan) for plan in (PLAN, WHOLE, RESUMED, EMPTY, CURSOR)]


def refused(
    function: Callable[..., Any],
    *arguments: Any,
    of: type[ip.IndexPlanError] = ip.IndexPlanError,
    **options: Any,
) -> str:
    """Return the one line with which a call is refused, which quotes no more than fits a screen."""
    with pytest.raises(of) as error:
        function(*arguments, **options)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 2000
    return str(error.value)


refused_file = partial(refused, of=ip.PlanFileError)
