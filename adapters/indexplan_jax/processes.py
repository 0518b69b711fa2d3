"""Which process is this, and of how many? Grain's ShardOptions say it."""

from __future__ import annotations

from typing import Any

import grain

from indexplan import Plan
from indexplan.errors import invalid


def of_processes(
    plan: Any, shard_options: grain.sharding.ShardOptions | None
) -> tuple[Plan, grain.sharding.ShardOptions]:
    """Return the plan for as many processes as there are, and which one this is."""
    if not isinstance(plan, Plan):
        cure = 'pass indexplan.Plan(order, batch_size=..., remainder="carry")'
        raise invalid("plan", "an indexplan.Plan", plan, cure)
    shard = grain.sharding.NoSharding() if shard_options is None else shard_options
    if not isinstance(shard, grain.sharding.ShardOptions):
        cure = "pass grain.sharding.ShardByJaxProcess(), or ShardOptions(process, count)"
        raise invalid("shard_options", "Grain's ShardOptions", shard, cure)
    if plan.world_size is None:
        start = plan.start
        plan = plan.replace(world_size=shard.shard_count)
        # what was not resumed stays so, as Grain compares the text of samplers
        plan = plan if start == plan.start else plan.resume(start)
    if plan.world_size != shard.shard_count:
        rule = f"for {plan.world_size} processes, the plan's world_size"
        cure = "leave the plan's world_size out, or pass ShardOptions of as many"
        raise invalid("shard_options", rule, shard, cure)
    return plan, shard
