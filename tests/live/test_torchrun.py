"""A node dies under torchrun, and another one joins: no sample is lost or read twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from tests.live.elastic import DIES_AFTER, JOINED_AFTER, KILLED, NODES, check, last, lines
from tests.support.ports import free_port
from tests.trainers.ranks import ROOT

pytestmark = pytest.mark.live

PATIENCE = 300
WINDOW = "keep_alive_interval=2,keep_alive_max_attempt=10"  # after which a silent node is dead


class Nodes:
    """Agents of torchrun on this machine, one for each node; the first one has the store."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        self.agents: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, node: str) -> None:
        """Start the agent of a node, which starts one rank."""
        path = [str(ROOT), str(ROOT / "adapters"), os.environ.get("PYTHONPATH", "")]
        command = [sys.executable, "-m", "torch.distributed.run"]
        command += ["--nnodes", f"1:{NODES}", "--nproc-per-node", "1", "--max-restarts", "10"]
        command += ["--rdzv-backend", "c10d", "--rdzv-endpoint", f"127.0.0.1:{self.port}"]
        command += ["--rdzv-conf", f"is_host={int(not self.agents)},last_call_timeout=5,{WINDOW}"]
        command += ["--local-addr", "127.0.0.1", "--monitor-interval", "0.2"]
        variables = {"NODE": node, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
        variables["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] = "1"  # else d waits for a's address
        with (self.folder / f"{node}.out").open("w") as out:
            self.agents[node] = subprocess.Popen(
                [*command, "-m", "tests.live.elastic", str(self.folder)],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(path), **variables},
                stdout=out,
                stderr=out,
            )

    def wait(self, until: Callable[[], bool]) -> None:
        """Wait for what nodes do."""
        end = time.monotonic() + PATIENCE
        while not until():
            assert time.monotonic() < end, self.said()
            time.sleep(0.05)  # it looks again

    def said(self) -> str:
        """Return what all agents and ranks have said."""
        return "\n".join(f"{x.name}: {x.read_text()[-3000:]}" for x in self.folder.glob("*.out"))

    def kill(self, node: str) -> None:
        """Let a node die: its agent, and its rank."""
        self.agents[node].kill()
        self.agents[node].wait()
        os.kill(last(self.folder, node)[0], signal.SIGKILL)
        (self.folder / KILLED).touch()

    def end(self) -> None:
        """Let agents end their ranks, which a kill would leave behind."""
        for agent in self.agents.values():
            agent.terminate()
        for agent in self.agents.values():
            agent.wait(60)


def test_a_node_dies_and_another_joins(tmp_path: Path) -> None:
    """Of the checkpoint that a run ends with, each epoch reads each sample once."""
    nodes = Nodes(tmp_path)
    try:
        for node in "abc":
            nodes.start(node)
        nodes.wait(lambda: all(last(tmp_path, node)[1:] == [NODES, DIES_AFTER] for node in "abc"))
        nodes.kill("c")
        nodes.wait(lambda: last(tmp_path, "a")[1:] == [NODES - 1, JOINED_AFTER])
        nodes.start("d")
        for node in "abd":
            assert 0 == nodes.agents[node].wait(PATIENCE), nodes.said()
    finally:
        nodes.end()
    check(torch.load(tmp_path / "run.pt")["read"])
    steps = [step for _, _, step in lines(tmp_path / "a.log")]
    assert [2, 2] == [steps.count(step) for step in (DIES_AFTER, JOINED_AFTER)]  # read, and again
