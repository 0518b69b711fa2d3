"""`indexplan bench --warm-up`: every kernel in numba's cache, or an error that says why not."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import pytest
from numba.core.caching import _CacheLocator

import indexplan as ip
from indexplan import kernels
from indexplan.cli import main
from indexplan.kernels import compiling
from indexplan.reports import warmth

ROOT = Path(__file__).parents[2]
SOONER = {"NUMBA_OPT": "0"}  # compiles in two thirds of the time; only the code is slower
SOURCE = "".join(path.read_text() for path in (ROOT / "indexplan" / "kernels").glob("*.py"))
NAMES = set(re.findall(r"^@kernel\(.*?^def (\w+)\(", SOURCE, flags=re.DOTALL | re.MULTILINE))

for each in iter_modules(kernels.__path__):
    getattr(kernels, each.name)  # makes its kernels known
NUM = len(compiling.KERNELS)  # some are made twice, by a function
MISSING = ("balance.fill_cells-*", "permutation.invert-*", "xxh64._xxh64-*")
KERNELS_OF = r"kernels for (\S+) are in numba's cache: (\d+ loaded, \d+ saved); in (.+)"

ASK = """
import json
import indexplan as ip
from indexplan.kernels import permutation
from indexplan.kernels.xxh64 import xxh64
plans = [ip.Plan(order, world_size=8, batch_size=16)
         for order in (ip.Shuffle(10**9), ip.BlockShuffle(10**9, 1000, 4))]
batches = [plan.batch(0, step=5, rank=3).tolist() for plan in plans]
places = [plan.locate(batch, 0).step.tolist() for plan, batch in zip(plans, batches)]
permutation.permute_epochs.compile()
permutation.permute_strata.compile()
xxh64(b"abc")
from indexplan.kernels.compiling import KERNELS
print(json.dumps([batches, places, sorted({kernel.origin for kernel in KERNELS})]))
"""

ASK_FOR_ONE = """
import json
import indexplan as ip
from indexplan.kernels.permutation import invert
from indexplan.kernels.compiling import cpu_name
places = ip.Shuffle(10**9).locate(0, range(16)).tolist()
print(json.dumps([cpu_name(), invert.origin, places]))
"""
MEET = "import indexplan.kernels.permutation; print('here', flush=True); input()\n"


def start(cache: Path, *arguments: str, **environ: str) -> subprocess.Popen[str]:
    """Start Python in a process of its own, with numba's cache in a folder."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("NUMBA_")}
    return subprocess.Popen(
        [sys.executable, *arguments],
        env={**clean, **SOONER, "NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": str(ROOT), **environ},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=cache.parent,
    )


def finish(child: subprocess.Popen[str], code: int = 0) -> tuple[str, str]:
    """What a process printed, to its two streams."""
    out, err = child.communicate()
    assert code == child.returncode, err
    return out, err


def warm_up(cache: Path, **environ: str) -> tuple[dict[str, Any], str]:
    out, err = finish(start(cache, "-m", "indexplan", "bench", "--warm-up", "--json", **environ))
    return json.loads(out), err


def test_after_a_warm_up_nothing_is_compiled(tmp_path: Path) -> None:
    """A warm-up compiles and saves the kernels that are missing; who comes later loads them all.

    All but some are copied from the cache of these tests, as to compile them takes a minute.
    """
    cache = tmp_path / "cache"
    for kernel in compiling.KERNELS:
        kernel.compile()
    (mine,) = {kernel.folder for kernel in compiling.KERNELS}
    assert mine is not None
    copy = cache / _CacheLocator.get_suitable_cache_subpath(compiling.__file__)
    shutil.copytree(mine, copy, ignore=shutil.ignore_patterns("*.pyc", "*.tmp.*", *MISSING))
    said, err = warm_up(cache)
    assert "" == err
    assert said["ok"]
    (check,) = said["checks"]
    assert (NUM, []) == (check["num_checked"], check["problems"])
    assert NAMES <= {kernel.name for kernel in compiling.KERNELS}
    assert len(NAMES) > 40
    cpu, saved, folder = re.fullmatch(KERNELS_OF, check["name"]).groups()  # type: ignore[union-attr]
    expected = f"{NUM - len(MISSING)} loaded, {len(MISSING)} saved"
    assert (expected, copy) == (saved, Path(folder))

    batches, places, origins = json.loads(finish(start(cache, "-c", ASK))[0])
    assert ["loaded"] == origins
    plans = [ip.Plan(order, world_size=8, batch_size=16)
             for order in (ip.Shuffle(10**9), ip.BlockShuffle(10**9, 1000, 4))]  # fmt: skip
    assert [plan.batch(0, step=5, rank=3).tolist() for plan in plans] == batches
    assert [[5] * 16] * 2 == places

    again, _ = warm_up(cache)
    loaded = check["name"].replace(saved, f"{NUM} loaded, 0 saved")
    assert loaded == again["checks"][0]["name"]

    located = plans[0].order.locate(0, range(16)).tolist()
    for origin in ("saved", "loaded"):  # other machine code, beside the first
        other = finish(start(cache, "-c", ASK_FOR_ONE, NUMBA_CPU_NAME="generic"))[0]
        assert ["generic", origin, located] == json.loads(other)
    own = json.loads(finish(start(cache, "-c", ASK_FOR_ONE))[0])
    assert [cpu, "loaded", located] == own


def test_many_processes_meet_a_cold_cache(tmp_path: Path) -> None:
    """Four processes at once, one empty folder: all have the same answer, and the fifth loads."""
    cache = tmp_path / "cache"
    children = [start(cache, "-c", MEET + ASK_FOR_ONE) for _ in range(4)]
    for child in children:
        assert child.stdout is not None
        assert "here\n" == child.stdout.readline()
    for child in children:
        assert child.stdin is not None
        child.stdin.write("\n")
        child.stdin.flush()
    answers = [json.loads(finish(child)[0]) for child in children]
    places = ip.Shuffle(10**9).locate(0, range(16)).tolist()
    assert [places] * 4 == [answer[2] for answer in answers]
    assert "saved" in [answer[1] for answer in answers]
    assert [] == [path.name for path in cache.rglob("*") if ".tmp." in path.name]
    assert "loaded" == json.loads(finish(start(cache, "-c", ASK_FOR_ONE))[0])[1]


class Unsaved:
    """A kernel that can be compiled, but not saved."""

    origin, folder = "unsaved", None

    def compile(self) -> None:
        """Do nothing, as it is compiled."""


@pytest.mark.parametrize("folder", ["/cache", None])
@pytest.mark.parametrize("checked", [False, True])
def test_why_kernels_are_not_saved(
    monkeypatch: pytest.MonkeyPatch, checked: bool, folder: str | None
) -> None:
    """The setting that keeps them out is named, or else the folder, such as a full one, or none."""
    problem = (
        f"numba's cache must be a folder with room that this user can write to; got "
        f"'{folder or 'none'}'; set NUMBA_CACHE_DIR to one"
    )
    if checked:
        monkeypatch.setenv("NUMBA_BOUNDSCHECK", "1")
        rule = "must be unset, as checked kernels are never saved; got '1'; unset it"
        problem = f"NUMBA_BOUNDSCHECK {rule}"
    monkeypatch.setattr(Unsaved, "folder", folder)
    monkeypatch.setattr(warmth, "iter_modules", lambda _: [])  # which would add their kernels
    monkeypatch.setattr(compiling, "KERNELS", [Unsaved()])
    report = warmth.warm_up()
    assert not report.ok
    assert (problem,) == report.checks[0].problems
    said = f"numba's cache: 0 loaded, 0 saved; in {folder or 'none'}"
    assert said in report.checks[0].name


def test_words(capsys: pytest.CaptureFixture[str]) -> None:
    """People get a line for all kernels, with the folder of the cache."""
    assert 0 == main(["bench", "--warm-up"])
    assert f"{warmth.warm_up()}\n" == capsys.readouterr().out
