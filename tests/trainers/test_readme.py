"""README's training loop under torchrun, with a rank that comes late, and alone."""

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import torch

from tests.trainers.launching import torchrun
from tests.trainers.ranks import ROOT

RUNNER = ROOT / "tests" / "trainers" / "readme_runs.py"


def ran(folder: Path, launcher: list[str], *stop: int) -> tuple[int, str]:
    """Run the block in a folder until a step of an epoch; return its code and what it printed."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "adapters")]),
        "GLOO_SOCKET_IFNAME": "lo",
        "OMP_NUM_THREADS": "1",
        "PYTHONUNBUFFERED": "1",
    }
    command = [*launcher, str(RUNNER), "train.py", *map(str, stop)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=folder, env=environment, **pipes) as process:
        try:
            said, complaints = process.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            process.terminate()  # torchrun ends its ranks, which a kill would leave behind
            said, complaints = process.communicate(timeout=60)
    assert "Traceback" not in complaints or stop, complaints[-6000:]
    return process.returncode, re.sub(r"loss \d\.\d{3}\n", "loss\n", said)


def reads(folder: Path) -> Counter[tuple[int, int]]:
    """How often each (epoch, sample) was read by all ranks since the last look."""
    torch.manual_seed(0)
    rows = {row[0]: index for index, row in enumerate(torch.randn(1000, 8).tolist())}
    assert len(rows) == 1000
    counts: Counter[tuple[int, int]] = Counter()
    for file in folder.glob("reads-*"):
        lines = [line.split() for line in file.read_text().splitlines()]
        counts.update((int(epoch), rows[float(value)]) for epoch, value in lines)
        file.unlink()
    return counts


def whole(*epochs: int) -> Counter[tuple[int, int]]:
    """Each sample of these epochs once."""
    return Counter((epoch, index) for epoch in epochs for index in range(1000))


def test_training_loop_of_readme(tmp_path: Path) -> None:
    """Two ranks, one late, are killed in epoch 1; three go on, are killed; one does the rest."""
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    (tmp_path / "train.py").write_text(block)
    alone = [sys.executable]

    code, said = ran(tmp_path, torchrun(2), 1, 5)
    first = reads(tmp_path)
    assert (1, "epoch 0: loss\n") == (code, said)
    assert whole(0) == Counter({read: n for read, n in first.items() if read[0] == 0})
    assert 1 == max(first.values())

    code, said = ran(tmp_path, torchrun(3), 2, 7)
    then = reads(tmp_path)
    assert (1, "epoch 1: loss\n") == (code, said)
    assert whole(1) == Counter({read: n for read, n in then.items() if read[0] == 1})

    assert (0, "epoch 2: loss\n") == ran(tmp_path, alone)
    assert whole(2) == reads(tmp_path)
    assert (0, "") == ran(tmp_path, torchrun(2))
    assert not reads(tmp_path)
