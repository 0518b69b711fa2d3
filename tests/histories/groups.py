"""Groups of torchft runs are killed and started again, and every sample is counted.

The count knows how many samples there are, and what groups have written. The groups share a ledger,
which has to have what was read. Even numbers run the sync quorum, odd ones the async one.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import indexplan as ip
from tests.histories.stories import Given, Story
from tests.runs.groups.group import Groups, forks_of
from tests.runs.groups.live import LOOPS, Logs
from tests.runs.groups.loops import LEDGER
from tests.runs.row import lost_and_twice

SAMPLES = 997
GROUPS = 3
STEPS_AFTER = 25  # the last kill
BETWEEN_CHECKPOINTS = 30  # steps, of which there are more than groups save after


def live(story: Story, given: Given) -> None:
    """Kill groups, one after another, each once it has had part in a step; count."""
    with TemporaryDirectory() as folder:
        storm(Path(folder), story.number, given.steps or 50)
        logs = Logs(Path(folder))
        count(story, logs)
        check(ip.Ledger(Path(folder, LEDGER)), logs)


def storm(folder: Path, number: int, kills: int) -> None:
    """Let groups run, and kill so many."""
    forks, sync = forks_of(LOOPS), number % 2 == 0
    groups, random = Groups(forks, folder), Random(number // 2)  # noqa: S311 (which comes again)

    def start(group: int) -> None:
        loop = "through_loader" if sync or group == 0 else "by_hand"
        groups.start(group, f"{LOOPS}.{loop}", SAMPLES, sync=sync)

    def counting(group: int, least: Callable[[], int]) -> None:
        """Wait until a group has written that so many steps count."""
        groups.wait(lambda: groups.written(group, "counts") >= least())

    def more(group: int, steps: int) -> None:
        """Wait until a group has written of so many more."""
        least = groups.written(group, "counts") + steps
        counting(group, lambda: least)

    try:
        for group in range(GROUPS):
            start(group)
        groups.go()
        for group in range(GROUPS):
            counting(group, lambda: 2)
        for _ in range(kills):
            group = random.randrange(GROUPS)
            more(group, random.randint(0, 6))
            time.sleep(random.uniform(0, 0.1))  # anywhere in a step
            groups.processes[group].kill()
            more((group + 1) % GROUPS, random.choice([0, 0, 1, 5]))
            start(group)
            counting(group, lambda: 1)
        more(0, STEPS_AFTER)
    finally:
        groups.end()
        forks.end()


def count(story: Story, logs: Logs) -> None:
    """Count what was read in the steps that count: each whole epoch has each sample once."""
    steps, void, different = logs.steps(), 0, logs.different
    assert [step.number for step in steps] == [*range(1, len(steps) + 1)]  # 0 has no data
    for number, world, samples in steps:
        story.count("steps by ranks", world)
        for quorum in logs.quorums[number]:  # those that knew nothing of each other
            ranks = sorted(logs.read[quorum, number])
            assert ranks == [*range(logs.worlds[quorum, number])], f"ranks of {number}: {ranks}"
            different += Counter(logs.of(quorum, number)) != Counter(samples)
        void += len(logs.quorums[number]) - 1
    stream = [sample for step in steps for sample in step.samples]
    epochs = len(stream) // SAMPLES
    each = [stream[epoch * SAMPLES : (epoch + 1) * SAMPLES] for epoch in range(epochs)]
    lost, twice = map(sum, zip(*(lost_and_twice(epoch, SAMPLES) for epoch in each), strict=True))
    counts = {"steps that count": len(steps), "steps that count twice": void, "epochs": epochs}
    counts |= {"samples lost": lost, "samples twice": twice, "steps that differ": different}
    for name, number in counts.items():
        story.count("", name, number)
    if lost or twice or different or len({step.world for step in steps}) == 1:
        story.fail(f"{counts}")


def check(ledger: ip.Ledger, logs: Logs) -> None:
    """Compare the ledger, whose last step is that of the last checkpoint, with what was read."""
    assert ledger.verify().ok
    assert ledger.step > len(logs.quorums) - BETWEEN_CHECKPOINTS
    for step in range(ledger.step):
        number = step + 1  # torchft's first step reads nothing
        read = [logs.of(quorum, number) for quorum in logs.quorums[number]]
        assert ledger.batch(step, rank=0).tolist() in read, step
