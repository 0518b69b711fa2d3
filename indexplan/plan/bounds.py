"""Which epochs, steps and ranks a plan has: checks every such argument of its methods."""

from __future__ import annotations

from typing import TYPE_CHECKING

from indexplan.errors import integer, wrong
from indexplan.partition.steps import Steps, steps_in
from indexplan.seeds import check_epoch

if TYPE_CHECKING:
    from indexplan.plan.plan import Plan


def world_of(plan: Plan) -> int:
    """Return a plan's world size, or raise `IndexPlanError` if it is open."""
    if plan.world_size is None:
        cure = "use plan.replace(world_size=...), with the number of running ranks"
        raise wrong("world_size", "set for this", None, cure)
    return plan.world_size


def check_sized(plan: Plan) -> None:
    """Raise `IndexPlanError` if steps depend on a world size that is open."""
    if not plan._partition.sizes:
        world_of(plan)


def rank_of(plan: Plan, rank: int) -> int:
    """Return `rank`, or raise `IndexPlanError` if the plan has no such rank."""
    cure = "use plan.replace(world_size=...) to change how many ranks there are"
    return integer("rank", rank, 0, world_of(plan), cure)


def steps_of(plan: Plan, epoch: int, sub_epoch: int | None) -> Steps:
    """Return the steps of a sub-epoch; that may be None if epochs have only one."""
    epoch = check_epoch(epoch)
    if plan.sub_epochs == 1:
        sub_epoch = 0 if sub_epoch is None else sub_epoch
        cure = "leave it out, as the plan has one sub-epoch an epoch"
    else:
        cure = f"name one of the plan's {plan.sub_epochs} sub-epochs"
    sub_epoch = integer("sub_epoch", sub_epoch, 0, plan.sub_epochs, cure)
    if plan._resumed is not None and (epoch, sub_epoch) < plan._resumed[:2]:
        rule = f"not before {plan._resumed[:2]}, where the plan was resumed"
        cure = "ask the plan that was not resumed"
        raise wrong("(epoch, sub_epoch)", rule, (epoch, sub_epoch), cure)
    check_sized(plan)
    return steps_in(plan._partition, plan.order.num_units(epoch), epoch, sub_epoch)


def step_of(plan: Plan, steps: Steps, step: int) -> int:
    """Return `step`, or raise `IndexPlanError` unless it is an unfinished step."""
    first, stop = steps.first_step, steps.num_steps
    if type(step) is int and first <= step < stop:  # the fast path, without a message
        return step
    kind = f"an unfinished step of {_named(plan, steps)}"
    if first == stop:
        cure = "plan.account says why; use smaller batches"
        raise wrong("step", f"{kind}, and there is none", step, cure)
    cure = "pass one of plan.steps(...)"
    return integer("step", step, first, stop, cure, kind)


def edge_of(plan: Plan, steps: Steps, name: str, step: int) -> int:
    """Return `step`, or raise `IndexPlanError` unless it is an unfinished step, or their end."""
    cure = f"name one of the unfinished steps of {_named(plan, steps)}, or their end"
    if steps.first_step == steps.num_steps:
        cure = f"{_named(plan, steps)} has no unfinished step; plan.account says why"
    return integer(name, step, steps.first_step, steps.num_steps + 1, cure)


def stretch_of(
    plan: Plan, steps: Steps, start_step: int | None, stop_step: int | None
) -> tuple[int, int]:
    """Return the steps [start, stop) that a call asks for; by default, all unfinished ones."""
    start, stop = steps.first_step, steps.num_steps
    if start_step is not None:
        start = edge_of(plan, steps, "start_step", start_step)
    if stop_step is not None:
        stop = edge_of(plan, steps, "stop_step", stop_step)
    if start > stop:
        raise wrong("stop_step", f"at least {start}, the start_step", stop, "swap them")
    return start, stop


def _named(plan: Plan, steps: Steps) -> str:
    of = f", sub-epoch {steps.sub_epoch}" if plan.sub_epochs > 1 else ""
    return f"epoch {steps.epoch}{of}"
