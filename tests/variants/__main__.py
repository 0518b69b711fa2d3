"""Plants wrong variants of the code, one at a time, and shows that the tests of their laws fail.

    python -m tests.variants                  all of them
    python -m tests.variants orders weighted  those with a word in their room, file or sentence

It works in a copy of the files that git lists, so the tree stays as it is. The exit status is 1 if
a variant was NOT SEEN, or if the tests fail without it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from importlib.util import find_spec
from itertools import count
from pathlib import Path

from tests.variants.table import TOP, Law, laws

PATIENCE = 600  # seconds for the tests of a variant, which may make them hang
LATER = count(1)


def copied(folder: Path) -> None:
    """Copy what git lists, and new files, with their times, by which numba knows them again."""
    said = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(said, cwd=TOP, capture_output=True, check=True).stdout
    for name in listed.decode().split("\0"):
        if name and (TOP / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(TOP / name, folder / name)


def tested(folder: Path, tests: Iterable[str], log: Path) -> int | None:
    """Return pytest's exit status, or None if it took too long; what it said is in the log."""
    given = [os.environ["PYTHONPATH"]] if os.environ.get("PYTHONPATH") else []
    path = os.pathsep.join([str(folder), str(folder / "adapters"), *given])
    # CI: the same examples are drawn each time. The caches are the copy's own.
    here = {"PYTHONPATH": path, "CI": "true", "NUMBA_CACHE_DIR": str(folder / ".numba")}
    here["INDEXPLAN_CACHE"] = tempfile.mkdtemp(dir=folder)
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
    command += ["--hypothesis-profile=seen", *tests]
    with log.open("a") as out:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, **here},
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
        try:
            return process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            return None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def seen(folder: Path, law: Law, log: Path) -> str:
    """Plant a variant, run its tests and take it out again; say what was seen."""
    path = folder / law.file
    text, times = path.read_text(), path.stat()
    path.write_text(law.plant(text))
    # Python knows a compiled file again by whole seconds and its size: no two share a time.
    os.utime(path, (times.st_atime, time.time() + next(LATER)))
    try:
        code = tested(folder, law.tests, log)
    finally:
        path.write_text(text)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    answers = {1: "failed as it must", 0: "NOT SEEN", None: f"HUNG for {PATIENCE} s"}
    return answers.get(code, f"NOT SEEN: pytest ended with {code}, before any test failed")


def say(text: str) -> None:
    """Print a line at once, for whoever waits."""
    print(text, flush=True)  # noqa: T201 (the output)


def main() -> int:
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.variants", description=__doc__)
    parser.add_argument("words", nargs="*", help="of the room, file or sentence of a law")
    words = "leave out the tests as they are, without a variant"
    parser.add_argument("--planted-only", action="store_true", help=words)
    parser.add_argument("--folder", type=Path, help="where the copy stays; it saves compiling")
    given = parser.parse_args()
    chosen = [
        law
        for law in laws()
        if not given.words or any(w in f"{law.room} {law.file} {law.says}" for w in given.words)
    ]
    folder = given.folder or Path(tempfile.mkdtemp(prefix="variants-"))
    folder.mkdir(exist_ok=True)
    log = folder / "variants.log"
    copied(folder)
    ready = [law for law in chosen if all(find_spec(name) for name in law.needs)]
    bad = 0
    if not given.planted_only:
        tests = dict.fromkeys(test for law in ready for test in law.tests)
        code = tested(folder, tests, log)
        bad = code != 0
        say(f"without a variant the tests {'pass' if code == 0 else f'FAIL; see {log}'}")
    for law in chosen:
        began = time.monotonic()
        said = seen(folder, law, log) if law in ready else f"SKIPPED, needs {' '.join(law.needs)}"
        bad += not said.startswith(("failed", "SKIPPED"))
        took = f"{time.monotonic() - began:4.0f} s"
        say(f"{said:18} {took}  {law.room}: {law.says}\n{'':26}{law.file}")
    say(f"{len(chosen)} laws, {len(chosen) - len(ready)} skipped, {bad} not held")
    if not given.folder:
        shutil.rmtree(folder)
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
