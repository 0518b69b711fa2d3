"""Plans of which a formula without branches tells each step: all steps are full, and of one size.

Without JAX, so that what is refused can be looked at anywhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from indexplan import IndexPlanError, Order, Plan, Sequential, Shuffle
from indexplan.errors import integer, invalid

KINDS: tuple[type[Order], ...] = (Shuffle, Sequential)
STOP = 2**31  # sizes are below it, so that no sum of two passes 32 bits
EPOCH_STOP, SEED_STOP = 2**32, 2**128
FULL = ("drop", "pad", "carry")  # remainders whose steps are all of one size, whatever it is
ON_THE_HOST = "use plan.batch on the host"


def size(name: str, value: Any) -> int:
    """Return a number of samples, or raise `IndexPlanError`."""
    cure = "use indexplan.Shuffle on the host, which has 64 bits"
    return integer(name, value, 1, STOP, cure)


def seed(value: Any) -> int:
    """Return a seed, or raise `IndexPlanError`."""
    return integer("seed", value, 0, SEED_STOP, "hash other seeds to such an integer first")


def epoch(value: Any) -> int:
    """Return an epoch that is not traced, or raise `IndexPlanError`."""
    return integer("epoch", value, 0, EPOCH_STOP, "count from 0; a run ends with epoch 2**32 - 1")


def rank(value: Any, ranks: int) -> int:
    """Return a rank that is not traced, or raise `IndexPlanError`."""
    cure = "use plan.replace(world_size=...) to change how many ranks there are"
    return integer("rank", value, 0, ranks, cure)


def step(value: Any, most_steps: int) -> int:
    """Return a step that is not traced, of an epoch that is, or raise `IndexPlanError`."""
    return integer("step", value, 0, most_steps, "pass one of plan.steps(...)")


def integers(name: str, numbers: Any, as_array: Callable[[Any], Any]) -> Any:
    """Return integers as a library's array, or raise `IndexPlanError`."""
    cure = "pass jax.numpy.arange, or .astype(int)"
    try:
        array = as_array(numbers)
    except (TypeError, ValueError, OverflowError):  # rows of several lengths, or more than 32 bits
        raise invalid(name, "an array of integers", numbers, cure) from None
    check_dtype(name, "integers", array.dtype, cure)
    return array


def check_dtype(name: str, rule: str, dtype: Any, cure: str) -> None:
    """Raise `IndexPlanError` unless a dtype is one of integers."""
    if getattr(dtype, "kind", "") not in {"i", "u"}:  # those of JAX's keys have no kind
        raise IndexPlanError(name, f"must be {rule}", f"dtype {dtype}", cure)


def check_shape(name: str, shape: Any) -> None:
    """Raise `IndexPlanError` unless a shape is that of a single number."""
    if shape != ():
        rule = "must be a single integer"
        raise IndexPlanError(name, rule, f"an array of shape {shape}", "use jax.vmap for several")


class Steady(NamedTuple):
    """The numbers of a plan all of whose steps have `global_batch` units."""

    order: Order
    num_units: int
    global_batch: int
    remainder: str

    @property
    def most_steps(self) -> int:
        """The most steps that begin in an epoch."""
        if self.remainder in {"pad", "carry"}:
            return -(-self.num_units // self.global_batch)
        return self.num_units // self.global_batch

    @property
    def most_epochs(self) -> int:
        """The most epochs that a step reads from."""
        if self.remainder != "carry":
            return 1
        return 1 + (self.num_units + self.global_batch - 2) // self.num_units


def steady_of(plan: Any) -> Steady:
    """Return the numbers of a plan, or raise `IndexPlanError` for one that is not steady."""
    if not isinstance(plan, Plan):
        cure = 'pass indexplan.Plan(order, world_size=..., batch_size=..., remainder="carry")'
        raise invalid("plan", "an indexplan.Plan", plan, cure)
    order = plan.order
    if type(order) not in KINDS:
        names = ", ".join(kind.__name__ for kind in KINDS)
        raise invalid("plan.order", f"one of {names}", type(order).__name__, ON_THE_HOST)
    cure = "use plan.replace(sub_epochs=1), or plan.batch on the host"
    if plan.sub_epochs != 1:
        raise invalid("plan.sub_epochs", "1", plan.sub_epochs, cure)
    if plan.balance is not None:
        cure = "use plan.replace(balance=None), or plan.batch on the host"
        raise invalid("plan.balance", "None", plan.balance, cure)
    if (plan.start.epoch, plan.start.position) != (0, 0):
        cure = (
            "use plan.replace(order=plan.order), which is not, and whose steps have the same "
            "numbers if the global batch was the same"
        )
        raise invalid("plan", "one that was not resumed", plan.start, cure)
    plan.steps(0)  # which refuses an open world_size where steps depend on it
    ranks = 1 if plan.batch_size is None else plan.world_size or 1
    units = _product_of(plan.global_batch_size if plan.batch_size is None else plan.batch_size)
    if units is None:
        raise invalid("plan's batch size", "one number for the whole run", "phases", ON_THE_HOST)
    batch = integer("a global batch", units * ranks, 1, STOP, "use a smaller batch size")
    n = size("plan.order.num_samples", order.num_samples)
    full = plan.remainder in FULL or (plan.remainder == "spread" and n % batch == 0)
    if not full:
        why = f", as {batch} does not divide {n}" if n % batch else ""
        rule = f'"drop", "pad" or "carry"{why}'
        raise invalid("plan.remainder", rule, plan.remainder, 'use plan.replace(remainder="drop")')
    return Steady(order, n, batch, plan.remainder)


def check_end(steady: Steady, epoch: int, step: int, stop: int) -> None:
    """Raise `IndexPlanError` if the first `stop` units of a step reach past the last epoch."""
    n, batch = steady.num_units, steady.global_batch
    begin = -epoch * n % batch if steady.remainder == "carry" else 0
    turns = (begin + step * batch + stop - 1) // n
    if steady.remainder == "carry" and epoch + turns >= EPOCH_STOP:
        raise IndexPlanError(
            "a step under carry",
            "must be inside the run, which ends with epoch 2**32 - 1",
            "one that reads on into the next",
            "use another remainder for the last epoch",
        )


def share_of(plan: Plan, steady: Steady) -> int:
    """Return how many units each rank has in each step, or raise `IndexPlanError`."""
    ranks = plan.world_size
    if ranks is None:
        raise IndexPlanError(
            "plan.world_size",
            "must be set for this",
            "None",
            "use plan.replace(world_size=...), with the number of ranks",
        )
    share, rest = divmod(steady.global_batch, ranks)
    if rest:
        rule = f"a multiple of the world_size, {ranks}"
        raise invalid(
            "a global batch", rule, steady.global_batch, "use step_indices, or batch_size="
        )
    return share


def _product_of(size: Any) -> int | None:
    """Return how many units a batch size means; None where there are phases."""
    nested = size if isinstance(size, tuple) else (size,)
    numbers = [each for each in nested if isinstance(each, int)]
    return math.prod(numbers) if len(numbers) == len(nested) else None  # phases are no numbers
