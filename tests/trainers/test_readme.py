"""README's training loop under torchrun, with a rank that comes late, and on others.

    torchrun --nproc-per-node 2 tests/trainers/test_readme.py 1 5

runs train.py, a copy of the loop, with a note of what each rank reads; the last rank is late at its
look for a checkpoint, and killed at step 5 of epoch 1.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import torch

from tests.support.forked import wait_for
from tests.trainers.launching import ended, torchrun
from tests.trainers.ranks import ROOT, forks_of

LATE = 3.0  # seconds


def ran(folder: Path, world_size: int, *stop: int) -> tuple[int, str]:
    """Run the block in a folder until a step of an epoch; return its code and what it printed.

    Two ranks that are stopped are torchrun's; others are forked, as interpreters take seconds.
    """
    if world_size == 2 and stop:
        code, said, _ = ended(folder, [*torchrun(2), __file__, *map(str, stop)], timeout=120)
    else:
        ranks = forks_of(__name__).ranks(f"{__name__}:main", folder, world_size, *stop)
        code = 0
        try:
            wait_for(ranks)
        except AssertionError:
            code = 1
            assert stop, ranks[0].log.read_text()
        said = "".join(rank.log.read_text() for rank in ranks).replace("\nnull\n", "")
    return code, re.sub(r"loss \d\.\d{3}\n", "loss\n", said)


def reads(folder: Path) -> list[tuple[int, int, int]]:
    """What all ranks read since the last look: epoch, the step that comes next, and sample."""
    torch.manual_seed(0)
    rows = {(row[0], row[1]): index for index, row in enumerate(torch.randn(10_000, 8).tolist())}
    assert len(rows) == 10_000
    found = []
    for file in folder.glob("reads-*"):
        for epoch, step, *row in map(str.split, file.read_text().splitlines()):
            found.append((int(epoch), int(step), rows[float(row[0]), float(row[1])]))
        file.unlink()
    return found


def counts(read: list[tuple[int, int, int]], epoch: int) -> Counter[int]:
    """How often each sample was read in an epoch."""
    return Counter(sample for of, _, sample in read if of == epoch)


WHOLE = Counter(range(10_000))
SAVED = ("0, next step 100", "0, next step 0", "1, next step 100")


def test_training_loop_of_readme(tmp_path: Path) -> None:
    """Two ranks, one late, are killed in epoch 1; three go on from its step 100; one does the rest.

    157 steps on two ranks make an epoch, and 105 on three.
    """
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    (tmp_path / "train.py").write_text(block)

    code, said = ran(tmp_path, 2, 1, 120)
    first = reads(tmp_path)
    assert 1 == code
    assert "".join(f"epoch {at}: loss\n" for at in SAVED) == said
    assert counts(first, 0) == WHOLE

    code, said = ran(tmp_path, 3, 2, 7)
    then = reads(tmp_path)
    assert 1 == code
    assert "epoch 1, next step 0: loss\n" == said
    kept = [read for read in first if read[:2] <= (1, 100)]
    assert counts(kept + then, 1) == WHOLE

    code, said = ran(tmp_path, 1)
    assert 0 == code
    assert "epoch 2, next step 0: loss" in said
    assert counts(reads(tmp_path), 2) == WHOLE
    assert (0, "") == ran(tmp_path, 2)
    assert not reads(tmp_path)


# --- in the ranks


def main(*stop: int) -> None:
    """Run the block, with what each batch holds in a file of the rank's own."""
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr] (it may be killed)
    code = Path("train.py").read_text()
    first, look, rest = code.partition("if os.path.exists(")
    assert "exists" not in first + rest
    names: dict[str, Any] = {"__name__": "__main__", "late": late if rank == ranks - 1 else int}

    def note(module: torch.nn.Module, inputs: Any) -> None:
        if not isinstance(module, torch.nn.Linear):
            return  # DistributedDataParallel, which calls the model
        cursor = names["loader"].cursor  # the batch that the loop has counts as received
        if (names["epoch"], cursor.step) == stop:
            os._exit(1)
        with Path(f"reads-{rank}").open("a") as file:
            place = f"{names['epoch']} {cursor.step}"
            file.writelines(f"{place} {row[0]!r} {row[1]!r}\n" for row in inputs[0].tolist())

    torch.nn.modules.module.register_module_forward_pre_hook(note)
    torch.manual_seed(0)  # one dataset for all ranks, as a user's would be
    exec(compile(f"{first}late()\n{look}{rest}", "train.py", "exec"), names)  # noqa: S102 (ours)


def late() -> None:
    """Come late; but no later than a checkpoint that somebody has saved meanwhile."""
    until = time.monotonic() + LATE
    while time.monotonic() < until and not Path("run.pt").exists():
        time.sleep(0.05)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
