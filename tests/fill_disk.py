"""Build on disks that are really full: `python -m tests.fill_disk`, each a tmpfs of its own size.

Mounting needs a namespace (`unshare` of util-linux), which some systems forbid; therefore this is
a script. The tests make the kernel refuse calls instead, which works everywhere. Exits with 1 at
the first difference.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import indexplan as ip
from tests.support.builders import KINDS, check_finished, digests

KIND = KINDS["large"]
STEP = 256  # KiB


def fill(folder: Path, kib: int, expected: dict[str, str]) -> bool:
    """Build on a disk of this size; if it was too small, on a larger one. Return if it was."""
    disk = folder / "disk"
    disk.mkdir(exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "tmpfs", disk, "-o"]
    subprocess.run([*mount, f"size={kib}k"], check=True)
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
    print(  # noqa: T201 (a script's output)
        f"{len(sizes)} disks of {sizes[0]} to {sizes[-1]} KiB, {sum(full)} of them too small: "
        "clean errors, whole files; with more space, the bytes of an undisturbed build"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
