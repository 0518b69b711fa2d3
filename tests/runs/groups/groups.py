"""Groups of a torchft run on this machine, started and killed one by one."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torchft.coordination import LighthouseServer

from benchmarks.measure.fresh import ROOT

PATIENCE = 240
"""Seconds without anything new after which a run is given up."""


class Forking:
    """A process that has imported torchft and forks groups."""

    def __init__(self, errors: Path, *modules: str) -> None:
        self.errors = errors
        path = [ROOT, ROOT / "adapters", os.environ.get("PYTHONPATH", "")]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(map(str, path)),
            "OTEL_SDK_DISABLED": "true",
            "OMP_NUM_THREADS": "1",
        }
        with errors.open("w") as stream:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.runs.groups.group", *modules],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stream,
                text=True,
                env=environment,
            )
        assert "ready" == self.said(), errors.read_text()

    def said(self) -> str:
        """Return the next line that it prints."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().rstrip()

    def fork(self, **words: Any) -> int:
        """Fork a group; return the number of its process."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{json.dumps(words)}\n")
        self.process.stdin.flush()
        return int(self.said())

    def end(self) -> None:
        """End it, and not the groups."""
        self.process.kill()
        self.process.communicate()


class Groups:
    """A lighthouse, and groups that find each other by it."""

    def __init__(
        self, forking: Forking, folder: Path, *, min_groups: int = 1, join_ms: int = 200
    ) -> None:
        self.forking, self.folder, self.min_groups = forking, folder, min_groups
        self.server = LighthouseServer(
            bind="127.0.0.1:0",
            min_replicas=min_groups,
            join_timeout_ms=join_ms,
            quorum_tick_ms=20,
            heartbeat_timeout_ms=1500,
        )
        port = self.server.address().rsplit(":", 1)[1]
        self.address = f"http://127.0.0.1:{port}"
        self.pids: dict[int, int] = {}
        self.generation = Counter[int]()

    def start(self, group: int, loop: str, samples: int, **words: Any) -> None:
        """Start a group, as new."""
        self.generation[group] += 1
        self.pids[group] = self.forking.fork(
            loop=loop,
            number=group,
            folder=str(self.folder),
            lighthouse=self.address,
            log=str(self.log(group)),
            samples=samples,
            min_groups=self.min_groups,
            **words,
        )

    def go(self) -> None:
        """Let groups begin, once all that were started are there."""
        self.wait(lambda: all(self.written(group, "ready") for group in self.pids))
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
        try:
            os.kill(self.pids[group], 0)
        except ProcessLookupError:
            return False
        return True

    def wait(self, until: Callable[[], bool]) -> None:
        """Wait for what groups write."""
        end = time.monotonic() + PATIENCE
        while not until():
            if time.monotonic() > end:
                raise TimeoutError(self.forking.errors.read_text()[-3000:])
            time.sleep(0.05)  # it looks again

    def end(self) -> None:
        """Kill everything but what forks groups."""
        for pid in self.pids.values():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.server.shutdown()
