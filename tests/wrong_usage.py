"""How the library is not used: each line that says so is refused by mypy and by pyright."""

import numpy as np

import indexplan as ip
from indexplan_torch import PlanLoader

plan = ip.Plan(ip.Shuffle(1000), world_size=2, batch_size=4)
data = range(1000)

ip.Plan(ip.Shuffle(10), batch_size=2, remainder="wrap")  # wrong
ip.Plan(ip.Shuffle(10), batch_size=2, remainder=None)  # wrong
ip.Plan(ip.Shuffle(10), batch_size=2, wold_size=2)  # wrong
ip.Plan(ip.Shuffle(10), 2, 4)  # wrong
ip.Plan("shuffle", batch_size=2)  # wrong
ip.Plan(ip.Shuffle(10), batch_size=2.5)  # wrong
ip.Shuffle("10")  # wrong
ip.Shuffle(10, sed=1)  # wrong
plan.replace(remainder="wrap")  # wrong
plan.replace(wold_size=2)  # wrong
plan.replace(resumed=None)  # wrong
plan.batch(0, step=0)  # wrong
plan.batch(0, 0, 0, 0)  # wrong
plan.batch(0, step="0", rank=0)  # wrong
plan.locate(7)  # wrong
plan.resume("cursor")  # wrong
plan.world_size = 3  # wrong

word: str = plan.batch(0, step=0, rank=0)  # wrong
index: int = plan.batch(0, step=0, rank=0)  # wrong
batches: list[list[int]] = list(plan.batches(0, rank=0))  # wrong
units: list[int] = next(plan.batches(0, rank=0, units=True)).bins  # wrong
samples: np.int64 = next(plan.batches(0, rank=0)).samples  # wrong
steps: str = plan.locate(7, epoch=0).step  # wrong
one_step: int = plan.locate(np.arange(3), epoch=0).step  # wrong
read: int = plan.locate_all([7], epoch=0)[0].step  # wrong
remainder: int = plan.remainder  # wrong
lost = plan.locate(7, epoch=0).stpe  # wrong
dropped = plan.account(0).num_dropt  # wrong

ip.save("run.plan", plan)  # wrong
ip.save(plan, "run.plan", epochs=3)  # wrong
ip.load("run.plan", dataset="data")  # wrong
ip.explain(plan, [7])  # wrong
ip.traffic(plan, [600, 400], ranks_per_node="8")  # wrong

PlanLoader(data, plan, shuffle=True)  # wrong
PlanLoader(data, plan, batch_size=4)  # wrong
PlanLoader(data, plan, sampler=[1, 2])  # wrong
PlanLoader(data, plan, drop_last=True)  # wrong
PlanLoader(data, plan, num_replicas=2)  # wrong
PlanLoader(data, plan, in_order=False)  # wrong
PlanLoader(data, plan, num_worker=2)  # wrong
PlanLoader(data, plan, num_workers="2")  # wrong
PlanLoader(plan, data)  # wrong
PlanLoader(data)  # wrong
