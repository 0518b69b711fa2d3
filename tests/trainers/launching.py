"""Runs scripts of docs/examples, as a user starts them or in ranks that are forked."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch

from tests.support.forked import wait_for
from tests.support.ports import free_port
from tests.trainers.ranks import ROOT, forks_of

EXAMPLES = ROOT / "docs" / "examples"
IMPORTED_BY_RANKS = (
    "torch.distributed",
    "torch.nn.parallel",
    "torch.utils.data",
    "sklearn.datasets",
    "sklearn.metrics",
    "lightning.pytorch",
    "transformers.models.llama.modeling_llama",
    "transformers.trainer",
)


def torchrun(world_size: int) -> list[str]:
    """Return the command that starts a script in so many ranks."""
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(world_size)]
    return [*command, "--master-addr", "127.0.0.1", "--master-port", str(free_port())]


def run(folder: Path, launcher: list[str], name: str, *options: Any) -> list[str]:
    """Run an example in a folder; return the lines that it printed."""
    command = [*launcher, str(EXAMPLES / name), *map(str, options)]
    code, said, complaints = ended(folder, command, timeout=180)
    assert not code, said[-3000:] + complaints[-6000:]
    check(folder)
    return said.splitlines()


def ended(folder: Path, command: list[str], timeout: float) -> tuple[int, str, str]:
    """Run a command in a folder; return its code, and what it printed and complained."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "adapters")]),
        "GLOO_SOCKET_IFNAME": "lo",
        "OMP_NUM_THREADS": "1",
        "PYTHONUNBUFFERED": "1",
    }
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=folder, env=environment, **pipes) as process:
        try:
            said, complaints = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.terminate()  # torchrun ends its ranks, which a kill would leave behind
            said, complaints = process.communicate(timeout=60)
    return process.returncode, said, complaints


def in_ranks(folder: Path, world_size: int, name: str, *options: Any) -> list[str]:
    """Run an example in ranks forked from a process that has imported torch for all of them.

    Return the lines that they printed, rank by rank.
    """
    function = f"{__name__}:script"
    words = [str(option) for option in options]
    ranks = forks_of(__name__).ranks(function, folder, world_size, name, words, TIMEOUT="180")
    wait_for(ranks)
    check(folder)
    said = []
    for rank in ranks:
        said += rank.log.read_text().splitlines()[:-2]  # then nothing, and what script returns
        rank.log.unlink()
    return said


def script(name: str, words: list[str]) -> None:
    """Run an example in this process; what it says on stderr is seen where it fails."""
    log = Path(f"{os.environ['RANK']}.log")
    sys.argv = [str(EXAMPLES / name), *words]
    if "lightning" in Path(sys.argv[0]).read_text():
        del os.environ["RANK"]  # which Lightning's own launcher does not set
    errors = os.open(log.with_suffix(".err"), os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
    os.dup2(errors, 2)
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
    except BaseException:
        os.dup2(1, 2)
        sys.stdout.write(log.with_suffix(".err").read_text(errors="replace"))
        raise


def check(folder: Path) -> None:
    """Look that an example left no half-written file, and models that load in one process too."""
    assert not list(folder.glob("*.new"))
    for file in folder.glob("*.pt"):
        saved = torch.load(file)
        assert not [name for name in saved.get("model", saved) if name.startswith("module.")]


def found(pattern: str, lines: list[str]) -> list[tuple[str, ...]]:
    """Return the groups of a pattern in each of the lines that match it."""
    matches = [re.search(pattern, line) for line in lines]
    return [match.groups() for match in matches if match]
