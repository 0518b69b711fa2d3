"""How the library is used, for the type checker; never run."""

import numpy as np
from numpy.typing import NDArray

import indexplan as ip

plan: ip.Plan = ip.Plan(ip.Shuffle(1000), world_size=2, batch_size=(5, 3), sub_epochs=4)
scheduled = ip.Plan(
    ip.BlockShuffle(1000, 10), global_batch_size=[ip.Phase(0, 8), ip.Phase((1, 0), 4)]
)
parsed = ip.Plan(ip.Sequential(10), batch_size=ip.parse_schedule("0:4 8:2"))

batch: NDArray[np.int64] = plan.batch(0, 1, step=2, rank=0)
share: NDArray[np.int64] = plan.indices(0, 1, rank=0, start_step=2)
sizes: list[int] = [int(b.sum()) for b in plan.batches(0, 1, rank=0)]
steps: int = plan.num_steps(epoch=0, sub_epoch=3)
phase: ip.Phase = plan.phase(0, 0, step=0)
where: ip.Location = plan.locate([1, 2, 3], epoch=0)
account: ip.Account = plan.account(0)
padded: int = account.num_padded
shown: str = str(account)
data: dict[str, object] = account.to_dict()
cursor: ip.Cursor = plan.cursor(0, 0, step=3)
resumed: ip.Plan = plan.replace(world_size=3).resume(ip.Cursor.from_json(cursor.to_json()))
same: ip.Plan = ip.Plan.from_json(plan.to_json())
saved: ip.Saved = ip.save(plan, "a.plan", epochs=range(3), progress=print)
loaded: ip.Plan = ip.load("a.plan", dataset=ip.Dataset.scan("data", "**/*.jpg"))
ok: bool = ip.verify(loaded).ok
