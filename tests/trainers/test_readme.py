"""README's training loop under torchrun, with a rank that comes late, and alone."""

import re
import sys
from collections import Counter
from pathlib import Path

import torch

from tests.trainers.launching import ended, torchrun
from tests.trainers.ranks import ROOT

RUNNER = ROOT / "tests" / "trainers" / "readme_runs.py"


def ran(folder: Path, launcher: list[str], *stop: int) -> tuple[int, str]:
    """Run the block in a folder until a step of an epoch; return its code and what it printed."""
    command = [*launcher, str(RUNNER), "train.py", *map(str, stop)]
    code, said, complaints = ended(folder, command, timeout=120)
    assert "Traceback" not in complaints or stop, complaints[-6000:]
    return code, re.sub(r"loss \d\.\d{3}\n", "loss\n", said)


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
