"""The tables of groups that come and go under torchft: all numbers in them are of one run."""

from __future__ import annotations

import textwrap
from typing import Any

from benchmarks.contenders.groups import LOADERS
from benchmarks.measure.fresh import ROOT
from benchmarks.render.writer import markdown
from benchmarks.torture.live import BATCH, GROUPS, HALF, KINDS, SAMPLES, STEPS
from benchmarks.torture.through_page import put

PAGE = ROOT / "docs" / "torture.md"


def table(records: dict[str, Any]) -> list[str]:
    """Return what the page has between its marks."""
    cells = []
    for each in LOADERS:
        record = records[each.name]
        counts = (record["counts"][kind] for kind in KINDS)
        outcomes = (outcome(each) for each in counts)
        cells.append((each.name, record["version"], each.setup, *outcomes))
    words = " | ".join(words for words, _ in KINDS.values())
    return [
        *textwrap.wrap(
            f"{GROUPS} groups of a [torchft](live.md) run, each a process, read an epoch of "
            f"{SAMPLES:,} samples, {BATCH} each in a step, and one of them is killed in the "
            f"forward pass of step {HALF}. A run ends after {STEPS} steps that count, as many as "
            "the epoch has. A sample is read if its gradient counts. It doesn't if the step fails, "
            "in torchft's first step, or while torchft sends weights to the group; torchft's "
            "sampler has then moved past its samples, and a LiveLoader reads them in a later "
            "step. A group that reads all of its part by torchft's sampler begins it again.",
            width=100,
        ),
        "",
        *markdown(f"loader | version | set up | {words}", cells, "l"),
    ]


def outcome(counts: dict[str, Any]) -> str:
    """Write what a run lost and read twice."""
    lost, twice = counts["lost"], counts["twice"]
    return f"**{lost} lost, {twice} twice**" if lost or twice else "exact"


def write(records: dict[str, Any]) -> None:
    """Bring the page up to date."""
    PAGE.write_text(put(PAGE.read_text(), table(records), "live"))
