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
import re
import shutil
import tempfile
import time
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from tests.histories.stories import Given, Story
from tests.histories.storm.leg import KILLS, REPLACE, Leg
from tests.histories.storm.planting import PLANTS, plant
from tests.histories.storm.store import FATES, SLOW, Mood, Store
from tests.histories.storm.truth import (
    GLOBAL_BATCH,
    LONGER,
    NUM_EPOCHS,
    OTHER,
    REVERSED,
    RIGHT,
    Log,
    Truth,
    count,
    drawn,
)
from tests.support.forked import Forked, Forks

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
# who counted the samples of tars, and where it says so
TARS = {"their headers": "", "sizes.json": "sizes.json", "Energon": ".nv-meta/.info.json"}
STORMY, MOST_LEGS = 7, 16  # legs with a storm; those after them are calm
CURE = re.compile(
    r";[^;]*\b(restore|check|run again|delete|remove|pass|free|read the sizes|empty)\b"
)


class History:
    """A run over one dataset, drawn from a seed."""

    def __init__(
        self, story: Story, store: Store, forks: Forks, folder: Path, fault: bool, *, tars: bool
    ) -> None:
        self.story, self.store, self.forks, self.fault = story, store, forks, fault
        self.say, self.fail = story.say, story.fail
        self.random = Random(f"storm {story.number}")  # noqa: S311
        self.folder = folder
        self.truth: Truth = drawn(self.random, str(story.number), tars=tars)
        self.whole = self.random.random() < 0.4 or tars
        # who has counted the samples of tars
        self.counted = self.random.choice([*TARS]) if tars else ""
        self.steps = self.truth.num_samples // GLOBAL_BATCH * NUM_EPOCHS
        self.every = self.random.randint(1, 4)
        self.prefix = f"storm-{story.number}"
        self.done, self.state = 0, None
        self.logs: list[Log] = []
        self.disturbed: set[str] = set()  # files that are not as they should be
        self.planted: set[int] = set()  # nodes
        self.victim = folder / "victim"
        self.victim.write_bytes(b"nobody may write here")
        self.shards = ""
        self.room = self._room()

    def _room(self) -> int:
        """Draw how many bytes shards may take: at times fewer than all do."""
        files = [len(self.truth.file(number)) for number in range(len(self.truth.names))]
        if self.whole:
            sizes = [-(-size // 4096) * 4096 for size in files]
        else:
            sizes = [
                size // len(groups) + 20_000
                for size, groups in zip(files, self.truth.groups, strict=True)
                for _ in groups
            ]
        return int(sum(sizes) * self.random.choice([0.6, 0.8, 1.5]))

    def run(self) -> None:
        """Run it."""
        self.say(
            f"{self.truth.num_samples} samples in {len(self.truth.names)} files, "
            f"{self._shards()}, values of {self.truth.width} bytes, "
            f"statistics: {self.truth.statistics}, page checksums: {self.truth.checksums}"
        )
        self.store.set_mood(Mood("calm"))
        self.store.bucket.conditions = self.random.random() < 0.7
        self.repair()
        index = TARS.get(self.counted, "")
        if index:
            truth = self.truth
            sizes = json.dumps(dict(zip(truth.names, map(sum, truth.groups), strict=True))).encode()
            said = sizes if index == "sizes.json" else b'{"shard_counts": %s}' % sizes
            self.store.put(f"{self.prefix}/{index}", said, lie=said, replica=said)
        files = index or ("*.tar" if self.truth.tars else "*.parquet")
        place = f"s3://bucket/{self.prefix}/{files}"
        looked = self.start("look", self.folder / "look.log", place, self.whole)
        if looked.wait() != 0:
            self.fail(f"shard_sizes raised: {looked.log.read_text()[-3000:]}")
            return
        found = looked.result()
        self.shards = found["shards"]
        for number in range(MOST_LEGS):
            if self.story.wrong or self.done == self.steps:
                break
            self._leg(number, calm=number >= STORMY)
            self._count(finished=False)
        if not self.story.wrong and self.done < self.steps:
            self.fail(f"not finished after {MOST_LEGS} legs, of which the last ones were calm")
        if not self.story.wrong:
            self._count(finished=True)
        self.story.count("shards", self._shards())

    def _shards(self) -> str:
        kind = "whole files" if self.whole else "row groups"
        return f"tars, counted by {self.counted}" if self.counted else kind

    def start(self, function: str, log: Path, *arguments: Any) -> Forked:
        return self.forks.start(f"tests.histories.storm.ranks:{function}", log, *arguments)

    def _put(self, number: int, version: str) -> None:
        truth, random = self.truth, Random(f"{self.story.number} {number}")  # noqa: S311
        # a lie that nothing tells from the truth is not asked for: equal sizes and equal footers
        tell = self.whole and truth.statistics and not truth.tars
        told = OTHER if tell else LONGER
        self.store.put(
            f"{self.prefix}/{truth.names[number]}",
            truth.file(number, version),
            lie=truth.file(number, told),
            replica=truth.file(number, random.choice([OTHER, LONGER, REVERSED])),
        )

    def repair(self) -> None:
        """Put back what was replaced, and remove what was planted."""
        for number, name in enumerate(self.truth.names):
            if self.disturbed or f"{self.prefix}/{name}" not in self.store.bucket.objects:
                self._put(number, RIGHT)
        self.disturbed.clear()
        for node in self.planted:
            shutil.rmtree(self.cache(node))
        self.planted.clear()

    def cache(self, node: int) -> Path:
        return self.folder / f"node-{node}"

    def _leg(self, number: int, *, calm: bool) -> None:
        """Run ranks until they end, are killed, or are refused."""
        random, begun = self.random, time.monotonic()
        world = random.choice([1, 2, 2, 4])
        nodes = 1 if world == 1 else random.choice([1, 1, 2])
        workers = random.choice([0, 0, 1, 2])
        leg = f"{self.story.number} {number}"
        mood = Mood(leg)
        if not calm and random.random() < 0.8:
            ways = tuple(random.sample(FATES, random.randint(1, len(FATES))))
            mood = Mood(leg, random.choice([2, 4, 10, 30]), ways)
            if mood.one_in < 10:  # each of them takes seconds
                mood = Mood(leg, mood.one_in, tuple(set(ways) - SLOW) or ("429",))
        events = [] if calm else self._draw_events()
        self._plant(nodes, calm=calm)
        stormy = f"1 answer in {mood.one_in} is one of {', '.join(sorted(mood.ways))}"
        self.say(
            f"leg {number}: from step {self.done} of {self.steps}, {world} ranks on {nodes} nodes, "
            f"{workers} workers, {stormy if mood.one_in else 'a calm store'}"
        )
        options = {
            "ahead": random.choice([1, 4, 16]),
            "num_threads": random.choice([1, 4]),
            "keep_open": random.choice([1, 4, 16]),
        }
        self.store.set_mood(mood)
        self.story.count("", "legs")
        self.story.count("ranks", f"{world} on {nodes}")
        Leg(self, number, world, nodes, workers, options, mood, events).run()
        self.store.set_mood(Mood("calm"))
        self.say(f"{time.monotonic() - begun:.1f} s, now at step {self.done}")
        if self.victim.read_bytes() != b"nobody may write here":
            self.fail("a link that was planted led to a file that was written")

    def _draw_events(self) -> list[tuple[int, str, Any]]:
        """Draw kills and replacements, each after so many samples of the leg."""
        random, left = self.random, (self.steps - self.done) * GLOBAL_BATCH
        events: list[tuple[int, str, Any]] = []
        for _ in range(random.choice([0, 1, 2, 2, 3])):
            after = random.randint(0, max(1, left * 2 // 3))
            if random.random() < 0.3:
                file = random.randrange(len(self.truth.names))
                events.append((after, REPLACE, (file, random.choice([OTHER, LONGER, REVERSED]))))
            else:
                events.append((after, random.choice(KILLS), random.random()))
        return sorted(events, key=lambda event: event[0])

    def _plant(self, nodes: int, *, calm: bool) -> None:
        """Leave something in a cache folder, at times."""
        if calm or self.random.random() > 0.4:
            return
        what, node = self.random.choice(PLANTS), self.random.randrange(nodes)
        cache = self.cache(node)
        if plant(what, cache, self.truth, self.random, self.victim, whole=self.whole):
            self.planted.add(node)
            self.story.count("planted", what)
            self.say(f"planted: {what}, for node {node}")

    def replace(self, number: int, version: str) -> None:
        """Replace a file in the store."""
        self._put(number, version)
        self.disturbed.add(self.truth.names[number])
        self.story.count("replaced by", version)
        self.say(f"{self.truth.names[number]} is replaced: {version}")

    def judge(self, message: str, mood: Mood) -> None:
        """Judge an error that stopped the run: it has to name the shard, the file and a cure.

        One about a room that does not hold a step names the bytes that do, with which it must run.
        """
        self.say(f"refused: {message[:600]}")
        self.story.count("", "refusals")
        if room := re.match(r"cache_bytes must be at least (\d+), ", message):
            self.room = max(self.room, int(room[1]))  # its cure: what is drawn may be too small
            return
        caches = [str(self.cache(node)) for node in self.planted]
        suspects = self.truth.names if mood.one_in or self.planted else sorted(self.disturbed)
        names = any(name in message for name in suspects)
        names = names and (self.whole or bool(re.search(r"\bshard \d+", message)))
        if not (mood.one_in or self.disturbed or self.planted):
            self.fail(f"refused for nothing: {message}")
        elif not (names or any(cache in message for cache in caches)):
            self.fail(f"the error names no shard and file that is not as it was: {message}")
        elif not CURE.search(message):
            self.fail(f"the error names no cure: {message}")

    def _count(self, *, finished: bool) -> None:
        found = count(self.truth, self.logs, finished=finished)
        for name, which in (("lost", found.lost), ("twice", found.twice), ("wrong", found.wrong)):
            if which:
                self.fail(f"{len(which)} samples {name}, such as {', '.join(which[:3])}")
                self.story.count("", f"samples {name}", len(which))
        if finished or self.story.wrong:
            self.story.count("", "samples read", found.num_read)


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
