"""Tables that processes share: the same answers as without, whatever happens to their files."""

from __future__ import annotations

import errno
import fcntl
import io
import os
import re
import shutil
import signal
import time
import warnings
import weakref
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import indexplan as ip
from indexplan.reports.show import show_plan
from indexplan.stores import cache as store_cache
from indexplan.stores import tables
from tests.kills import of_tables
from tests.support.children import NOBODY, in_child
from tests.support.refused_calls import refuse
from tests.support.shared_tables import (
    ORDERS,
    kept,
    read_alone,
    reads,
    share_all,
    stop_in_writing,
)
from tests.test_docs import ROOT, printed_by_shell

COLUMN = np.random.default_rng(0).integers(1, 60, 500)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for tables, and tables of any size are shared."""
    monkeypatch.setattr(tables, "LEAST", 0)
    monkeypatch.setenv("INDEXPLAN_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.mark.parametrize("name", ORDERS)
def test_an_order_reads_the_same(
    name: str, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a table in memory, or one that this process wrote, or found; or that was shipped here.

    A copy of the cache serves another machine.
    """
    with monkeypatch.context() as small:
        small.setattr(tables, "LEAST", 2**40)
        alone = read_alone(name, COLUMN)
    assert not kept(cache)
    assert alone == read_alone(name, COLUMN)
    written = {path: path.stat().st_ino for path in kept(cache)}
    monkeypatch.setattr(tables, "_written", None)  # nothing is written again
    assert alone == read_alone(name, COLUMN)
    assert written == {path: path.stat().st_ino for path in kept(cache)}
    assert {0o600} == {path.stat().st_mode & 0o777 for path in written}
    shutil.copytree(cache, tmp_path / "elsewhere" / "copy")
    shutil.rmtree(cache)
    monkeypatch.setenv("INDEXPLAN_CACHE", str(tmp_path / "elsewhere" / "copy"))
    assert alone == read_alone(name, COLUMN)


@pytest.mark.parametrize("edited", ["orders/strata.py", "kernels/packing.py"])
def test_a_table_of_other_code_is_built_again(
    edited: str, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a checkout the code that builds tables changes, and the version stays."""
    for folder in ("orders", "kernels"):
        shutil.copytree(ROOT / "indexplan" / folder, tmp_path / folder)
    (found := tmp_path / edited).write_text(found.read_text() + "# edited")
    alone = read_alone("Packed", COLUMN)
    monkeypatch.setattr(tables, "TOP", tmp_path)
    monkeypatch.setattr(tables, "_library", tables._library.__wrapped__)
    with pytest.warns(RuntimeWarning, match="was changed after this process began"):
        assert alone == read_alone("Packed", COLUMN)
    assert 1 == len(kept(cache))
    monkeypatch.setattr(tables, "STARTED", time.time() + 1)
    assert alone == read_alone("Packed", COLUMN)
    assert 2 == len(kept(cache))


@given(st.sampled_from(sorted(ORDERS)), st.integers(0, 2**32), st.integers(1, 8))
def test_a_damaged_table_is_built_again(name: str, seed: int, width: int) -> None:
    """Bytes changed, cut off or added, or another order's table: no wrong sample is read."""
    random = Random(seed)  # noqa: S311
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as name_of_folder:
        folder = Path(name_of_folder)
        patch.setattr(tables, "LEAST", 0)
        patch.setenv("INDEXPLAN_CACHE", str(folder))
        alone = read_alone(name, COLUMN)
        before = kept(folder)
        file = random.choice(before)
        content = bytearray(file.read_bytes())
        at = random.choice([random.randrange(len(content)), -random.randrange(1, 1000)])
        kind = random.choice(["changed", "cut", "longer", "another's", "empty"])
        if kind == "changed":
            for place in range(at, min(at + width, len(content) if at >= 0 else 0)):
                content[place] ^= random.randrange(1, 256)
        elif kind == "another's":
            read_alone(name, COLUMN[:-1])
            (other,) = set(file.parent.glob("[!.]*")) - {file}
            content = bytearray(other.read_bytes())
        else:
            content = content[: at if kind == "cut" else 0] if kind != "longer" else content + b"1"
        file.write_bytes(content)
        assert alone == read_alone(name, COLUMN)
        assert alone == read_alone(name, COLUMN)


def test_a_planted_table(cache: Path) -> None:
    """A file of another user, or one that another can write to, is not read, and a warning says so.

    Folders are those of chunks: test_cache.py.
    """
    alone = read_alone("Weighted", COLUMN)
    (file,) = kept(cache)
    for change in (lambda: os.chown(file, NOBODY, NOBODY), lambda: file.chmod(0o666)):
        change()
        with pytest.warns(RuntimeWarning, match="a file that only you, user"):
            assert alone == read_alone("Weighted", COLUMN)
        os.chown(file, os.geteuid(), os.getegid())


def read_while_refused(folder: str, call: str) -> tuple[list[Any], list[Any], list[str]]:
    """Return what an order reads before and after Linux refuses a call, and the warnings."""
    before = reads("Packed", COLUMN)
    share_all(folder)
    refuse(call, errno.ENOSPC)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        return before, read_alone("Packed", COLUMN), [str(each.message) for each in said]


@pytest.mark.slow
@pytest.mark.parametrize("call", ["write", "fsync", "mkdir", "flock"])
def test_a_full_disk(call: str, cache: Path) -> None:
    """The table stays in memory, nothing of it is left, and one warning says why."""
    before, after, said = in_child(read_while_refused, str(cache), call)
    assert before == after
    assert ["No space left on device" in each for each in said] == [True]
    assert not [path for path in cache.rglob("*") if path.is_file()]


def test_a_disk_that_changes_bytes(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was just written and reads otherwise is not written again and again."""
    alone = read_alone("Packed", COLUMN)
    shutil.rmtree(cache)
    monkeypatch.setattr(tables, "_read", lambda *_: None)
    with pytest.warns(RuntimeWarning, match="other bytes than were written") as said:
        assert alone == read_alone("Packed", COLUMN)
    assert 1 == len(said)


def test_a_table_is_held_once(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was built is let go before its file is mapped."""
    held: list[weakref.ref[Any]] = []
    written, read = tables._written, tables._read

    def writes(name: str, fields: Any) -> Any:
        held.append(weakref.ref(fields["members"]))
        return written(name, fields)

    def maps(*arguments: Any) -> Any:
        assert [None] == [array() for array in held]
        return read(*arguments)

    monkeypatch.setattr(tables, "_written", writes)
    monkeypatch.setattr(tables, "_read", maps)
    read_alone("ClassBalanced", COLUMN)
    assert kept(cache)
    assert 1 == len(held)


@pytest.mark.slow
def test_who_waits_is_told_for_whom(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that was stopped while it wrote is named, and the others go on after it."""
    np.save(tmp_path / "column.npy", COLUMN)
    alone = reads("Weighted", COLUMN)
    shutil.rmtree(cache)
    builder = get_context("forkserver").Process(
        target=stop_in_writing, args=(str(cache), "Weighted", str(tmp_path / "column.npy"))
    )
    builder.start()
    while " T " not in Path(f"/proc/{builder.pid}/stat").read_text():
        assert builder.is_alive()

    class Terminal(io.StringIO):
        def write(self, text: str) -> int:
            os.kill(builder.pid or 0, signal.SIGCONT)
            return super().write(text)

    monkeypatch.setattr(store_cache, "PATIENCE", 0.1)
    monkeypatch.setattr("sys.stderr", said := Terminal())
    assert alone == read_alone("Weighted", COLUMN)
    builder.join()
    (path,) = kept(cache)
    part = path.with_name(f".{path.name}.part")
    assert f"indexplan: waiting for process {builder.pid}, which writes {part}\n" == said.getvalue()


def test_what_building_raises_is_raised(cache: Path) -> None:
    """A column that can't be read is no reason to build the table once more, in memory."""
    calls = []

    def build() -> Any:
        calls.append(1)
        raise OSError("the column")

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(OSError, match="the column"):
            tables.table_of({"table": "none"}, dict, build, 1)
    assert [1] == calls
    assert not kept(cache)


def test_unused_tables_go(cache: Path) -> None:
    """A table that nobody has opened for a month is deleted when another one is written."""
    read_alone("Weighted", COLUMN)
    (old,) = kept(cache)
    os.utime(old, (0, 0))
    alone = read_alone("Weighted", COLUMN)  # which opens it
    read_alone("Weighted", COLUMN[1:])
    assert old in kept(cache)
    os.utime(old, (0, 0))
    read_alone("Weighted", COLUMN[2:])
    assert old not in kept(cache)
    assert alone == read_alone("Weighted", COLUMN)


@pytest.mark.parametrize("fails", [False, True])
def test_a_fork_of_a_writer_holds_no_lock(
    fails: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else who waits for a chunk would wait until a worker ends that was forked meanwhile."""
    opened, path = store_cache._open_part, tmp_path / "user" / "chunks" / "plan" / "0"
    copies: list[int] = []

    def forked(*arguments: Any) -> int:
        number = opened(*arguments)
        copies.append(os.dup(number))  # what a fork has
        return number

    def blocks() -> Iterator[bytes]:
        waiting.append(path.with_name(".0.part").open("rb"))
        yield b"1"
        if fails:
            raise OSError("the network")

    waiting: list[Any] = []
    monkeypatch.setattr(store_cache, "_open_part", forked)
    with suppress(OSError):
        store_cache.keep(path, lambda held: store_cache.open_kept(path, held), blocks).close()
    assert path.exists() is not fails
    fcntl.flock(waiting[0], fcntl.LOCK_EX | fcntl.LOCK_NB)
    waiting[0].close()
    os.close(copies[0])


@pytest.mark.slow
@pytest.mark.usefixtures("cache")
def test_killed_builders_and_readers(tmp_path: Path) -> None:
    """After each kill, the next reads what the order gives; `tests.kills` kills more."""
    assert of_tables(tmp_path, 6).total() > 0


def test_show_says_what_a_plan_needs(tmp_path: Path) -> None:
    """Bytes a sample, on a node and in a process; nothing where that is little."""
    weights = np.ones(2_000_000)
    np.save(tmp_path / "weights.npy", weights)

    def shown(weights: Any) -> list[str]:
        source = ip.Weighted(weights)
        order = ip.Mixture({"a": source, "b": ip.Shuffle(10)}, {"a": 1, "b": 1})
        plan = ip.Plan(order, world_size=2, batch_size=4)
        lines = show_plan(plan, None, None, None).words.splitlines()
        return [line for line in lines if line.startswith("memory")]

    each, once = "memory       20 bytes a sample; ", "once on each node: "
    assert [f"{each}{once}columns 16 MB, tables 24 MB"] == shown(tmp_path / "weights.npy")
    own = "in each process: columns 16 MB, unless you pass paths of .npy files"
    assert [f"{each}{once}tables 24 MB; {own}"] == shown(weights)
    assert [] == shown(weights[:1000])


def test_tables_of_more_than_four_billion_samples_have_longer_entries(tmp_path: Path) -> None:
    """Orders say 8 bytes, and not 4, for each number of a sample in their tables."""
    for num, each in ((2**32, 4), (2**32 + 1, 8)):
        with (path := tmp_path / f"{num}.npy").open("wb") as file:  # it takes no room on a disk
            form = {"descr": "<u4", "fortran_order": False, "shape": (num,)}
            np.lib.format.write_array_header_1_0(file, form)
            file.truncate(file.tell() + 4 * num)
        column = ip.Column(path)
        part = ip.types.Part(num, [1], [0], 0, column)
        assert [each * num] * 2 == [part.ip_table_bytes, ip.ClassBalanced(column).ip_table_bytes]
        assert 2 * each * num == ip.Distinct(column, 2).ip_table_bytes


@pytest.mark.slow
def test_tables_before_a_job(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command of the page builds what a plan needs, and the job builds nothing."""
    page = (ROOT / "docs" / "starting-up.md").read_text()
    (command,) = re.findall(r"```sh\n(INDEXPLAN_CACHE=.*)\n```", page)
    monkeypatch.chdir(tmp_path)
    np.save("weights.npy", np.random.default_rng(0).random(1_500_000))
    plan = ip.Plan(ip.Weighted("weights.npy", seed=3), world_size=2, batch_size=3)
    Path("plan.json").write_text(plan.to_json())
    printed = printed_by_shell(command.replace("/shared/cache", str(cache)))
    assert {"weighted"} == {path.parent.name for path in kept(cache)}
    monkeypatch.setattr(tables, "_written", None)
    assert printed.split() == [str(index) for index in plan.batch(0, step=0, rank=0)]
