"""Build what a release would upload, twice, and check it: `python -m tests.release FOLDER`.

FOLDER gets an sdist of the commit that is checked out, and the wheel that is built from the sdist.
Both builds must agree to the byte, and `twine check` must accept them. `python -m tests.platforms`
installs that wheel into bare environments, from the oldest Python to the newest.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

TOP = Path(__file__).parents[1]


def build(folder: Path) -> list[Path]:
    """Build the sdist of HEAD, and the wheel from it, into a folder; return their paths."""
    when = ["git", "log", "-1", "--format=%ct"]
    date = subprocess.run(when, cwd=TOP, check=True, capture_output=True, text=True).stdout
    environment = {**os.environ, "SOURCE_DATE_EPOCH": date.strip()}
    with tempfile.TemporaryDirectory() as source, tempfile.TemporaryDirectory() as unpacked:
        archive = f'git -C "{TOP}" archive HEAD | tar -x -C "{source}"'
        subprocess.run([*["bash", "-o", "pipefail", "-c"], archive], check=True)
        hatch = [sys.executable, "-m", "hatchling", "build", "-d", str(folder.resolve()), "-t"]
        subprocess.run([*hatch, "sdist"], cwd=source, check=True, env=environment)
        (sdist,) = folder.glob("*.tar.gz")
        with tarfile.open(sdist) as packed:
            packed.extractall(unpacked, filter="data")
        (root,) = Path(unpacked).iterdir()
        subprocess.run([*hatch, "wheel"], cwd=root, check=True, env=environment)
    (wheel,) = folder.glob("*.whl")
    return [sdist, wheel]


def main(name: str) -> None:
    """Build twice, compare, check, and print names, sizes and digests."""
    folder = Path(name)
    folder.mkdir(parents=True)
    built = build(folder)
    with tempfile.TemporaryDirectory() as other:
        for one, again in zip(built, build(Path(other)), strict=True):
            if one.read_bytes() != again.read_bytes():
                raise SystemExit(f"{one.name} is not the same when it is built again")
    subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *built], check=True)
    for each in built:
        data = each.read_bytes()
        sys.stdout.write(f"{hashlib.sha256(data).hexdigest()}  {len(data):9,} B  {each.name}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
