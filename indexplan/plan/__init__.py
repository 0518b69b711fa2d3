"""The plan: which samples of an order each rank reads at each step."""

from indexplan.partition.locate import Location
from indexplan.plan.balance import Balance
from indexplan.plan.plan import Plan

__all__ = ["Balance", "Location", "Plan"]
