"""README's block of Python as torchrun and python start it, with a note of what each rank reads.

    torchrun --nproc-per-node 2 tests/trainers/readme_runs.py train.py 1 5

runs train.py with the last rank late at its look for a checkpoint, and killed at step 5 of epoch 1.
"""

import os
import sys
import time
from pathlib import Path
from typing import Any

import torch

LATE = 3.0  # seconds


def main() -> None:
    """Run the block, with what each batch holds in a file of the rank's own."""
    rank, ranks = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    code = Path(sys.argv[1]).read_text()
    stop = tuple(map(int, sys.argv[2:]))
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
    exec(compile(f"{first}late()\n{look}{rest}", sys.argv[1], "exec"), names)  # noqa: S102 (ours)


def late() -> None:
    """Come late; but no later than a checkpoint that somebody has saved meanwhile."""
    until = time.monotonic() + LATE
    while time.monotonic() < until and not Path("run.pt").exists():
        time.sleep(0.05)


if __name__ == "__main__":
    main()
