"""The plan: an order after a partition."""

from indexplan.partition.locate import Location
from indexplan.plan.balance import Balance
from indexplan.plan.plan import Plan

__all__ = ["Balance", "Location", "Plan"]
