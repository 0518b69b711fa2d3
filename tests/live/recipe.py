"""A live run by the recipe of docs/live.md: where it stands is a cursor, and nothing else."""

from __future__ import annotations

from typing import NamedTuple

import indexplan as ip


class Dealt(NamedTuple):
    """What each rank reads in a step, and what all of them read."""

    ranks: list[list[int]]
    step_size: int


def dealt(plan: ip.Plan, cursor: ip.Cursor, world_size: int) -> Dealt:
    """Return what each rank reads in the step that comes next."""
    cursor = there(plan, cursor)
    rest = plan.replace(world_size=world_size).resume(cursor)
    where = cursor.epoch, cursor.sub_epoch
    ranks = range(world_size)
    read = [rest.batch(*where, step=cursor.step, rank=rank).tolist() for rank in ranks]
    return Dealt(read, rest.step_size(*where, step=cursor.step))


def after(plan: ip.Plan, cursor: ip.Cursor) -> ip.Cursor:
    """Return where the run stands after the step that comes next."""
    cursor = there(plan, cursor)
    rest = plan.resume(cursor)
    return there(plan, rest.cursor(cursor.epoch, cursor.sub_epoch, step=cursor.step + 1))


def there(plan: ip.Plan, cursor: ip.Cursor) -> ip.Cursor:
    """Return where the next step starts: some sub-epochs have none."""
    rest = plan.resume(cursor)
    number = cursor.epoch * plan.sub_epochs + cursor.sub_epoch
    while not (steps := rest.steps(*divmod(number, plan.sub_epochs))):
        number += 1
    return rest.cursor(*divmod(number, plan.sub_epochs), step=steps.start)
