"""`indexplan bench`: how fast a plan of a user's own size answers on this machine."""

from __future__ import annotations

from typing import Any

from indexplan.answers import Answer
from indexplan.cli.common import add_verb
from indexplan.cli.spec_options import add_spec, plan_of
from indexplan.errors import IndexPlanError
from indexplan.orders.arguments import LENGTH
from indexplan.reports.benchmark import bench
from indexplan.reports.warmth import warm_up


def add(verbs: Any) -> None:
    """Add the verb."""
    bench = add_verb(
        verbs,
        "bench",
        run,
        "time a plan of your size on this machine",
        examples=(
            "indexplan bench --num-samples 1e6 --world-size 8 --batch-size 32",
            "indexplan bench --order 'BlockShuffle(1000000, block_size=4096)'",
        ),
        more="Time a plan of your size on this machine, in a few seconds: the first batch of an "
        "epoch, one rank's share, and a resume. Next to it stand torch's DistributedSampler, if "
        "torch is installed, and a permutation by NumPy, up to 1e7 samples. The batch size is 256 "
        "and the world size 1 unless you give others. Times are medians, for rank 0.",
    )
    add_spec(bench)
    words = (
        "measure nothing, but compile every kernel into numba's cache, for faster first batches; "
        "exits with 1 if a kernel can't be saved"
    )
    bench.add_argument("--warm-up", action="store_true", help=words)


def run(options: Any) -> Answer:
    """Measure, or warm up."""
    if options.warm_up:
        return warm_up()
    if options.batch_size is None and options.global_batch_size is None:
        options.batch_size = "256"
    if options.num_samples is None and options.order is None:
        raise IndexPlanError("--num-samples", "must be given", "none", LENGTH.command)
    plan = plan_of(options, options.num_samples)
    return bench(plan)
