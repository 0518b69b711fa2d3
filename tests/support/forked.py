"""Processes forked from one that has imported what they need, as ranks spend more on imports.

    forks = Forks("tests.together.sharded_runs")
    rank = forks.start("tests.together.sharded_runs:read_alone", log, text, path, RANK="0")
    assert 0 == rank.wait()

The process that forks has no threads and has computed nothing, so that a rank starts as a fresh
interpreter does, but for its imports.
"""

from __future__ import annotations

import faulthandler
import gc
import importlib
import json
import multiprocessing.forkserver
import multiprocessing.resource_tracker
import multiprocessing.util
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.ports import free_port

ROOT = Path(__file__).parents[2]
TIMEOUT = "300"  # seconds after which a process ends itself, and prints where its threads were


class Forks:
    """A process that imports modules, and forks on request."""

    def __init__(self, *modules: str) -> None:
        given = [os.environ["PYTHONPATH"]] if os.environ.get("PYTHONPATH") else []
        path = os.pathsep.join([str(ROOT), str(ROOT / "adapters"), *given])
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.forked", *modules],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, **request: Any) -> Any:
        """Return what it answers."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{json.dumps(request)}\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def load(self, module: str) -> None:
        """Import one more."""
        self.ask(load=module)

    def start(self, function: str, log: Path, *arguments: Any, **environment: str) -> Forked:
        """Call `package.module:name` in a child, with arguments and this process's environment.

        What it prints goes to a file, and last what it returns, as JSON.
        """
        job = {"function": function, "arguments": arguments, "log": str(log)}
        return Forked(self, self.ask(**job, environment={**os.environ, **environment}), log)

    def ranks(
        self, function: str, folder: Path, world_size: int, *arguments: Any, **environment: str
    ) -> list[Forked]:
        """Start ranks that find each other as under torchrun, on one node if it tells no other."""
        shared = {
            "WORLD_SIZE": str(world_size),
            "LOCAL_WORLD_SIZE": str(world_size),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(free_port()),
            "GLOO_SOCKET_IFNAME": "lo",
            **environment,
        }
        each = int(shared["LOCAL_WORLD_SIZE"])
        return [
            self.start(
                function,
                folder / f"{rank}.log",
                *arguments,
                **{**shared, "RANK": str(rank), "LOCAL_RANK": str(rank % each)},
                GROUP_RANK=str(rank // each),
            )
            for rank in range(world_size)
        ]

    def end(self) -> None:
        """End it, and what it has forked."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


class Forked:
    """A process that was forked."""

    def __init__(self, forks: Forks, pid: int, log: Path) -> None:
        self._forks, self.pid, self.log = forks, pid, log
        self._code: int | None = None

    def poll(self) -> int | None:
        """Return with what it has ended; None if it runs."""
        if self._code is None:
            self._code = self._forks.ask(poll=self.pid)
        return self._code

    def wait(self) -> int:
        """Return with what it ends."""
        while (code := self.poll()) is None:
            time.sleep(0.01)
        return code

    def kill(self, number: signal.Signals = signal.SIGKILL) -> None:
        """Send it a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def result(self) -> Any:
        """Return what the function returned."""
        return json.loads(self.log.read_text().splitlines()[-1])


def results(ranks: list[Forked]) -> list[Any]:
    """Return what ranks returned, when all have."""
    wait_for(ranks)
    return [rank.result() for rank in ranks]


def wait_for(ranks: list[Forked]) -> None:
    """Return when ranks have ended; one that fails ends the others, which would wait for it."""
    try:
        while not all(rank.poll() == 0 for rank in ranks):
            for rank in ranks:
                assert not rank.poll(), rank.log.read_text(errors="replace")[-6000:]
            time.sleep(0.02)
    finally:
        for rank in ranks:
            rank.kill()


def until(found: Callable[[], Any], process: Forked | None = None) -> None:
    """Wait until something is so, which a process sees to that has to live."""
    end = time.monotonic() + 120
    while not found():
        assert process is None or process.poll() is None
        assert time.monotonic() < end
        time.sleep(0.002)


def _run(job: dict[str, Any]) -> None:
    """Do a job, in a child; never return."""
    code = 1
    gc.enable()
    try:
        with Path(job["log"]).open("wb") as log:
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
        os.environ.clear()
        os.environ.update(job["environment"])
        os.chdir(Path(job["log"]).parent)
        faulthandler.dump_traceback_later(int(os.environ.get("TIMEOUT", TIMEOUT)), exit=True)
        module, name = job["function"].split(":")
        found = getattr(importlib.import_module(module), name)(*job["arguments"])
        print(f"\n{json.dumps(found)}")  # noqa: T201 (to 1, which a test of full disks leaves alone)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        # A process group whose last owner is not Python, such as a model under DDP, ends while the
        # lock of the interpreter is held; a thread of gloo that drops the tensor of its last work
        # waits for that lock (torch 2.13: within 150 groups). So none ends but with the process.
        os._exit(code)


def _load(name: str) -> None:
    """Import a module, and what it says its functions import in ranks."""
    for each in getattr(importlib.import_module(name), "IMPORTED_BY_RANKS", ()):
        importlib.import_module(each)


def fork_workers() -> None:
    """Have workers of loaders forked by a fork of this process, which has no threads yet.

    It is multiprocessing's fork server; as an interpreter of its own it would import torch first,
    for 1.7 s.
    """

    def forked(_path: bytes, arguments: list[str], kept: list[int]) -> int:
        """Do what multiprocessing's spawnv_passfds would have a new interpreter do."""
        pid = os.fork()
        if pid == 0:
            try:
                last = 2
                for each in [*sorted(kept), os.sysconf("SC_OPEN_MAX")]:
                    os.closerange(last + 1, each)
                    last = each
                exec(arguments[-1], {})  # noqa: S102 (what `python -c` would run)
            finally:
                os._exit(0)
        return pid

    multiprocessing.set_start_method("forkserver")
    multiprocessing.resource_tracker.ensure_running()
    usual, multiprocessing.util.spawnv_passfds = multiprocessing.util.spawnv_passfds, forked
    multiprocessing.forkserver.ensure_running()
    multiprocessing.util.spawnv_passfds = usual


def _main() -> None:
    gc.disable()  # to look for garbage among imports takes 0.3 s, each time
    for module in sys.argv[1:]:
        _load(module)
    running = set()
    for line in sys.stdin:
        request = json.loads(line)
        if "poll" in request:
            pid, status = os.waitpid(request["poll"], os.WNOHANG)
            running.discard(pid)
            answer = os.waitstatus_to_exitcode(status) if pid else None
        elif "load" in request:
            _load(request["load"])
            answer = None
        else:
            gc.freeze()  # nor does the child
            answer = os.fork()
            if answer == 0:
                _run(request)
            running.add(answer)
        print(json.dumps(answer), flush=True)  # noqa: T201 (for who asked)
    for pid in running:
        os.kill(pid, signal.SIGKILL)
    for pid in running:
        os.waitpid(pid, 0)


if __name__ == "__main__":
    _main()
