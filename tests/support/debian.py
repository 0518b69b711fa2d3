"""The Python of another Debian, or of another machine's Debian, unpacked into a folder."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path


def unpack(root: Path, suite: str, architecture: str, packages: list[str]) -> None:
    """Fill `root` with packages and what they need; nothing is installed, and none is run."""
    need("mmdebstrap")
    subprocess.run(
        [
            *("mmdebstrap", "--quiet", "--variant=extract", "--components=main"),
            # a mirror may lag behind; the signatures are checked all the same
            '--aptopt=Acquire::Check-Valid-Until "false"',
            *(f"--architectures={architecture}", f"--include={','.join(packages)}"),
            *(suite, str(root), _mirror()),
        ],
        check=True,
    )


def _mirror() -> str:
    """Return where this machine's own apt takes Debian's packages from."""
    asked = ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"]
    found = subprocess.run(asked, check=True, capture_output=True, text=True).stdout.split()
    mirrors = [uri for uri in found if "debian" in uri and "security" not in uri]
    if not mirrors:
        raise SystemExit("apt knows no mirror of Debian: add one to its sources")
    return mirrors[0]


def need(command: str, package: str | None = None) -> None:
    """Install the Debian package of a command that is missing."""
    if shutil.which(command):
        return
    package = package or command
    if not shutil.which("apt-get"):
        raise SystemExit(f"{command} is missing, and there is no apt-get: install {package}")
    sudo = ["sudo"] if os.geteuid() else []
    for words in (["update"], ["install", "-y", "--no-install-recommends", package]):
        subprocess.run([*sudo, "apt-get", "-qq", *words], check=True, stdout=subprocess.DEVNULL)
