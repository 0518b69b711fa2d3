"""Builders that tests kill: real saves of a few plans, each in a child of one warm process.

Python and numba take half a second to start; a fork of a process that has done so takes none.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
import tempfile
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import indexplan as ip
from tests.support.bins import Bins


@dataclass(frozen=True)
class Kind:
    """A plan to build, and how it is cut into files."""

    plan: ip.Plan
    epochs: int
    units_per_chunk: int

    def save(self, path: str | Path, **options: Any) -> ip.types.Saved:
        """Build the plan directory."""
        epochs = range(self.epochs)
        each = self.units_per_chunk
        return ip.save(self.plan, path, epochs=epochs, units_per_chunk=each, **options)


KINDS = {
    # 4 chunks, two of them of two blocks, so that there is time in mid-file
    "large": Kind(
        ip.Plan(ip.Shuffle(1_300_000, seed=1), world_size=2, batch_size=64), 2, 1_100_000
    ),
    # 12 chunks of one block
    "many": Kind(ip.Plan(ip.Shuffle(6000, seed=2), world_size=2, batch_size=64), 2, 1000),
    # 5 chunks of indices and 5 of offsets
    "bins": Kind(ip.Plan(Bins(1000), world_size=2, batch_size=64), 1, 100),
    # one chunk: every call can be counted
    "tiny": Kind(ip.Plan(ip.Shuffle(100, seed=3), world_size=2, batch_size=4), 1, 100),
}


def warm() -> None:
    """Import and compile all that children need, so that they inherit it."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("tiny", "bins"):
            KINDS[name].save(Path(folder) / name)
            assert ip.verify(ip.load(Path(folder) / name)).ok


def fork(run: Callable[[], object]) -> int:
    """Run a function in a child, which exits with 0, or with 1 and a traceback; return its pid."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            run()
            code = 0
        except BaseException:  # a child never returns to its parent's code
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    return pid


def answer(run: Callable[[], str]) -> str | None:
    """Run a function in a child; return its answer, or None if it failed."""
    inside, outside = os.pipe()
    pid = fork(lambda: os.write(outside, run().encode()))
    os.close(outside)
    with os.fdopen(inside) as pipe:
        text = pipe.read()
    return text if ended(pid) == 0 else None


def ended(pid: int) -> int:
    """Wait for a child; return its exit code, or minus the signal that killed it."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def digests(root: Path) -> dict[str, str]:
    """The sha256 of every file of a plan directory, hidden and temporary ones too, by name."""
    return {
        str(file.relative_to(root)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in root.rglob("*")
        if file.is_file()
    }


def looked_at(kind: Kind, root: Path) -> str:
    """What a reader gets: how far a half-built plan says it is, or the right plan, checked."""
    allowed = {
        "nothing there": f"{root} must be a plan directory; got nothing there; check the path, or "
        "build it with `indexplan build`",
        "a folder": f"{root} must be a plan directory; got a folder without plan.json; check "
        "the path",
        "half-built": rf"{root} must have all of its \d+ files; got none named "
        r"[\w/.-]+; run the same build again, or each of its parts",
    }
    try:
        plan = ip.load(root)
    except ip.PlanFileError as error:
        (answer,) = [
            answer for answer, message in allowed.items() if re.fullmatch(message, str(error))
        ]
        return answer
    assert kind.plan == plan
    for epoch in range(kind.epochs):
        last = plan.steps(epoch).stop - 1
        for step in (0, last // 2, last):
            expected = kind.plan.batch(epoch, step=step, rank=1).tolist()
            assert expected == plan.batch(epoch, step=step, rank=1).tolist()
    return "the right plan"


def check_finished(kind: Kind, root: Path, expected: dict[str, str]) -> None:
    """Run a build undisturbed; check that its bytes are those of `expected`, and verify them."""
    kind.save(root)
    found = digests(root)
    different = sorted(set(found.items()) ^ set(expected.items()))
    assert expected == found, f"{root} differs: {different}"
    report = ip.verify(ip.load(root))
    assert report.ok, str(report)
