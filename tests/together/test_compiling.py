"""Kernels give right answers whatever numba's disk cache does, and repair it where they can.

Every case is a fresh process with two kernel files and a cache folder of its own.
"""

from __future__ import annotations

import json
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.children import NOBODY

ROOT = Path(__file__).parents[2]
ANSWER = 2 * (0 + 1 + 2 + 3)

HELPERS = """
from indexplan.kernels.compiling import helper

@helper
def twice(x):
    return x + x
"""

MODULE = """
from indexplan.kernels.compiling import INT64, READ_INT64, WRITE_INT64, kernel
from helpers import twice

@kernel(READ_INT64)
def total(array):
    result = 0
    for i in range(len(array)):
        result += twice(array[i])
    return result

@kernel(READ_INT64, INT64)
def read(array, place):
    return array[place]

@kernel(INT64)
def wrong(number):
    return number.no_such_attribute
"""

CALL = """
import json, numpy, kernels
print(json.dumps([kernels.total(numpy.arange(4)), kernels.total.origin]))
"""


class Folder:
    """A kernel file, a place for numba's cache, and processes that use them."""

    def __init__(self, path: Path, modules: Path | None = None) -> None:
        self.modules = modules or path / "modules"
        self.cache = path / "cache"
        if modules is None:
            self.modules.mkdir()
            (self.modules / "kernels.py").write_text(MODULE)
            (self.modules / "helpers.py").write_text(HELPERS)
        self.environ = {
            **os.environ,
            "NUMBA_OPT": "0",  # compiles sooner
            "NUMBA_CACHE_DIR": str(self.cache),
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(self.modules)]),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        self.environ.pop("NUMBA_BOUNDSCHECK", None)

    def run(self, script: str = CALL, **environ: str) -> Any:
        """Run a script in a fresh process and return what it prints as JSON."""
        command = [sys.executable, "-W", "error", "-c", script]
        done = subprocess.run(
            command, env={**self.environ, **environ}, capture_output=True, text=True, check=False
        )
        assert (0, "") == (done.returncode, done.stderr)
        return json.loads(done.stdout)

    def files(self, suffix: str) -> list[Path]:
        return sorted(self.cache.rglob(f"kernels.total-*.{suffix}"))


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """A folder whose cache was filled by a first process, to be copied from."""
    folder = Folder(tmp_path_factory.mktemp("compiled"))
    assert COLD == folder.run()
    return folder


@pytest.fixture
def filled(compiled: Folder, tmp_path: Path) -> Folder:
    """The kernel files of that folder, and a copy of its cache."""
    folder = Folder(tmp_path, compiled.modules)
    shutil.copytree(compiled.cache, folder.cache)
    return folder


COLD = [ANSWER, "saved"]
WARM = [ANSWER, "loaded"]
UNSAVED = [ANSWER, "unsaved"]
FULL = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))\n" + CALL
ALL_OF_IT = """
import json, sys, numpy, kernels
answer = kernels.total(numpy.arange(4))
found = kernels.total.folder, "numba.np.linalg" in sys.modules
print(json.dumps([answer, kernels.total.origin, *found]))
"""


def test_a_copied_cache_is_loaded(filled: Folder) -> None:
    """The first process compiles and saves; others load, as long as what they find is whole.

    A warm start does not import what numba needs to compile, such as SciPy's BLAS. With
    NUMBA_BOUNDSCHECK, code without checks is not taken from the cache, nor left in it.
    """
    cached = sorted(filled.cache.rglob("*"))
    assert [1, 1] == [len(filled.files(suffix)) for suffix in ("nbi", "nbc")]
    answer, origin, chosen, linalg = filled.run(ALL_OF_IT)
    assert ([answer, origin], filled.cache, False) == (WARM, Path(chosen).parent, linalg)
    checked = filled.run(ALL_OF_IT, NUMBA_BOUNDSCHECK="1")
    assert [*UNSAVED, None] == checked[:3]
    bounds = """
import json, numpy, kernels
try:
    kernels.total(numpy.arange(4))
    kernels.read(numpy.arange(4), 10**6)
except IndexError:
    print(json.dumps("checked"))
"""
    assert "checked" == filled.run(bounds, NUMBA_BOUNDSCHECK="1")
    assert cached == sorted(filled.cache.rglob("*"))


def test_an_edit_of_a_file_that_is_not_imported_recompiles_nothing(folder: Folder) -> None:
    """A kernel depends on the files that it imports, in whatever form, and on those alone."""
    helpers, others = folder.modules / "helpers.py", folder.modules / "others.py"
    folder.run()
    others.write_text("NUMBER = 1")
    assert WARM == folder.run()
    helpers.write_text(f"from others import (\n    NUMBER,\n)\n{HELPERS}")
    assert COLD == folder.run()
    others.write_text("NUMBER = 2")
    assert COLD == folder.run()


EDITED_LATER = """
import json, numpy, pathlib, kernels
path = pathlib.Path(kernels.__file__).with_name("{name}")
path.write_text(path.read_text().replace("{old}", "{new}"))
print(json.dumps(kernels.total(numpy.arange(4))))
"""


@pytest.mark.parametrize(
    ("name", "old", "new", "answer", "known"),
    [
        ("helpers.py", "x + x", "x + x + x", 18, True),
        ("helpers.py", "x + x", "x + x + x", 18, False),
        ("kernels.py", "result = 0", "result = 7", 19, False),
    ],
)
def test_an_edit_of_any_file_recompiles_every_user(
    name: str, old: str, new: str, answer: int, known: bool, folder: Folder
) -> None:
    """A kernel is compiled anew when its own file or a helper's beside it has changed.

    A process that had imported a file computes as it was then, and what it compiles, if no cache
    has it, is not kept as the edited.
    """
    if known:
        folder.run()
    script = EDITED_LATER.replace("{name}", name).replace("{old}", old).replace("{new}", new)
    assert ANSWER == folder.run(script)
    assert [[answer, "saved"], [answer, "loaded"]] == [folder.run(), folder.run()]


TWO_OF_ONE = """
import json, sys, numpy
from indexplan.kernels.compiling import READ_INT64, READ_UINT32, kernel
from kernels import total
long, short = (kernel(each)(total.py_func) for each in (READ_INT64, READ_UINT32))
print(json.dumps({name}(numpy.arange(4, dtype="{dtype}"))))
"""
LONG = TWO_OF_ONE.replace("{name}", "long").replace("{dtype}", "i8")
SHORT = TWO_OF_ONE.replace("{name}", "short").replace("{dtype}", "u4")


def test_kernels_of_one_function_whose_files_were_mixed_up(folder: Folder) -> None:
    """Two processes that save at once may give both the same file; then it is of one of them."""
    assert ANSWER == folder.run(LONG)
    (file,) = folder.files("nbc")
    other = file.read_bytes()
    shutil.rmtree(folder.cache)
    assert ANSWER == folder.run(SHORT)
    (file,) = folder.files("nbc")
    file.write_bytes(other)
    for script in (SHORT, LONG, SHORT):
        assert ANSWER == folder.run(script)


ON_A_TERMINAL = """
import os, pty, sys
ours, theirs = pty.openpty()
sys.stderr = os.fdopen(theirs, "w")
from indexplan.kernels import compiling
compiling.PATIENCE = 0.0
import json, numpy, kernels
kernels.total(numpy.arange(4))
kernels.read(numpy.arange(4), 1)
print("end", file=sys.stderr, flush=True)
said = ""
while "end" not in said:
    said += os.read(ours, 10_000).decode()
sys.stderr.close()
sys.stderr = sys.__stderr__
print(json.dumps(said.splitlines()))
"""


def test_a_terminal_is_told_once_why_it_waits(folder: Folder) -> None:
    """While kernels are compiled, people see one line that says where the code will be."""
    told, end = folder.run(ON_A_TERMINAL)
    assert told.startswith(f"indexplan: compiling kernels for {folder.cache}")
    assert told.endswith(", which has none of this version for this CPU yet")
    assert "end" == end


NOT_TOLD = """
import json, sys, threading, numpy
from indexplan.kernels import compiling
compiling.PATIENCE = 0.0
said = []

class Logger:  # no method says whether it is a terminal
    def write(self, text):
        said.append(text)

class Terminal(Logger):
    def isatty(self):
        return True

class Lost(Terminal):
    def write(self, text):
        raise OSError(5, "Input/output error")

def start(thread):
    raise RuntimeError("can't start new thread")

threading.excepthook = said.append
{where}
import kernels
answer = kernels.total(numpy.arange(4))
sys.stderr = sys.__stderr__
print(json.dumps([answer, kernels.total.origin, str(said), threading.active_count()]))
"""


@pytest.mark.parametrize(
    "where",
    [
        "sys.stderr = Logger()",
        "sys.stderr = Lost()",
        "sys.stderr, threading.Thread.start = Terminal(), start",
    ],
)
def test_who_cannot_be_told_has_the_kernel(where: str, folder: Folder) -> None:
    """Without a thread for it or a terminal; no thread is left, which forks would warn of."""
    assert [ANSWER, "saved", "[]", 1] == folder.run(NOT_TOLD.replace("{where}", where))


def test_decoration_compiles_nothing(folder: Folder) -> None:
    """Importing lists kernels in their order, and keeps functions as they were written."""
    script = """
import json, kernels
from indexplan.kernels.compiling import KERNELS
plain = kernels.total.py_func([1, 2]), kernels.total.__name__
helper = kernels.twice("a"), type(kernels.twice).__name__
each = [[kernel.name, kernel.origin, kernel.folder] for kernel in KERNELS]
print(json.dumps([each, kernels.total._compiled is None, plain, helper]))
"""
    each = [[name, None, None] for name in ("total", "read", "wrong")]
    assert [each, True, [6, "total"], ["aa", "function"]] == folder.run(script)
    assert not folder.cache.exists()


def scramble(path: Path) -> None:
    path.write_bytes(b"\x80\x05 this is no pickle" * 40)


def test_damaged_cache_is_repaired(filled: Folder) -> None:
    """With damaged or lost files the kernel is compiled again, and the next process loads again."""
    for damage, suffixes in (
        (lambda path: os.truncate(path, path.stat().st_size // 2), ["nbi"]),
        (scramble, ["nbc"]),
        (lambda path: os.truncate(path, 0), ["nbi", "nbc"]),
        (Path.unlink, ["nbc"]),
    ):
        for suffix in suffixes:
            (path,) = filled.files(suffix)
            damage(path)
        assert COLD == filled.run()
    assert WARM == filled.run()


class Trap:
    """Something that makes a folder when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (self.path,)


def test_a_planted_cache_runs(filled: Folder, tmp_path: Path) -> None:
    """The cache is trusted, as SECURITY.md says: what is in its place is unpickled."""
    (path,) = filled.files("nbi")
    path.write_bytes(pickle.dumps(Trap(tmp_path / "sprung")))
    assert COLD == filled.run()
    assert (tmp_path / "sprung").exists()


def test_no_place_for_a_cache(folder: Folder, tmp_path: Path) -> None:
    """Where the chosen folder cannot be made, numba takes another, and the answer is right.

    Where it can write nowhere, and refuses to decorate, the kernel works uncached.
    """
    folder.cache.touch()
    assert COLD == folder.run()
    block = tmp_path / "a_file"
    block.touch()
    shutil.rmtree(folder.modules / "__pycache__", ignore_errors=True)
    (folder.modules / "__pycache__").touch()  # a file, where numba would make a folder
    nowhere = {"NUMBA_CACHE_DIR": f"{block}/cache", "XDG_CACHE_HOME": f"{block}/cache"}
    refused = """
import json, numba, kernels
try:
    numba.njit(cache=True)(kernels.total.py_func)
except RuntimeError as error:
    print(json.dumps("no locator available" in str(error)))
"""
    assert folder.run(refused, HOME=str(block), **nowhere) is True
    assert UNSAVED == folder.run(HOME=str(block), **nowhere)


def test_a_cache_that_may_only_be_read_is_not_used(place: Path) -> None:
    """What docs/starting-up.md says: numba passes over a folder that it cannot write to."""
    folder, home = Folder(place), place / "home"
    home.mkdir()
    home.chmod(0o777)
    assert COLD == folder.run()
    kept = [folder.cache, *folder.cache.rglob("*")]
    for path in kept:
        path.chmod(0o555 if path.is_dir() else 0o444)
    give_up = f"""
import os, numba, kernels
numba.njit(lambda x: x)(1)  # all modules are imported before rights are given up
if os.geteuid() == 0:
    os.setgid({NOBODY})
    os.setuid({NOBODY})
"""
    answer, origin, chosen, _ = folder.run(give_up + ALL_OF_IT, XDG_CACHE_HOME=str(home))
    for path in kept:
        path.chmod(0o755)
    assert (ANSWER, True) == (answer, origin != "unsaved")
    assert not Path(chosen).is_relative_to(folder.cache)


def test_full_disk(folder: Folder) -> None:
    """Where the code cannot be saved, nor a damaged cache be repaired, it is used all the same."""
    assert UNSAVED == folder.run(FULL)
    assert [] == folder.files("nbc")
    for _ in range(2):
        assert [COLD, WARM] == [folder.run(), folder.run()]
        (path,) = folder.files("nbi")
        scramble(path)
        assert UNSAVED == folder.run(FULL)


def test_many_first_calls_at_once(folder: Folder) -> None:
    """Threads that meet at the first call compile once, and all get the answer."""
    script = """
import json, threading, numpy, kernels
from concurrent.futures import ThreadPoolExecutor
barrier = threading.Barrier(8)
def call(_):
    barrier.wait()
    return kernels.total(numpy.arange(4)), id(kernels.total._compiled)
with ThreadPoolExecutor(8) as pool:
    answers = set(pool.map(call, range(8)))
misses = sum(kernels.total._compiled.stats.cache_misses.values())
print(json.dumps([[answer for answer, _ in answers], misses]))
"""
    assert [[ANSWER], 1] == folder.run(script)


def test_the_garbage_collector_pauses_and_is_left_as_it_was(folder: Folder) -> None:
    """Compiling pauses it, with an error too, which each call raises; who paused it keeps it so."""
    script = """
import gc, json
from numba.core import errors, event
import kernels

class Listener(event.Listener):
    def on_start(self, event): seen.append(gc.isenabled())
    def on_end(self, event): seen.append(gc.isenabled())

event.register("numba:compile", Listener())
found, wrong = [], lambda: kernels.wrong(1)
cases = [kernels.total.compile, True], [kernels.read.compile, False], [wrong, True], [wrong, False]
for call, collects in cases:
    seen, said = [], ""
    gc.enable() if collects else gc.disable()
    try:
        call()
    except errors.NumbaError as error:
        said = str(error)
    kept = gc.isenabled() is collects
    found.append([any(seen), len(seen) > 1, kept, "no_such_attribute" in said])
print(json.dumps(found))
"""
    left = [False, True, True]
    assert [[*left, False]] * 2 + [[*left, True]] * 2 == folder.run(script)
