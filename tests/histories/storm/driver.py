"""Reads shards through a storm, and counts every sample.

A history is a run of two epochs over Parquet files or tars in an S3 store on loopback that answers
short, stale, late, with refusals or not at all. Files are replaced; ranks, workers and the process
that fetches are killed, and resumed from what they saved; folders are planted. What each rank
received is counted by code that does not import indexplan. It is wrong if a sample was lost, read
twice or wrong, if anything raised but an error that names shard, file and cure, or if a run did not
end.
"""

from __future__ import annotations

import json
import os
import tempfile
from contextlib import ExitStack
from functools import cache
from pathlib import Path

from tests.histories.stories import Given, Story
from tests.histories.storm.history import History
from tests.histories.storm.store import Store
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


@cache
def opened(stack: ExitStack) -> tuple[Store, Forks]:
    """Return a store, and a process that forks ranks, which all histories share."""
    for name in [name for name in os.environ if name.startswith(("AWS_", "FSSPEC_"))]:
        del os.environ[name]
    store = Store()
    stack.callback(store.server_close)
    stack.callback(store.shutdown)
    os.environ |= {**ENVIRONMENT, "AWS_ENDPOINT_URL": store.url}
    forks = Forks("tests.histories.storm.ranks")
    stack.callback(forks.end)
    return store, forks


def live(story: Story, given: Given, *, tars: bool = False) -> None:
    """Run a history."""
    store, forks = opened(given.stack)
    before = store.answers.copy()
    with tempfile.TemporaryDirectory(prefix="storm-", ignore_cleanup_errors=True) as folder:
        History(story, store, forks, Path(folder), given.fault, tars=tars).run()
    store.bucket.objects.clear()
    for name, number in (store.answers - before).items():
        story.count("answers", name, number)


def live_of_tars(story: Story, given: Given) -> None:
    """Run a history over tars."""
    live(story, given, tars=True)
