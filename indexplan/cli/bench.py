"""`indexplan bench`: how fast a plan of a user's own size answers on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import indexplan as ip
from indexplan.answers import Answer, Shown
from indexplan.cli.common import OK, Progress, add_verb, emit, number
from indexplan.cli.spec_options import add_spec, plan_of
from indexplan.errors import IndexPlanError, counted, did_you_mean, wrong
from indexplan.orders.arguments import LENGTH
from indexplan.reports.benchmark.measuring import bench


def add(verbs: Any) -> None:
    """Add the verb."""
    bench = add_verb(
        verbs,
        "bench",
        run,
        "time a plan of your size on this machine",
        examples=(
            "indexplan bench --num-samples 1e6 --world-size 8 --batch-size 32",
            "indexplan bench --order 'BlockShuffle(1000000, block_size=4096)' --plot times.png",
        ),
    )
    bench.description = (
        "Time a plan of your size on this machine. This takes a few seconds. It times the first "
        "batch of a new process and of an epoch, one rank's share, a batch at a random step, a "
        "resume, and finding a sample. It also times torch's DistributedSampler, if torch is "
        "installed and the sampler would fit in memory and take less than 10 seconds. The batch "
        "size is 256 and the world size 1 unless you give others. Times are medians, for rank 0."
    )
    words = "how many samples the dataset has, such as 1e9; not needed if --order says it"
    bench.add_argument("--num-samples", type=number, metavar="N", help=words)
    add_spec(bench)
    words = "also draw the times, to a new .png, .svg or .pdf file"
    bench.add_argument("--plot", metavar="FILE", help=words)


def run(options: Any) -> int:
    """Measure, and show."""
    if options.batch_size is None and options.global_batch_size is None:
        options.batch_size = "256"
    if options.num_samples is None and options.order is None:
        raise IndexPlanError("--num-samples", "must be given", "none", LENGTH.command)
    plan = plan_of(options, options.num_samples)
    if options.plot is not None:  # checked before seconds are spent
        _check_path(options.plot)
    with Progress("measuring", " rows") as progress:
        result = bench(plan, progress=progress)
    answer: Answer = result
    if options.plot is not None:
        _draw(result, options.plot)
        answer = Shown(result.to_dict(), f"{result}\n\n{options.plot}: the times, drawn")
    emit(options, answer)
    return OK


def _draw(result: ip.types.Bench, path: str) -> None:
    from indexplan import plot
    from indexplan.plot.timings import timings

    seconds = {row.name: row.seconds for row in result.rows if row.seconds is not None}
    notes = {row.name: row.note for row in result.rows if row.seconds is None}
    plan = result.plan
    ranks = counted(plan.world_size or 1, "rank")
    title = f"{counted(plan.order.num_samples, 'sample')}, {ranks}"
    plot.save(timings(title, seconds, notes), path)


def _check_path(path: str) -> None:
    from indexplan.plot.drawing import FORMATS
    from indexplan.plot.style import new_figure

    if Path(path).suffix not in FORMATS:
        cure = did_you_mean(Path(path).suffix, FORMATS) + "end it with one of these"
        raise wrong("the end of --plot", " or ".join(FORMATS), path, cure)
    if Path(path).exists():
        raise wrong("--plot", "a new file", path, "choose another path, or delete the file")
    new_figure(1, 1)  # raises if matplotlib is missing
