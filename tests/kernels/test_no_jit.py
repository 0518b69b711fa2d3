"""With NUMBA_DISABLE_JIT=1 everything works, slowly: for whoever steps through a kernel."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]

SCRIPT = """
import json
import indexplan as ip
from indexplan.cli import main
from tests.support.bins import Bins

answers = []
mixture = ip.Mixture({"a": ip.Shuffle(200), "b": ip.Shuffle(50)}, {"a": 3, "b": 1})
block_shuffle = ip.BlockShuffle(300, block_size=16, window=4)
for order in (ip.Shuffle(300, seed=2**70), block_shuffle, mixture, Bins(50)):
    plan = ip.Plan(order, world_size=3, batch_size=7)
    name = f"{type(order).__name__}.plan"
    ip.save(plan, name, epochs=[0, 1])
    stored = ip.load(name, check="touched")
    answers += [plan.batch(2, step=0, rank=1).tolist(), stored.batch(1, step=0, rank=1).tolist()]
    answers += [order.locate(1, range(20)).tolist() if not order.deals_bins else None]
    answers += [ip.verify(stored).ok, main(["verify", name])]
    answers += [main(["show", name]), main(["warm-up"]) if name == "Bins.plan" else None]
print(json.dumps(answers))
"""


def answers(folder: Path, **environ: str) -> Any:
    """Return the answers of a process of its own."""
    folder.mkdir()
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT],
        env={**os.environ, "PYTHONPATH": str(ROOT), **environ},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert 0 == done.returncode, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_plain_functions_give_the_same_answers(tmp_path: Path) -> None:
    """Orders, builds, checks and commands answer as with kernels; warm-up alone has to complain."""
    *with_kernels, warm = answers(tmp_path / "compiled")
    *without, cold = answers(tmp_path / "plain", NUMBA_DISABLE_JIT="1")
    assert with_kernels == without
    assert (0, 1) == (warm, cold)
