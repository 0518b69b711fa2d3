"""Running ranks: processes that find each other over gloo on loopback, and report what they saw."""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def free_port() -> int:
    """A loopback port that nobody listens on, and that no connection is given by itself.

    A port that the system would hand out may be taken by any connection (gloo's, of which ranks
    make dozens) between this probe and the moment at which rank 0 listens on it; then rank 0 ends,
    and the others wait for it.
    """
    handed_out = Path("/proc/sys/net/ipv4/ip_local_port_range")
    first = int(handed_out.read_text().split()[0]) if handed_out.exists() else 32768
    while True:
        port = random.SystemRandom().randrange(first // 2, first)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def ended(process: subprocess.Popen[bytes], log: Any) -> str | None:
    """How a rank ended that failed; None if it runs, or has done its work."""
    if not process.poll():
        return None
    log.seek(0)
    return f"ended with {process.returncode}:\n{log.read().decode(errors='replace')[-6000:]}"


def run_ranks(
    function: str, world_size: int, *arguments: Any, timeout: int = 600, **environment: str
) -> list[Any]:
    """Call `package.module:name` in every rank's own process; return what each returned.

    The function is called as name(*arguments); arguments and results travel as JSON. RANK,
    LOCAL_RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT are set as torchrun sets them. A rank that
    fails ends the others, which would wait for it, and fails the test with what it printed; one
    that is not done after `timeout` seconds ends itself, and prints where all its threads were.
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
            command += [str(timeout), json.dumps(arguments)]
            log = (Path(folder) / f"{rank}.log").open("w+b")
            process = subprocess.Popen(
                command, cwd=folder, env=variables, stdout=log, stderr=subprocess.STDOUT
            )
            ranks.append((process, log, result))
        try:
            while any(process.poll() is None for process, _, _ in ranks):
                if any(ended(process, log) for process, log, _ in ranks):
                    break
                for process, _, _ in ranks:
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        process.wait(0.2)
            how = [ended(process, log) for process, log, _ in ranks]
            said = [f"rank {rank} {each}" for rank, each in enumerate(how) if each]
        finally:
            for process, log, _ in ranks:
                process.kill()
                process.wait()
                log.close()
        assert not said, "\n".join(said)
        return [json.loads(result.read_text()) for _, _, result in ranks]


def _main() -> None:
    import importlib
    import multiprocessing

    # Workers forked from a process with threads can hang (CPython issue 112275).
    multiprocessing.set_start_method("forkserver")
    multiprocessing.set_forkserver_preload(["torch", "indexplan_torch"])
    function, result, timeout, arguments = sys.argv[1:]
    faulthandler.dump_traceback_later(int(timeout), exit=True)
    module, name = function.split(":")
    value = getattr(importlib.import_module(module), name)(*json.loads(arguments))
    Path(result).write_text(json.dumps(value))
    # A process group whose last owner is not Python, such as a model under DDP, ends while the lock
    # of the interpreter is held; a thread of gloo that drops the tensor of its last work waits for
    # that lock (torch 2.13: within 150 groups). So none ends here but with the process.
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    _main()
