"""`indexplan build`: write the order of some epochs to a plan directory."""

from __future__ import annotations

from typing import Any

import indexplan as ip
from indexplan.cli.asking import add_force, check_size
from indexplan.cli.common import (
    OK,
    Progress,
    add_dataset,
    add_plan,
    add_verb,
    data_named,
    emit,
    number,
)
from indexplan.cli.engines import add_engine, engine, part_named
from indexplan.cli.spec_options import add_spec, plan_of
from indexplan.errors import IndexPlanError, wrong
from indexplan.files.format import UNITS_PER_CHUNK
from indexplan.orders.shard_shuffle import sizes_of


def add(verbs: Any) -> None:
    """Add the verb."""
    build = add_verb(
        verbs,
        "build",
        run,
        "write a plan to a directory",
        examples=(
            "indexplan build run.plan --num-samples 1e6 --world-size 8 --batch-size 32",
            "indexplan build photos.plan --dataset photos --pattern '*.jpg' --batch-size 4",
        ),
    )
    add_plan(build)
    words = "how many samples the dataset has, such as 1e9; not needed if --order says it"
    build.add_argument("--num-samples", type=number, metavar="N", help=words)
    add_dataset(build, "its samples are counted, and the plan remembers it", sizes=True)
    add_spec(build)
    words = "how many epochs to write, starting with epoch 0 (1)"
    build.add_argument("--epochs", type=number, default=1, metavar="N", help=words)
    words = "build only part I of N, from 1/N to N/N"
    build.add_argument("--part", metavar="I/N", help=words)
    words = "units in each chunk file; a core, or a part, builds whole chunks (2**26)"
    build.add_argument("--units-per-chunk", type=number, metavar="N", help=words)
    add_engine(build)
    add_force(build)


def run(options: Any) -> int:
    """Build the plan directory."""
    data = data_named(options)
    given = (data is not None) + (options.num_samples is not None)
    if given > 1 or (not given and options.order is None):
        got = "two" if given else "none"
        cure = "give --dataset or --shards to have samples counted, or else --num-samples"
        raise IndexPlanError(
            "exactly one of --num-samples, --dataset and --shards", "must be given", got, cure
        )
    num_samples, sizes = options.num_samples, None
    if isinstance(data, ip.Dataset):
        num_samples = data.num_samples
    elif data is not None:
        sizes, num_samples = sizes_of(data)
    plan = plan_of(options, num_samples, sizes)
    if not 1 <= options.epochs <= 2**32:
        raise wrong("--epochs", "from 1 to 2**32", options.epochs, "leave it out for one")
    each = UNITS_PER_CHUNK if options.units_per_chunk is None else options.units_per_chunk
    part = None if options.part is None else part_named(options.part)
    check_size(options, options.plan, _size(plan, options.epochs) // (part[1] if part else 1))
    with engine(options) as executor, Progress("building", "idx") as progress:
        saved = ip.save(
            plan,
            options.plan,
            epochs=range(options.epochs),
            dataset=None if isinstance(data, ip.Column) else data,
            executor=executor,
            part=part,
            progress=progress,
            units_per_chunk=each,
        )
    emit(options, saved)
    return OK


def _size(plan: ip.Plan, epochs: int) -> int:
    """Return about how many bytes some epochs take, judging by the first of them."""
    order, size = plan.order, 4 if plan.order.num_samples <= 2**32 else 8
    units = order.num_units(0)
    return epochs * (8 * units + size * order.num_samples if order.deals_bins else size * units)
