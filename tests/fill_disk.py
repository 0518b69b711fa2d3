"""Write plans and tables on disks that are really full: `python -m tests.fill_disk`.

Each disk is a tmpfs of its own size.

Mounting needs a namespace (`unshare` of util-linux), which some systems forbid; therefore this is
a script. The tests make the kernel refuse calls instead, which works everywhere. Exits with 1 at
the first difference.
"""

from __future__ import annotations

import gc
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import indexplan as ip
from indexplan.stores import tables
from tests.support.builders import KINDS, check_finished, digests
from tests.support.shared_tables import kept, read_alone, reads, share_all

KIND = KINDS["large"]
STEP = 256  # KiB
COLUMN = np.random.default_rng(0).integers(1, 60, 300_000)  # whose table has 1.2 MB


def mounted(folder: Path, kib: int) -> tuple[Path, list[Any]]:
    """Return a disk of this size, and what mounts another one."""
    disk = folder / "disk"
    disk.mkdir(exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "tmpfs", disk, "-o"]
    subprocess.run([*mount, f"size={kib}k"], check=True)
    return disk, mount


def fill_cache(folder: Path, kib: int, expected: list[Any]) -> bool:
    """Read an order whose table is kept on a disk of this size. Return if that was too small."""
    disk, mount = mounted(folder, kib)
    share_all(str(disk))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert expected == read_alone("Packed", COLUMN)
    full = bool(said)
    assert full is not bool(kept(disk))
    assert ["No space left on device" in str(each.message) for each in said] == [True] * full
    assert not [path for path in disk.rglob(".*") if path.is_file()]
    subprocess.run([*mount, "remount,size=64m"], check=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert expected == read_alone("Packed", COLUMN)
    assert kept(disk)
    tables.TABLES.clear()
    gc.collect()  # else the disk is busy
    subprocess.run(["umount", disk], check=True)  # noqa: S607
    return full


def fill(folder: Path, kib: int, expected: dict[str, str]) -> bool:
    """Build on a disk of this size; if it was too small, on a larger one. Return if it was."""
    disk, mount = mounted(folder, kib)
    try:
        KIND.save(disk / "a.plan")
    except ip.PlanFileError as error:
        cure = "got 'No space left on device'; free some space, then run it again"
        assert str(error).endswith(cure), error  # noqa: PT017
        full = True
        left = digests(disk / "a.plan") if (disk / "a.plan").exists() else {}
        assert left.items() < expected.items(), sorted(left)
        subprocess.run([*mount, "remount,size=64m"], check=True)
    else:
        full = False
    check_finished(KIND, disk / "a.plan", expected)
    subprocess.run(["umount", disk], check=True)  # noqa: S607
    return full


def main(arguments: Sequence[str]) -> int:
    """Go into a namespace where mounting is allowed, and try disks of many sizes."""
    if not arguments:
        again = [sys.executable, "-m", "tests.fill_disk", "inside"]
        return subprocess.call(["unshare", "--user", "--map-root-user", "--mount", *again])  # noqa: S607
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        num_bytes = KIND.save(folder / "b.plan").num_bytes
        expected = digests(folder / "b.plan")
        sizes = range(4, num_bytes // 1024 + 2 * STEP, STEP)
        full = [fill(folder, kib, expected) for kib in sizes]
        alone = reads("Packed", COLUMN)
        tried = range(4, COLUMN.size * 4 // 1024 + 2 * STEP, STEP // 4)
        small = [fill_cache(folder, kib, alone) for kib in tried]
    print(  # noqa: T201 (a script's output)
        f"{len(sizes)} disks of {sizes[0]} to {sizes[-1]} KiB, {sum(full)} of them too small: "
        "clean errors, whole files; with more space, the bytes of an undisturbed build\n"
        f"{len(tried)} disks for a table, {sum(small)} of them too small: kept in memory, with one "
        "warning; with more space, in a file"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
