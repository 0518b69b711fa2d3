"""Inside a fresh process: run one loader on the histories that it is given."""

from __future__ import annotations

import logging
import tempfile
import warnings
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.runs.counting import Tally
from tests.runs.histories import KINDS, History, history
from tests.runs.loaders import NAMES, Entry
from tests.runs.running import play


def torture(entry: Entry, loader: ModuleType, histories: Iterable[History]) -> dict[str, Tally]:
    """Deal histories to a loader; return the counts of each kind."""
    tallies = {kind: Tally() for kind in KINDS}
    with tempfile.TemporaryDirectory() as root:
        for each in histories:
            folder = Path(root) / str(each.n)
            if not folder.exists():
                folder.mkdir()
                getattr(loader, "write", lambda *_: None)(str(folder), each.n)
            outcome = play(loader.Loader, each, str(folder), forked=entry.forked)
            tallies[each.kind].add(each, outcome, entry)
    return tallies


def share(name: str, job: int, jobs: int, plain: int, with_workers: int) -> dict[str, Any]:
    """Return the counts of one loader, of every `jobs`-th history from `job` on."""
    import torch

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # more workers than cores, and deprecated calls of loaders
    logging.disable(logging.WARNING)
    entry = NAMES[name]
    result: dict[str, Any] = entry.standing()
    if result["missing"]:
        return result
    for key, count in {"plain": plain, "with_workers": with_workers}.items():
        numbers = range(job, count, jobs)
        dealt = (history(number, with_workers=key == "with_workers") for number in numbers)
        tallies = torture(entry, entry.load(), dealt)
        result[key] = {kind: tally.to_dict() for kind, tally in tallies.items()}
    return result
