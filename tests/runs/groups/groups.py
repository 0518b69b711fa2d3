"""Groups of a torchft run on this machine, started and killed one by one."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torchft.coordination import LighthouseServer

from tests.support.forked import Forked, Forks

PATIENCE = 240
"""Seconds without anything new after which a run is given up."""


def forks_of(*modules: str) -> Forks:
    """Return a process that has imported torchft and some modules, and forks groups."""
    # of these the first as an optimizer would in each group
    return Forks("torch._dynamo", "tests.runs.groups.group", *modules)


class Groups:
    """A lighthouse, and groups that find each other by it."""

    def __init__(
        self, forks: Forks, folder: Path, *, min_groups: int = 1, join_ms: int = 200
    ) -> None:
        self.forks, self.folder, self.min_groups = forks, folder, min_groups
        self.server = LighthouseServer(
            bind="127.0.0.1:0",
            min_replicas=min_groups,
            join_timeout_ms=join_ms,
            quorum_tick_ms=20,
            heartbeat_timeout_ms=1500,
        )
        port = self.server.address().rsplit(":", 1)[1]
        self.address = f"http://127.0.0.1:{port}"
        self.processes: dict[int, Forked] = {}
        self.generation = Counter[int]()

    def start(self, group: int, loop: str, samples: int, **words: Any) -> None:
        """Start a group, as new."""
        self.generation[group] += 1
        words |= {"number": group, "folder": str(self.folder), "lighthouse": self.address}
        words |= {"log": str(self.log(group)), "samples": samples, "min_groups": self.min_groups}
        self.processes[group] = self.forks.start(
            "tests.runs.groups.group:run",
            self.log(group).with_suffix(".out"),
            loop,
            words,
            OTEL_SDK_DISABLED="true",
            TIMEOUT="3600",
        )

    def go(self) -> None:
        """Let groups begin, once all that were started are there."""
        self.wait(lambda: all(self.written(group, "ready") for group in self.processes))
        (self.folder / "go").touch()

    def log(self, group: int) -> Path:
        """Return where the group that runs now writes to."""
        return self.folder / f"g{group}.{self.generation[group]}.log"

    def written(self, group: int, kind: str) -> int:
        """Return how many lines of a kind the running group has written."""
        log = self.log(group)
        return log.read_text().count(f'["{kind}"') if log.exists() else 0

    def lives(self, group: int) -> bool:
        """Return whether a group still runs."""
        return self.processes[group].poll() is None

    def said(self) -> str:
        """Return the last words of all groups."""
        files = sorted(self.folder.glob("*.out"))
        return "\n".join(f"{file.name}: {file.read_text()[-1500:]}" for file in files)

    def wait(self, until: Callable[[], bool]) -> None:
        """Wait for what groups write."""
        end = time.monotonic() + PATIENCE
        while not until():
            if time.monotonic() > end:
                raise TimeoutError(self.said())
            time.sleep(0.05)  # it looks again

    def end(self) -> None:
        """Kill everything but what forks groups."""
        for process in self.processes.values():
            process.kill()
        self.server.shutdown()
