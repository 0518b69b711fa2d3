"""Running ranks: processes that find each other over gloo on loopback, and report what they saw."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]

# A thread of torch's gloo may drop its last tensor when the interpreter is already going, which
# aborts a rank that has done all its work: c10d::ProcessGroupGloo::runLoop destroys an
# AsyncAllreduceWork, whose tensor asks for the lock of the interpreter that ends (torch 2.13).
GLOO_ABORT = "terminate called without an active exception"


def free_port() -> int:
    """A loopback port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def run_ranks(
    function: str, world_size: int, *arguments: Any, timeout: float = 900, **environment: str
) -> list[Any]:
    """Call `package.module:name` in every rank's own process; return what each returned.

    The function is called as name(*arguments); arguments and results travel as JSON. RANK,
    LOCAL_RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT are set as torchrun sets them. A rank that
    fails fails the test, with what it printed.
    """
    with tempfile.TemporaryDirectory() as folder:
        ranks = []
        port = str(free_port())
        for rank in range(world_size):
            variables = {
                **os.environ,
                "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "adapters")]),
                "RANK": str(rank),
                "LOCAL_RANK": str(rank),
                "WORLD_SIZE": str(world_size),
                "LOCAL_WORLD_SIZE": str(world_size),
                "NODE_RANK": "0",
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": port,
                "GLOO_SOCKET_IFNAME": "lo",
                "OMP_NUM_THREADS": "1",
                **environment,
            }
            result = Path(folder) / f"{rank}.json"
            command = [sys.executable, "-m", "tests.trainers.ranks", function, str(result)]
            command.append(json.dumps(arguments))
            log = (Path(folder) / f"{rank}.log").open("w+b")
            process = subprocess.Popen(
                command, cwd=folder, env=variables, stdout=log, stderr=subprocess.STDOUT
            )
            ranks.append((process, log, result))
        try:
            for process, _, _ in ranks:
                process.wait(timeout)
        finally:
            said = []
            for rank, (process, log, result) in enumerate(ranks):
                process.kill()
                process.wait()
                log.seek(0)
                text = log.read().decode(errors="replace")
                done = result.exists() and GLOO_ABORT in text
                if process.returncode and not done:
                    said.append(f"rank {rank} ended with {process.returncode}:\n{text[-6000:]}")
                log.close()
        assert not said, "\n".join(said)
        return [json.loads(result.read_text()) for _, _, result in ranks]


def _main() -> None:
    import importlib
    import multiprocessing

    # Workers forked from a process with threads can hang (CPython issue 112275).
    multiprocessing.set_start_method("forkserver")
    multiprocessing.set_forkserver_preload(["torch", "indexplan_torch"])
    function, result, arguments = sys.argv[1:]
    module, name = function.split(":")
    value = getattr(importlib.import_module(module), name)(*json.loads(arguments))
    Path(result).write_text(json.dumps(value))


if __name__ == "__main__":
    _main()
