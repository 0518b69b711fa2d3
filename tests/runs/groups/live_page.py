"""The table of groups that come and go under torchft."""

from __future__ import annotations

from typing import Any

from tests.runs.groups import LOADERS
from tests.runs.groups.live import BATCH, GROUPS, HALF, KINDS, SAMPLES, STEPS
from tests.runs.results import Block, tabular

TITLE = "Groups that die and come back"
WORDS = (
    f"{GROUPS} groups of a [torchft](../../docs/live.md) run, each a process, read an epoch of "
    f"{SAMPLES:,} samples, {BATCH} each in a step, and one of them is killed in the forward pass "
    f"of step {HALF}. A run ends after {STEPS} steps that count, as many as the epoch has. A "
    "sample is read if its gradient counts. It doesn't if the step fails, in torchft's first step, "
    "or while torchft sends weights to the group; torchft's sampler has then moved past its "
    "samples, and a LiveLoader reads them in a later step. A group that reads all of its part "
    "by torchft's sampler begins it again."
)


def blocks(records: dict[str, Any]) -> list[Block]:
    """Return the blocks of the results."""
    cells = []
    for each in LOADERS:
        record = records[each.name]
        counts = (record["counts"][kind] for kind in KINDS)
        outcomes = (outcome(each) for each in counts)
        cells.append((each.name, record["version"], each.setup, *outcomes))
    words = " | ".join(words for words, _ in KINDS.values())
    return tabular(f"loader | version | set up | {words}", cells, "l")


def outcome(counts: dict[str, Any]) -> str:
    """Write what a run lost and read twice."""
    lost, twice = counts["lost"], counts["twice"]
    return f"**{lost} lost, {twice} twice**" if lost or twice else "exact"
