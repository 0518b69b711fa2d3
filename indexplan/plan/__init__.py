"""The plan: an order after a partition."""

from indexplan.plan.plan import Location, Plan

__all__ = ["Location", "Plan"]
