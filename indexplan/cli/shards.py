"""`indexplan shards`: how many samples each shard of a dataset holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import indexplan as ip
from indexplan.cli.common import OK, Progress, add_verb, emit
from indexplan.cli.mistaken import DIRECTORY, kind_of
from indexplan.errors import PlanFileError, cure_of, wrong
from indexplan.shards.by_file import FORMATS
from indexplan.shards.by_index import INDEXES


def add(verbs: Any) -> None:
    """Add the verb."""
    shards = add_verb(
        verbs,
        "shards",
        run,
        "count the samples in each shard of a dataset",
        examples=(
            "indexplan shards 'data/*.parquet'",
            "indexplan shards data --output shards.json",
        ),
    )
    shards.description = (
        "Count the samples in each shard of a dataset. Only footers and indexes are read, not the "
        "samples."
    )
    known = [each.words for each in FORMATS.values()] + [each.words for each in INDEXES.values()]
    words = f"a glob such as 's3://bucket/**/*.parquet', a folder, or an index: {', '.join(known)}"
    shards.add_argument("path", metavar="PATH", help=words)
    words = f"the format, if the files' names don't say it: {', '.join(FORMATS)}"
    shards.add_argument("--kind", metavar="KIND", help=words)
    words = "take each file as one shard, not each of its row groups or record batches"
    shards.add_argument("--whole-files", action="store_true", help=words)
    words = "also count the samples inside shards of MDS and wids, and compare them with the index"
    shards.add_argument("--count", action="store_true", help=words)
    words = "save the answer to a .json file, which --shards takes in place of the shards"
    shards.add_argument("--output", metavar="FILE", help=words)


def run(options: Any) -> int:
    """Count them."""
    output = None if options.output is None else Path(options.output)
    if output is not None and output.suffix != ".json":
        raise wrong("--output", "a file that ends in .json", options.output, "name it shards.json")
    if kind_of(options.path) == DIRECTORY:  # whose arrays would else be taken for shards
        cure = "count the shards that it reads with `indexplan traffic`"
        raise PlanFileError(options.path, "must be shards", DIRECTORY, cure)
    with Progress("reading shards", "file") as progress:
        found = ip.shard_sizes(
            options.path,
            kind=options.kind,
            whole_files=options.whole_files,
            count=options.count,
            progress=progress,
        )
    if output is not None:
        try:
            output.write_text(found.to_json())
        except OSError as error:
            cure = cure_of(error, "choose another path")
            raise wrong(
                "--output", "a file that can be written", f"{output} ({error.strerror})", cure
            ) from error
    emit(options, found)
    return OK
