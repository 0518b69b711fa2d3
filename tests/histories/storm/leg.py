"""One leg of a run through a storm: processes, and what happens to them. Imports no indexplan."""

from __future__ import annotations

import json
import os
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.histories.storm.store import Mood
from tests.histories.storm.truth import GLOBAL_BATCH, NUM_EPOCHS, RECORD, Log
from tests.support.forked import Forked

if TYPE_CHECKING:
    from tests.histories.storm.driver import History

PATIENCE = 180.0  # seconds in which some rank has to make progress
KILL_ONE, KILL_WORKER, KILL_ALL = "a rank", "a DataLoader worker", "all ranks"
KILLS = (KILL_ONE, KILL_ONE, KILL_WORKER, KILL_ALL)  # of a node, a rank fetches for all
REPLACE = "replace"


@dataclass
class Rank:
    """A process of a rank."""

    number: int
    process: Forked
    files: Path
    done: int
    killed: bool = False
    worker_killed: bool = False

    def file(self, name: str) -> Path:
        """Return the path of a file of this process."""
        return self.files.with_name(f"{self.files.name}-{name}")

    def children(self) -> list[int]:
        """Return the workers that it has told of."""
        path = self.file("children")
        return list(json.loads(path.read_text())) if path.exists() else []


@dataclass
class Leg:
    """The processes of one leg."""

    history: History
    number: int
    world: int
    nodes: int
    workers: int
    options: dict[str, int]
    mood: Mood
    events: list[tuple[int, str, Any]]
    tried: list[Rank] = field(default_factory=list)  # all processes, in the order of their starts
    refused: list[str] = field(default_factory=list)
    ended: bool = False

    def run(self) -> None:
        """Run until all ranks have finished, or the leg was ended."""
        begun = self.history.done, self.history.state
        live = [self._start(rank, *begun) for rank in range(self.world)]
        seen, moved = -1, time.monotonic()
        try:
            while live and not self.ended:
                progress = sum(self._size(rank) for rank in self.tried)
                if progress != seen:
                    seen, moved = progress, time.monotonic()
                if time.monotonic() - moved > PATIENCE:
                    text = "\n".join(rank.process.log.read_text()[-3000:] for rank in live)
                    self.history.fail(f"no progress in {PATIENCE:g} seconds: {text}")
                    break
                live = [each for rank in live if (each := self._look(rank)) is not None]
                while self.events and progress // RECORD.size >= self.events[0][0] and live:
                    _, what, how = self.events.pop(0)
                    live = self._happen(what, how, live)
                time.sleep(0.01)
        finally:
            for rank in live:
                rank.killed = True
                rank.process.kill(signal.SIGKILL)
            for rank in self.tried:
                rank.process.wait()
        self._settle()
        if self.refused:
            self.history.judge(self.refused[0], self.mood)
            self.history.repair()

    def _size(self, rank: Rank) -> int:
        path = rank.file("log")
        return path.stat().st_size if path.exists() else 0

    def _start(self, rank: int, done: int, state: Any) -> Rank:
        history = self.history
        attempt = sum(each.number == rank for each in self.tried)
        files = history.folder / f"leg-{self.number}-rank-{rank}-{attempt}"
        each = self.world // self.nodes
        names = ("log", "refused", "children", "finished")
        job = {
            **{name: f"{files}-{name}" for name in names},
            "states": str(history.folder / f"leg-{self.number}-rank-{rank}"),
            "shards": history.shards,
            "place": f"s3://bucket/{history.prefix}",
            "cache_dir": str(history.cache(rank // each)),
            "cache_bytes": history.room,
            "ranks_per_node": each,
            "global_batch": GLOBAL_BATCH,
            "num_epochs": NUM_EPOCHS,
            "options": self.options,
            "rank": rank,
            "world_size": self.world,
            "workers": self.workers,
            "state": state,
            "done": done,
            "every": history.every,
            "fault": history.fault,
        }
        process = history.start("read", Path(f"{files}.out"), json.dumps(job))
        started = Rank(rank, process, files, done)
        self.tried.append(started)
        return started

    def _look(self, rank: Rank) -> Rank | None:
        """Return a rank that runs; None if it has ended."""
        code = rank.process.poll()
        if code is None:
            return rank
        text = rank.process.log.read_text(errors="replace")
        if rank.file("refused").exists():
            self.refused.append(rank.file("refused").read_text())
            self.ended = True
        elif rank.worker_killed:  # torch raises a RuntimeError
            self.ended = True
        elif code != 0 or not rank.file("finished").exists():
            self.history.fail(f"rank {rank.number} ended with {code}: {text[-3000:]}")
            self.ended = True
        return None

    def _happen(self, what: str, how: Any, live: list[Rank]) -> list[Rank]:
        """Let something happen; return the ranks that run then."""
        history = self.history
        if what == REPLACE:
            history.replace(*how)
            return live
        victim = live[int(how * len(live))]
        if what == KILL_WORKER:
            self._kill_worker(victim, how)
            return live
        for rank in live if what == KILL_ALL else [victim]:
            if rank.process.poll() is None:
                rank.killed = True
                rank.process.kill(signal.SIGKILL)
                rank.process.wait()
        if not victim.killed:  # it has just ended by itself
            return live
        self._tell(what)
        if what == KILL_ALL or how * 100 % 1 < 0.3:
            self.ended = True
            return [rank for rank in live if not rank.killed]
        done, state = self._newest(victim.number)
        self.history.say(f"rank {victim.number} alone goes on from step {done}")
        again = self._start(victim.number, done, state)
        return [again if rank is victim else rank for rank in live]

    def _kill_worker(self, rank: Rank, how: float) -> None:
        """Kill a worker of a rank, which then raises."""
        children = rank.children()
        pid = children[int(how * 1000) % len(children)] if children else 0
        if _is_child(pid, rank.process.pid):
            rank.worker_killed = True
            os.kill(pid, signal.SIGKILL)
            self._tell(KILL_WORKER)

    def _tell(self, what: str) -> None:
        self.history.story.count("killed", what)
        self.history.say(f"killed: {what}")

    def _states(self, rank: int) -> dict[int, Path]:
        base = f"leg-{self.number}-rank-{rank}"
        found = self.history.folder.glob(f"{base}-*.json")
        return {int(path.stem.removeprefix(f"{base}-")): path for path in found}

    def _newest(self, rank: int) -> tuple[int, Any]:
        if states := self._states(rank):
            return max(states), json.loads(states[max(states)].read_text())
        return self.history.done, self.history.state

    def _settle(self) -> None:
        """Find the step that all ranks have saved, from which the next leg goes on."""
        history = self.history
        finished = [
            any(each.number == rank and each.file("finished").exists() for each in self.tried)
            for rank in range(self.world)
        ]
        states = [self._states(rank) for rank in range(self.world)]
        common = set(states[0]).intersection(*states[1:])
        if all(finished):
            history.done = history.steps
        elif common:
            done = max(common)
            texts = {each[done].read_text() for each in states}
            if len(texts) > 1:
                history.fail(f"states of ranks differ after step {done}: {texts}")
            history.done, history.state = done, json.loads(texts.pop())
        for at, rank in enumerate(self.tried):
            later = [each.done for each in self.tried[at + 1 :] if each.number == rank.number]
            until = min([history.done, *later])
            history.logs.append(Log(rank.file("log"), until))


def _is_child(pid: int, parent: int) -> bool:
    """Return whether a process is a child of another: numbers are used again."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
    return f"PPid:\t{parent}\n" in status
