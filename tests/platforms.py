"""README's main command, and tests, on the oldest and the newest Python, NumPy and numba.

They see the wheel that a release would upload (tests/release.py), and nothing of the sources.

`python -m tests.platforms` runs all of PLATFORMS, one after the other, and `python -m
tests.platforms oldest newest` these: in a fresh folder, as a newcomer would, with nothing of this
checkout but what git has. torch is not installed, as only one Python of them has a build of it
without CUDA; so the tests of what needs it are left out.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from tests import release
from tests.on_aarch64 import GOLDENS
from tests.support.debian import unpack

TOP = Path(__file__).parents[1]

# Laws are tested elsewhere: here, that answers and files are the same, and that nothing is missing.
BITS = [
    *(node for nodes in GOLDENS.values() for node in nodes),
    *("tests/files/test_files.py", "tests/test_import.py::test_import_needs_only_numpy"),
]
FILES = [
    *("tests/orders/test_every_order.py", "tests/kernels/test_permutation.py"),
    *(f"tests/files/test_{name}.py" for name in ("builds", "export", "verify_files")),
    "tests/stores/test_cache.py",
    *("tests/shards/test_dataset.py", "tests/shards/test_shard_loader.py"),
]


class Platform(NamedTuple):
    """A Python, what pip may choose for it (or the newest), and the tests that are run there."""

    python: str
    constraints: list[str]
    tests: list[str]


OLDEST = ["numpy==1.24.0", "numba==0.59.0"]
PLATFORMS = {
    "oldest": Platform("3.11", OLDEST, [*BITS, *FILES, "tests/together/test_compiling.py"]),
    "3.12": Platform("3.12", [], BITS),
    "3.13": Platform("3.13", [], BITS),
    # numba 0.68 has no wheels for 3.15. NumPy and numba are those of 3.11: only Python is newer
    "newest": Platform("3.14", [], [*BITS, *FILES]),
}
SUITES = {"3.14": "forky"}  # the Debian that has it, for machines that have none

# NumPy and numba are the newest on purpose, what users get who install today. What runs the tests
# is not: it stays the same on all platforms.
TOOLS = "pytest==9.2.0 pytest-xdist==3.8.0 hypothesis==6.168.5 xxhash==4.1.0"
TOOLS += " pyarrow==25.0.1 fsspec==2026.9.0"
VERSIONS = (
    "import platform, numpy, numba; "
    "print('Python', platform.python_version(), 'NumPy', numpy.__version__, 'numba', "
    "numba.__version__, platform.machine(), flush=True)"
)


def main(names: list[str]) -> None:
    """Run the platforms of these names, or all of them."""
    with tempfile.TemporaryDirectory() as folder:
        _, wheel = release.build(Path(folder))
        passed = [passes(name, wheel) for name in names or PLATFORMS]
    if not all(passed):
        raise SystemExit(1)


def passes(name: str, wheel: Path) -> bool:
    """Run a platform, print what it printed, and return whether all of it passed."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="platform-") as folder:
        done = run(PLATFORMS[name], wheel, Path(folder))
    said = "passed" if done.returncode == 0 else "FAILED"
    head = f"-- {name}: Python {PLATFORMS[name].python}, {said} in"
    sys.stdout.write(f"{head} {time.monotonic() - began:.0f} s\n{done.stdout}")
    sys.stdout.flush()
    return done.returncode == 0


def run(platform: Platform, wheel: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Install the wheel, run README's main command and the tests."""
    found = interpreter(platform.python)
    if found:
        root, python, enter = folder, found, []
    else:
        root, python = folder / "root", f"/usr/bin/python{platform.python}"
        enter = debian(root, platform.python)
    project = root / "project"
    project.mkdir(parents=True)
    archive = f'git -C "{TOP}" archive HEAD | tar -x -C "{project}"'
    subprocess.run([*["bash", "-o", "pipefail", "-c"], archive], check=True)
    for sources in ("indexplan", "adapters"):
        shutil.rmtree(project / sources)
    shutil.copy(wheel, project)
    (project / "bin").mkdir()
    (project / "bin" / "python3").symlink_to(python)
    (project / "constraints.txt").write_text("\n".join(platform.constraints))
    (project / "script").write_text(script(platform.tests, wheel.name))
    inside = "/project" if enter else str(project)
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    environment |= {
        "HOME": inside,
        "PATH": f"{inside}/bin:{'/usr/bin:/usr/sbin' if enter else os.environ['PATH']}",
        "PIP_CONSTRAINT": f"{inside}/constraints.txt",
        "NUMBA_CACHE_DIR": f"{inside}/numba-cache",
    }
    if not enter:  # in a folder of both, another pytest would take away what a test lets users do
        folder.chmod(0o755)
        environment["PYTEST_DEBUG_TEMPROOT"] = str(folder)
    return subprocess.run(
        [*enter, "bash", "-euo", "pipefail", "-c", f"cd {inside} && . ./script"],
        check=False,
        env=environment,
        cwd=project,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def script(tests: list[str], wheel: str) -> str:
    """Return what is run in the project's folder."""
    lines = (TOP / "README.md").read_text().split("<!-- main command -->\n```sh\n")[1]
    command = lines.split("```")[0].replace('".[cli]"', f'"./{wheel}[cli]"')
    return f"""{command}
python -c "{VERSIONS}"
pip install -q "./{wheel}[plot]" {TOOLS}
python -m pytest -q -n 2 --hypothesis-profile=few -m "not slow" {" ".join(tests)}
"""


def interpreter(version: str) -> str | None:
    """Return the path of a Python of that version, on PATH or of pyenv, if there is one."""
    paths = [shutil.which(f"python{version}")]
    if shutil.which("pyenv"):
        latest = said("pyenv", "latest", version)
        paths.append(latest and f"{said('pyenv', 'prefix', latest)}/bin/python{version}")
    for path in filter(None, paths):
        # a shim of pyenv is there, and refuses, for a version that is not chosen
        real = said(path, "-c", "import sys; print(sys.executable)")
        if real:
            return real
    if version not in SUITES:
        raise SystemExit(f"python{version} is missing, on PATH and in pyenv: install it")
    return None


def said(*command: str) -> str:
    """Return what a command prints, or nothing if it fails."""
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""


def debian(root: Path, version: str) -> list[str]:
    """Unpack Debian's Python of that version; return the command that runs another in it."""
    packages = [f"python{version}-venv", "bash", "coreutils", "dash", "libstdc++6"]
    unpack(root, SUITES[version], said("dpkg", "--print-architecture"), packages)
    for name in ("/etc/resolv.conf", "/etc/ssl/certs/ca-certificates.crt", "/etc/pip.conf"):
        if Path(name).exists():  # how pip finds its index
            (root / name[1:]).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(name, root / name[1:])
    unshare = ["unshare", "--mount", *(["-r", "--pid", "--fork"] if os.geteuid() else [])]
    return [
        *unshare,
        "sh",
        "-c",
        f'mount -t proc proc "{root}/proc" && exec chroot "{root}" "$@"',
        "-",
    ]


if __name__ == "__main__":
    main(sys.argv[1:])
