"""How Hypothesis runs, and which tests: without `-m`, or a file or folder, those not `slow`.

There are no deadlines, and 10 examples of each law, other ones each time. Under CI it draws 15, the
same every time. `--hypothesis-profile=deep` draws 60, `thorough` 2,000, `few` 8, and `seen`, with
which `tests.variants` shows that wrong variants are seen, 30.
"""

from __future__ import annotations

import atexit
import gc
import multiprocessing
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies

os.environ["COLUMNS"] = "80"  # tables are as wide, and help, wherever the tests are run

# The tests start hundreds of processes, which share compiled sources as they share numba's cache,
# where an image forbids the first alone too: 0.2 s for each process, 15 s to collect all tests.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# torch's threads spin while they wait for each other, which costs the tests beside them more than
# small tensors gain: 46 s of CPU for README's loop and loaders' histories, 18 s with one thread.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Large tables that orders derive are kept for other processes, not for other runs of the tests.
if "INDEXPLAN_CACHE" not in os.environ:
    os.environ["INDEXPLAN_CACHE"] = tempfile.mkdtemp(prefix="indexplan-tests-")
    atexit.register(shutil.rmtree, os.environ["INDEXPLAN_CACHE"], ignore_errors=True)

# A process has one such server, whichever test needs it first.
multiprocessing.set_forkserver_preload(["pytest", "tests.support.warmed"])

gc.disable()  # until all tests are collected, where they are run

settings.register_profile(
    "indexplan",
    deadline=None,  # the first example may compile a kernel
    print_blob=True,
    max_examples=15 if "CI" in os.environ else 10,
    derandomize="CI" in os.environ,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile("deep", settings.get_profile("indexplan"), max_examples=60)
settings.register_profile("thorough", settings.get_profile("indexplan"), max_examples=2000)
settings.register_profile("seen", settings.get_profile("indexplan"), max_examples=30)
settings.register_profile("few", settings.get_profile("indexplan"), max_examples=8)
settings.load_profile("indexplan")


# Bare, and above all else in a file or in its folder's conftest.py: the marker of its stage.
STAGE = re.compile(r"^pytestmark = \[?\s*pytest\.mark\.(?!slow\b)(\w+)\b(?!\()", re.MULTILINE)


@cache
def stage_of(path: Path) -> str | None:
    """Return the marker of a test file or a folder, which names what `.ci/run` installs for it."""
    files = (path, path.parent / "conftest.py") if path.suffix else (path / "conftest.py",)
    found = (STAGE.search(file.read_text()) for file in files if file.exists())
    return next((each[1] for each in found if each), None)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import a stage's files only if `-m`, or the file or its folder by name, asks for them.

    What they import may not be installed, so that pytest could not even list their tests. Nor are
    files imported that have nothing slow, where `-m` asks for that.
    """
    if not collection_path.match("*.py"):
        return None
    stages = {line.split(":")[0] for line in config.getini("markers") if ": stage" in line}
    words = set(re.findall(r"(?<!not )\b\w+", config.option.markexpr))
    named = {stage_of(config.rootpath / name.split("::")[0]) for name in config.args}
    stage = stage_of(collection_path)
    assert stage in {None, *stages}, f"{collection_path}: no stage {stage} runs its tests"
    if stage is None and "slow" in words:
        return "mark.slow" not in collection_path.read_text() or None
    return stage not in (stages & words or named) or None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is in a stage's folder, and see that what is slow is found."""
    for item in items:
        if stage := stage_of(item.path):
            item.add_marker(stage)
        elif item.get_closest_marker("slow"):  # else `-m slow` would not import the file
            assert "mark.slow" in item.path.read_text(), f"{item.path} must say pytest.mark.slow"


def pytest_configure(config: pytest.Config) -> None:
    """Choose tests where nobody has; and compile."""
    if config.args_source is config.ArgsSource.TESTPATHS and not config.option.markexpr:
        config.option.markexpr = "not slow"
    compile_a_part()


def compile_a_part() -> None:
    """Compile a part of the kernels in each worker of pytest-xdist, as tests need all of them.

    Else workers that begin at the same time with a cold cache compile the same kernels. Of each two
    workers, one begins at the first kernel and one at the last: they meet where both are done, and
    neither waits in a test for what the other compiles.
    """
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return
    from indexplan import kernels

    for module in iter_modules(kernels.__path__):
        getattr(kernels, module.name)  # makes its kernels known
    pair, last = divmod(int(os.environ["PYTEST_XDIST_WORKER"].removeprefix("gw")), 2)
    pairs = (int(os.environ["PYTEST_XDIST_WORKER_COUNT"]) + 1) // 2
    found = kernels.compiling.KERNELS[pair::pairs]
    for kernel in reversed(found) if last else found:
        kernel.compile()


def pytest_collection_finish() -> None:
    """Look for garbage among what tests make, not among imports, which takes 0.3 s each time."""
    # Hypothesis warns of a random generator that nothing holds as far as gc.get_referrers sees: its
    # own, on Python 3.14 and with the same examples each time, if the first law comes later.
    settings(max_examples=1, database=None)(given(strategies.none())(lambda _: None))()
    gc.freeze()
    gc.enable()


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, which is empty."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str]) -> Any:
    """The command line, a `Shell` of tests/support/shell.py."""
    from tests.support.shell import Shell

    return Shell(capsys)


@pytest.fixture
def place() -> Iterator[Path]:
    """An empty folder that other users may enter; pytest's own is closed whenever one starts."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture
def precious(place: Path) -> Iterator[Path]:
    """A file of the user's, of a chunk's size, which nothing may be written to."""
    (place / "mine").mkdir()
    path = place / "mine/file"
    path.write_bytes(b"precious" * 144)
    yield path
    assert [path] == [*path.parent.iterdir()]
    assert b"precious" * 144 == path.read_bytes()
