"""Read shards through a storm, and count every sample: `python -m tests.storm --minutes 10`.

A history is a run of two epochs over Parquet files or tars in an S3 store on loopback that answers
short, stale, late, with refusals or not at all. Files are replaced; ranks, workers and the process
that fetches are killed, and resumed from what they saved; folders are planted. What each rank
received is counted by code that does not import indexplan. Exits with 1 if a sample was lost, read
twice or wrong, if anything raised but an error that names shard, file and cure, or if a run did not
end.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.storm.history import History, Story
from tests.storm.store import Store
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


def main(arguments: Sequence[str]) -> int:
    """Run as a script."""
    parser = argparse.ArgumentParser(prog="python -m tests.storm", description=__doc__)
    parser.add_argument("--minutes", type=float, default=600, help="begin no history after them")
    parser.add_argument("--histories", type=int, default=10**6, help="at most so many")
    parser.add_argument("--seed", type=int, default=0, help="of the first history; 0 if left out")
    parser.add_argument("--tars", action="store_true", help="of tars, not of Parquet files")
    parser.add_argument("--fault", default="", help="plant a fault in the ranks")
    parser.add_argument("--words", action="store_true", help="tell every history in words")
    given = parser.parse_args(arguments)
    for name in [name for name in os.environ if name.startswith(("AWS_", "FSSPEC_"))]:
        del os.environ[name]
    store = Store()
    os.environ |= {**ENVIRONMENT, "AWS_ENDPOINT_URL": store.url}
    forks = Forks("tests.storm.ranks")
    counts: Counter[tuple[str, str]] = Counter()
    start, num_wrong = time.monotonic(), 0
    try:
        for seed in range(given.seed, given.seed + given.histories):
            if time.monotonic() - start > 60 * given.minutes:
                break
            with tempfile.TemporaryDirectory(prefix="storm-", ignore_cleanup_errors=True) as folder:
                history = History(seed, store, forks, Path(folder), given.fault, tars=given.tars)
                story = history.tell()
            counts += story.counts
            store.bucket.objects.clear()
            num_wrong += bool(story.wrong)
            if story.wrong or given.words:
                say(in_words(story))
    finally:
        forks.end()
        store.shutdown()
        store.server_close()
    say(summary(counts, store.answers, time.monotonic() - start, given.seed, num_wrong))
    return 1 if num_wrong else 0


def in_words(story: Story) -> str:
    """Return a history, what was wrong with it, and how to run it again."""
    again = f"again: python -m tests.storm --histories 1 --seed {story.seed}"
    tars = " --tars" * any(kind == "shards" and "tars" in name for kind, name in story.counts)
    verdict = story.wrong or ["nothing lost, nothing twice, nothing wrong"]
    return "\n  ".join([f"history {story.seed}", *story.words, *verdict, f"{again}{tars}"])


def summary(
    counts: Counter[tuple[str, str]],
    answers: Counter[str],
    seconds: float,
    seed: int,
    num_wrong: int,
) -> str:
    """Return what was counted."""
    shown = ["histories", "legs", "samples read", "samples lost", "samples twice", "samples wrong"]
    lines = [f"{counts['', name]:11,}  {name}" for name in [*shown, "refusals"]]
    tables = {kind for kind, _ in counts if kind}
    for kind in sorted(tables):
        lines.append(f"{kind}:")
        named = sorted(((n, name) for (k, name), n in counts.items() if k == kind), reverse=True)
        lines += [f"{n:11,}  {name}" for n, name in named]
    lines += ["answers:", *(f"{n:11,}  {name}" for name, n in answers.most_common())]
    lines.append(f"{seconds:.0f} s, first seed {seed}")
    num_histories = counts["", "histories"]
    good = f"result: each sample was read once, and right, in all {num_histories} histories"
    lines.append(f"result: WRONG in {num_wrong} histories" if num_wrong else good)
    return "\n".join(lines)


def say(text: str) -> None:
    """Print at once, whatever stdout is."""
    print(text, flush=True)  # noqa: T201 (a script's output)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
