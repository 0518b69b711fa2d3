"""Read shards through a storm, and count every sample: `python -m tests.storm --seconds 600`.

A history is a run of two epochs over Parquet files or tars in an S3 store on loopback that answers
short, stale, late, with refusals or not at all. Files are replaced; ranks, workers and the process
that fetches are killed, and resumed from what they saved; folders are planted. What each rank
received is counted by code that does not import indexplan. Exits with 1 if a sample was lost, read
twice or wrong, if anything raised but an error that names shard, file and cure, or if a run did not
end.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.storm.history import History
from tests.storm.store import Store
from tests.support import stories
from tests.support.forked import Forks

ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "storm",
    "AWS_SECRET_ACCESS_KEY": "storm",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    # without attempts of botocore's own, so that more answers reach indexplan
    "FSSPEC_S3": json.dumps({"config_kwargs": {"retries": {"max_attempts": 0}, "read_timeout": 3}}),
}
TOTALS = ("legs", "samples read", "samples lost", "samples twice", "samples wrong", "refusals")


def main(arguments: Sequence[str]) -> int:
    """Run as a script."""
    parser = stories.options("tests.storm", __doc__)
    parser.add_argument("--tars", action="store_true", help="of tars, not of Parquet files")
    parser.add_argument("--fault", action="store_true", help="ranks resume a step early")
    given = parser.parse_args(arguments)
    for name in [name for name in os.environ if name.startswith(("AWS_", "FSSPEC_"))]:
        del os.environ[name]
    store = Store()
    os.environ |= {**ENVIRONMENT, "AWS_ENDPOINT_URL": store.url}
    forks = Forks("tests.storm.ranks")

    def tell(seed: int) -> stories.Story:
        before = store.answers.copy()
        with tempfile.TemporaryDirectory(prefix="storm-", ignore_cleanup_errors=True) as folder:
            history = History(seed, store, forks, Path(folder), given.fault, tars=given.tars)
            story = history.tell()
        store.bucket.objects.clear()
        for name, number in (store.answers - before).items():
            story.count("answers", name, number)
        return story

    try:
        return stories.run(given, tell, TOTALS, "tests.storm" + " --tars" * given.tars)
    finally:
        forks.end()
        store.shutdown()
        store.server_close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
