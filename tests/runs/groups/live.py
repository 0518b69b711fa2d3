"""Groups of a torchft run come and go within an epoch: what is lost, and what is read twice.

What is counted is what the groups have written of the steps that count, and were summed up: nothing
here imports indexplan.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.measure.fresh import run_fresh
from tests.runs.groups import LOADERS, Loader
from tests.runs.groups.logs import Logs

if TYPE_CHECKING:  # it imports torchft, which may be missing
    from tests.runs.groups.groups import Forking, Groups

GROUPS = 3
BATCH = 20
"""Samples of a group in a step, when all are there."""
SAMPLES = 3_000
STEPS = SAMPLES // (GROUPS * BATCH)
"""Of an epoch, when all are there."""
HALF = STEPS // 2
"""The step in which a group dies."""
SECONDS = 1_200


def stays(groups: Groups, start: Callable[..., None]) -> None:
    """Let all groups read to the end."""
    for group in range(GROUPS):
        start(group)
    groups.go()


def goes(groups: Groups, start: Callable[..., None]) -> None:
    """Kill a group in the middle of the epoch, in its forward pass."""
    for group in range(GROUPS):
        start(group, dies_in=HALF if group == GROUPS - 1 else None)
    groups.go()
    groups.wait(lambda: not groups.lives(GROUPS - 1))


def comes_back(groups: Groups, start: Callable[..., None]) -> None:
    """Kill a group as before, and start it again at once."""
    goes(groups, start)
    start(GROUPS - 1)


KINDS: dict[str, tuple[str, Callable[..., None]]] = {
    "nothing": ("nothing changes", stays),
    "goes": ("one of three groups dies at half", goes),
    "comes back": ("it dies, and is started again at once", comes_back),
}
QUICK = ("comes back",)


def run(loader: Loader, kind: str, folder: Path, forking: Forking) -> dict[str, Any]:
    """Read an epoch by groups that come and go; return what was lost and read twice."""
    from tests.runs.groups.groups import Groups

    groups = Groups(forking, folder, min_groups=GROUPS - 1, join_ms=2000)
    loop = f"{type(loader).__module__}.{loader.module}.train"
    try:
        KINDS[kind][1](groups, lambda group, **words: groups.start(group, loop, SAMPLES, **words))
        groups.wait(lambda: not any(groups.lives(group) for group in groups.pids))
        ended = sum(groups.written(group, "done") for group in groups.pids)
        if ended != GROUPS - (kind == "goes"):
            raise RuntimeError(f"{ended} groups ended: {forking.errors.read_text()[-3000:]}")
    finally:
        groups.end()
    return count(Logs(folder))


def count(logs: Logs) -> dict[str, Any]:
    """Count the samples of an epoch in the steps that count."""
    times = Counter[int]()
    worlds = Counter[int]()
    for step, quorums in logs.quorums.items():
        quorum = max(quorums)  # the last one that went through this step
        worlds[logs.worlds.get((quorum, step), 0)] += 1
        for rows in logs.read[quorum, step].values():
            times.update(rows)
    twice = sum(times.values()) - len(times)
    return {"lost": SAMPLES - len(times), "twice": twice, "worlds": dict(sorted(worlds.items()))}


def all_of(kinds: tuple[str, ...]) -> dict[str, Any]:
    """Run all loaders in this process; return what each lost, or the reason why it is missing."""
    records: dict[str, Any] = {each.name: {**each.standing(), "counts": {}} for each in LOADERS}
    there = [each for each in LOADERS if not records[each.name]["missing"]]
    if len(there) < len(LOADERS):  # all numbers of a table are of one run
        return records
    from tests.runs.groups.groups import Forking

    with tempfile.TemporaryDirectory() as root:
        modules = [f"{type(each).__module__}.{each.module}" for each in there]
        forking = Forking(Path(root, "errors"), *modules)
        try:
            for kind in kinds:
                for each in there:
                    folder = Path(root, f"{each.module}-{kind}")
                    folder.mkdir()
                    records[each.name]["counts"][kind] = run(each, kind, folder, forking)
        finally:
            forking.end()
    return records


def live(kinds: tuple[str, ...] = tuple(KINDS)) -> dict[str, Any]:
    """Return `all_of` of a fresh process, as torchft's lighthouse says a lot."""
    records: dict[str, Any] = run_fresh(
        "tests.runs.groups.live.all_of", kinds, seconds=SECONDS, OTEL_SDK_DISABLED="true"
    )
    return records


def wrong(records: dict[str, Any]) -> list[str]:
    """Return what has to hold, and does not: all were run, and ours lost and repeated nothing."""
    found = [
        f"{name}: {record['missing']}" for name, record in records.items() if record["missing"]
    ]
    for each in LOADERS:
        for kind, counts in records[each.name]["counts"].items():
            if each.ours and (counts["lost"] or counts["twice"]):
                found.append(f"{each.name}, {KINDS[kind][0]}: {counts}")
    return found
