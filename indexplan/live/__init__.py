"""Give a plan's steps to a world that changes while the processes run, as under torchft.

Examples
--------
>>> import indexplan as ip
>>> plan = ip.Plan(ip.Sequential(100), global_batch_size=6)
>>> standing = ip.live.Standing(plan)
>>> standing.deal(world_size=3, rank=1)
array([2, 3])
"""

from indexplan.live.standing import Standing

__all__ = ["Standing"]
