"""How the library is used, for the type checker; never run."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

import indexplan as ip
from indexplan_torch import PlanLoader
from indexplan_torch.live import LiveLoader, LiveOptions

plan: ip.Plan = ip.Plan(ip.Shuffle(1000), world_size=2, batch_size=(5, 3), sub_epochs=4)
scheduled = ip.Plan(
    ip.BlockShuffle(1000, 10), global_batch_size=[ip.Phase(0, 8), ip.Phase((1, 0), 4)]
)

batch: NDArray[np.int64] = plan.batch(0, 1, step=2, rank=0)
share: NDArray[np.int64] = plan.indices(0, 1, rank=0, start_step=2)
sizes: list[int] = [int(b.sum()) for b in plan.batches(0, 1, rank=0)]
told_apart: ip.types.Batch = plan.units(0, 1, step=2, rank=0)
inner: list[ip.types.Batch] = told_apart.micro_batches[0].micro_batches
steps: range = plan.steps(epoch=0, sub_epoch=3)
total: int = plan.step_total(None, 0, 0, step=1)
phase: ip.Phase | None = plan.units(0, 0, step=0, rank=0).phase
where: ip.types.Location = plan.locate([1, 2, 3], epoch=0)
step_of_one: int = plan.locate(7, epoch=0).step
steps_of_many: NDArray[np.int64] = plan.locate(np.arange(3), epoch=0).step
step_of_each_read: NDArray[np.int64] = plan.locate_all([1, 2], epoch=0)[0].step
policy: ip.types.Remainder = plan.replace(remainder="drop", world_size=4).remainder
one_step: list[NDArray[np.int64]] = next(plan.batches(0, 1, rank=0, units=True)).bins
batches: Iterator[NDArray[np.int64]] = plan.batches(0, 1, rank=0)
account: ip.types.Account = plan.account(0)
padded: int = account.num_padded
shown: str = str(account)
data: dict[str, object] = account.to_dict()
cursor: ip.Cursor = plan.cursor(0, 0, step=3)
resumed: ip.Plan = plan.replace(world_size=3).resume(ip.Cursor.from_json(cursor.to_json()))
same: ip.Plan = ip.Plan.from_json(plan.to_json())
pulled: ip.types.Stream = ip.stream(plan, cursor, rank=1)
prompts: NDArray[np.int64] = pulled.draw(8)
bins_of_prompts: list[NDArray[np.int64]] = pulled.draw(8, units=True).bins
pulled.load_state_dict(pulled.state_dict())
goes_on: ip.Plan = plan.resume(pulled.cursor)
saved: ip.types.Saved = ip.save(plan, "a.plan", epochs=range(3), progress=print)
parquet: ip.Shards = ip.shard_sizes("data/*.parquet", progress=print)
lanes_of_them: ip.Plan = ip.Plan(ip.ShardShuffle(parquet), world_size=8, batch_size=32)
ip.save(lanes_of_them, "b.plan", dataset=parquet)
rows_in_shards: tuple[NDArray[np.int64], NDArray[np.int64]] = parquet.locate([1, 2, 3])
loaded: ip.Plan = ip.load("a.plan", dataset=ip.Dataset.scan("data", "**/*.jpg"))
ok: bool = ip.verify(loaded).ok

kept: ip.Subset = ip.Subset(ip.Shuffle(3), [4, 7, 8], num_samples=10)
masked: ip.Subset = ip.Subset(ip.Shuffle(3), np.arange(10) < 3, num_samples=10)
part: ip.Subset = ip.Subset(ip.Shuffle(9), ip.Split(10, {"a": 0.9, "b": 0.1})["a"], 10)
weighted: ip.Weighted = ip.Weighted([0.5, 2.0], max_repeats=1)
changing: ip.Weighted = ip.Weighted([(0, np.ones(3)), (5, np.zeros(3))])
balanced: ip.ClassBalanced = ip.ClassBalanced(np.array([0, 1, 1]), weights={0: 1, 1: 2.5})
pairs: ip.ClassBatches = ip.ClassBatches([0, 0, 1, 1], classes=2, per_class=2)
similar: ip.LengthGrouped = ip.LengthGrouped([3, 1, 2], batch_size=2, num_buckets=8)
budget: ip.TokenBudget = ip.TokenBudget("lengths.npy", 4096, multiple_of=8)
of_groups: list[ip.Grouped] = [
    ip.Grouped(np.array([0, 1, 1]), 2, seed=1),
    ip.Grouped([0, 1, 1], {0: 2, 1: 4}),
    ip.Grouped([0, 1, 1], [2, 4]),
    ip.Grouped([0, 1, 1], [(0, 2), (1, 4)]),
]
windows: ip.DocumentWindows = ip.DocumentWindows([5, 3, 9], 10, block_size=2)
spans: NDArray[np.int64] | None = ip.Plan(windows, batch_size=1).units(0, step=0, rank=0).spans
packed: ip.Packed = ip.Packed([500, 30], 512, max_samples=9)
mixed: ip.Mixture = ip.Mixture(
    {"web": weighted, "code": balanced}, weights={"web": 0.7, "code": 0.3}
).with_phase(100, {"web": 1, "code": 1})
larger: ip.Mixture = mixed.with_phase(
    ip.Plan(mixed, batch_size=2).start, {"web": 1, "code": 1, "new": 2}, sources={"new": weighted}
)
ahead: ip.types.Reads = ip.reads(plan, [600, 400], 0, 1, ranks=range(2), stop_step=1)
found: ip.types.Traffic = ip.traffic(plan, [600, 400], ranks_per_node=1, epochs=range(3))
mixed_shards: float = found.different[0].mean
lanes: int = ip.ShardShuffle([5, 0, 7], lanes=2, stripe=8, sticky=True).stripe
even: ip.Plan = plan.replace(balance=ip.Balance(np.arange(1, 1001), linear=2, quadratic=1))
costs: ip.Balance | None = ip.Plan(mixed, batch_size=2, balance=ip.Balance([3, 1])).balance
drawn: ip.types.Draws = ip.draws(ip.Plan(ip.Epochs(mixed, 5), batch_size=2))
cursor_of_sgd: ip.Cursor = plan.cursor(0, step=1)
rest: ip.Without = ip.Without(plan.order, [3, 5], since=cursor_of_sgd, cut="unit")
quieter: ip.Plan = plan.replace(order=rest).resume(cursor_of_sgd)
ledger: ip.Ledger = ip.Ledger("run.ledger")
ledger.begin(quieter, skip=True)
ledger.record(plan, cursor_of_sgd, {"global_step": 1})
step_of_run: ip.types.At = ledger.at(0)
replayed: ip.Plan = ledger.replay(step_of_run.global_step)
reads_of_one: list[tuple[int, int]] = [(read.step, read.rank) for read in ledger.reads(7)]
was_read: NDArray[np.int64] = ledger.seen([1, 2], 1)
num_void: int = ledger.account().num_void
parted: int | None = ip.diff(ledger, ip.Ledger("other.ledger")).steps_from
step_parted: tuple[int, int, int] | None = ip.diff(plan, even).ranks_from
like_planned: ip.types.Difference = ip.diff(ledger, plan)
loader: PlanLoader = PlanLoader(range(1000), plan, rank=0, num_workers=2, persistent_workers=True)
recorded: PlanLoader = PlanLoader(range(1000), plan, ledger=ip.Ledger("run.ledger"))
same_loader: PlanLoader = PlanLoader(range(9), plan, collate_fn=lambda rows: rows, pin_memory=True)
live_loader: LiveLoader = LiveLoader(range(1000), plan, object(), num_epochs=3, num_workers=2)
live_options: LiveOptions = {"as_array": True, "pin_memory": True}
live_arrays: LiveLoader = LiveLoader(range(1000), plan, object(), **live_options)
live_weight: float = live_loader.world_size / live_loader.step_size * live_loader.num_valid
live_loader.load_state_dict({}, other_plan=True)
live_state: dict[str, object] = live_loader.state_dict()
live_ranks: LiveLoader = LiveLoader(range(9), plan, object(), inner_rank=1, inner_size=4)
