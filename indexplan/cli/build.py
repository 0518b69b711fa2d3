"""`indexplan build`: write the order of some epochs to a plan directory."""

from __future__ import annotations

from typing import Any

import indexplan as ip
from indexplan.cli.common import add_dataset, add_numbers, add_verb, data_named, progress_bar
from indexplan.cli.spec_options import add_spec, plan_of
from indexplan.errors import IndexPlanError, invalid
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
    build.add_argument("plan", metavar="PLAN", help="the plan directory or its URL")
    add_dataset(build, "its samples are counted, and the plan remembers it", sizes=True)
    add_spec(build)
    add_numbers(build, epochs="how many epochs to write, starting with epoch 0 (1)")
    words = "build only part I of N, from 1/N to N/N"
    build.add_argument("--part", metavar="I/N", help=words)
    words = "units in each chunk file; a core, or a part, builds whole chunks (2**26)"
    add_numbers(build, units_per_chunk=words)
    build.set_defaults(epochs=1, units_per_chunk=UNITS_PER_CHUNK)


def run(options: Any) -> ip.types.Saved:
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
        raise invalid("--epochs", "from 1 to 2**32", options.epochs, "leave it out for one")
    part = None if options.part is None else part_named(options.part)
    with progress_bar("building", "idx") as progress:
        return ip.save(
            plan,
            options.plan,
            epochs=range(options.epochs),
            dataset=None if isinstance(data, ip.Column) else data,
            part=part,
            progress=progress,
            units_per_chunk=options.units_per_chunk,
        )


def part_named(text: str) -> tuple[int, int]:
    """Read a part such as 2/4."""
    number, slash, of = text.partition("/")
    if not (slash and number.isdecimal() and of.isdecimal()):
        cure = "write it as I/N, or leave it out to build all of it"
        raise invalid("--part", "a part and how many there are, such as 1/4", text, cure)
    return int(number), int(of)
