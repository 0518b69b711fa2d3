"""Kill what builds and reads, at any moment: it leaves what an undisturbed process can go on from.

    python -m tests.kills calls [renames]       kill a build before each of its system calls
    python -m tests.kills builders [500 [SEED [URL]]]
                                                kill up to three builders at once, at random moments
    python -m tests.kills tables [250]          kill processes that build or map a shared table
    python -m tests.kills disks                 no kills, but disks that are really full

Each kills processes that are forked from a warm one, has another look at what is left, and lets an
undisturbed one finish, whose bytes or answers have to be those of a process that was alone. Ends
with 1 at the first difference.

`calls` is for what a crash can leave: a build of one chunk makes some thirty calls that open,
write, sync, name or remove something, and is killed before each. The calls of both builders
together are checked for what a power cut could do to them, and printed. With "renames", the kernel
refuses links, as some file systems do; so it does to a third of the random builders. Mounting the
disks, of tmpfs, needs a namespace (`unshare` of util-linux), which some systems forbid.
"""

from __future__ import annotations

import errno
import gc
import json
import multiprocessing
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import indexplan as ip
from indexplan.stores import tables
from tests.support import shared_tables
from tests.support.builders import KINDS, digests
from tests.support.children import in_child
from tests.support.refused_calls import refuse

CONTEXT = multiprocessing.get_context("forkserver")  # whose imports `main` names, or conftest.py
PATIENCE = 60  # seconds that an undisturbed process may take
BUILDERS = 3
Call = tuple[str, str]  # its name, and the path that it opens, makes or removes


# --- one way to start, to stop, and to compare


def start(run: Callable[..., object], *arguments: Any) -> Any:
    """Run a function of a module in a process of its own."""
    process = CONTEXT.Process(target=run, args=arguments)
    process.start()
    return process


def end(process: Any) -> None:
    """Wait for a process that nobody kills, which has to end well."""
    process.join(PATIENCE)
    if process.exitcode != 0:
        process.kill()
        raise SystemExit(f"a process that was not killed ended with {process.exitcode}")


def kill(process: Any) -> bool:
    """Kill a process; return whether it had not ended before, which it has to do well."""
    process.kill()
    process.join()
    if process.exitcode != -signal.SIGKILL:
        end(process)
    return bool(process.exitcode)


def timed(run: Callable[..., object], *arguments: Any) -> float:
    """Run something undisturbed; return how many seconds it took."""
    began = time.monotonic()
    end(start(run, *arguments))
    return time.monotonic() - began


def build(name: str, root: str, part: Any, links: bool, stage: Any = None) -> None:
    """Build a plan directory, or a part of it; `stage` is 1 while it is inside `save`."""
    if not links:
        refuse("link", errno.EPERM)
    if stage is not None:
        stage.value = 1
    KINDS[name].save(root, part=part)
    if stage is not None:
        stage.value = 2


def looked_at(name: str, root: str) -> str:
    """Return what a reader gets: a refusal of what is half-built, or the right plan, checked."""
    kind = KINDS[name]
    try:
        plan = ip.load(root)
    except ip.PlanFileError as error:
        lacks = r" must (?:be a plan directory|have all of its \d+ files); got (nothing|a|none) "
        found = re.match(f"{re.escape(root)}{lacks}", f"{error} ")
        assert found, error  # noqa: PT017 (half of them lack something)
        return {"nothing": "nothing there", "a": "a folder", "none": "half-built"}[found[1]]
    assert kind.plan == plan
    for epoch in range(kind.epochs):
        last = plan.steps(epoch).stop - 1
        for step in (0, last // 2, last):
            expected = kind.plan.batch(epoch, step=step, rank=1).tolist()
            assert expected == plan.batch(epoch, step=step, rank=1).tolist()
    return "the right plan"


def check_finished(name: str, root: str, expected: dict[str, str]) -> None:
    """Build undisturbed, verify, and compare the bytes with those of `expected`.

    Anything that a dead builder has left over would be a difference.
    """
    KINDS[name].save(root)
    if "://" in root:
        from tests.support.remote import files_at  # which needs a store's server

        found = {path: sha256(data).hexdigest() for path, data in files_at(root).items()}
    else:
        found = digests(Path(root))
    different = sorted(set(found.items()) ^ set(expected.items()))
    assert not different, f"{root} differs: {different}"
    report = ip.verify(ip.load(root))
    assert report.ok, str(report)


# --- before each call


def watch(note: Callable[[str, str], None], root: str) -> None:
    """Call `note` with each call of this process, and its path beside `root`, before it happens."""
    above = os.path.dirname(root)  # noqa: PTH120

    def event(name: str, arguments: tuple[Any, ...]) -> None:
        if name in ("open", "os.mkdir", "os.link", "os.rename", "os.remove"):
            path = arguments[1 if name in ("os.link", "os.rename") else 0]
            if str(path).startswith(above):
                note(name.removeprefix("os."), os.path.relpath(path, above))

    def profile(_frame: object, what: str, function: Any) -> None:
        # writing and syncing raise no audit events
        if what == "c_call" and function in (os.write, os.fsync):
            note(function.__name__, "")

    os.sched_setaffinity(0, list(os.sched_getaffinity(0))[:1])  # one thread, one order of calls
    sys.addaudithook(event)
    threading.setprofile(profile)
    sys.setprofile(profile)


def calls_of(root: str, links: bool) -> list[Call]:
    """Build undisturbed; return the calls."""
    calls: list[Call] = []
    watch(lambda *call: calls.append(call), root)
    build("tiny", root, None, links)
    sys.setprofile(None)
    return list(calls)


def build_until(call: int, root: str, links: bool) -> None:
    """Build, and die before a call."""
    done = 0

    def note(*_: str) -> None:
        nonlocal done
        if done == call:
            os.kill(os.getpid(), signal.SIGKILL)
        done += 1

    watch(note, root)
    build("tiny", root, None, links)


def check_power_cuts(calls: Iterable[Call]) -> None:
    """Check that a power cut at any moment leaves only whole files, and nothing of a done build.

    What was written is on the disk once its file was synced, and a name once its folder was.
    """
    opened, dirty, names, made = "", set[str](), set[str](), set[str]()
    for name, path in calls:
        if name == "open":
            opened = path
        elif name == "write":
            dirty.add(opened)
        elif name == "fsync":
            dirty.discard(opened)
            names = {other for other in names if (os.path.dirname(other) or ".") != opened}  # noqa: PTH120
        elif name in ("link", "rename"):
            assert opened not in dirty, f"{path} got its name before its content was synced"
            names.add(path)
        elif name == "mkdir" and path not in made:
            made.add(path)
            names.add(path)
    assert not names, f"{sorted(names)} can still vanish when the build is done"


def before_each_call(folder: Path, *how: str) -> str:
    """Kill a build before each of its calls; return the calls."""
    root, whole, links = str(folder / "a.plan"), folder / "undisturbed.plan", "renames" not in how
    calls = in_child(calls_of, root, links)
    check_power_cuts(calls)
    Path(root).rename(whole)
    expected = digests(whole)
    for number in range(len(calls)):
        process = start(build_until, number, root, links)
        process.join()
        assert -signal.SIGKILL == process.exitcode
        for name, digest in (digests(Path(root)) if Path(root).exists() else {}).items():
            assert name.endswith(".tmp") or expected[name] == digest, name
        in_child(looked_at, "tiny", root)
        check_power_cuts([*calls[:number], *in_child(calls_of, root, links)])
        end(start(check_finished, "tiny", root, expected))
        shutil.rmtree(root)
    return json.dumps(calls)


# --- at random moments


def disturb(name: str, root: str, seconds: float, random: Random, counts: Counter[str]) -> None:
    """Let builders of one directory die, until there were enough kills, or it is finished."""
    links = random.random() < 2 / 3
    crew: dict[Any, Any] = {}  # builders, and their stages
    for _ in range(random.randint(1, 12)):
        while len(crew) < random.randint(1, BUILDERS):
            stage, part = CONTEXT.RawValue("b"), random.choice([None, None, (1, 2), (2, 2)])
            crew[start(build, name, root, part, links, stage)] = stage
        begun = random.random() < 0.2  # mostly, wait until all are inside `save`
        while not begun:
            begun = all(stage.value or not each.is_alive() for each, stage in crew.items())
        time.sleep(random.uniform(0, seconds))
        # all at once, as when a machine is shut down, or one of them
        for victim in list(crew) if random.random() < 0.6 else [random.choice(list(crew))]:
            stage = crew.pop(victim)
            if kill(victim):
                counts["kills"] += 1
                counts["inside save"] += stage.value == 1
                counts["without links"] += not links
                counts["wrote"] += any(Path(root).rglob(f".*-{victim.pid}-*.tmp"))
        answer = in_child(looked_at, name, root)
        counts[f"a reader got: {answer}"] += 1
        if answer == "the right plan" and random.random() < 0.7:
            break
    for builder in crew:
        end(builder)


def at_random(folder: Path, kills: str = "500", seed: str = "0", url: str = "") -> str:
    """Kill builders of plan directories; return what was hit, and what a reader got then."""
    random, counts = Random(int(seed)), Counter[str]()  # noqa: S311 (to choose moments)
    kinds = ("many", "bins") if url else ("large", "large", "many", "bins")
    seconds = {name: timed(build, name, str(folder / name), None, True) for name in set(kinds)}
    expected = {name: digests(folder / name) for name in set(kinds)}
    if url:
        seconds = {name: timed(build, name, f"{url}/{name}", None, True) for name in kinds}
    while counts["kills"] < int(kills):
        name = random.choice(kinds)
        root = f"{url or folder}/{counts['directories']}.plan"
        counts["directories"] += 1
        disturb(name, root, seconds[name], random, counts)
        end(start(check_finished, name, root, expected[name]))
        shutil.rmtree(root, ignore_errors=bool(url))
    lines = [
        f"{counts['kills']} kills of up to {BUILDERS} builders at once, in "
        f"{counts['directories']} directories, seed {seed}",
        f"{counts['without links']} of the killed were in a folder without links",
        f"{counts['inside save']} of the killed were inside save, {counts['wrote']} at a file",
        *(f"{count:7} {what}" for what, count in counts.most_common() if what.startswith("a ")),
        "result: every directory ended in the bytes of an undisturbed build, nothing left over",
    ]
    return "\n".join(lines)


# --- processes that share tables


def lengths() -> Any:
    """Return a column whose table has 1.2 MB."""
    return np.random.default_rng(0).integers(1, 60, 300_000)


def of_tables(root: Path, times: int) -> Counter[tuple[str, str]]:
    """Kill that many processes; count those that had not ended, by order and what they did.

    Up to three at a time build or map the table of an order in one cache. One of them dies after a
    random share of the time that this took alone. After each kill another process has to read what
    the order gives.
    """
    random = Random(times)  # noqa: S311 (to choose moments)
    column = root / "column.npy"
    np.save(column, lengths())

    @cache
    def expected(name: str) -> list[Any]:
        return shared_tables.reads(name, str(column))

    def reading(name: str, folder: Path) -> Any:
        return shared_tables.check, str(folder), name, str(column), expected(name)

    @cache
    def seconds(name: str, doing: str) -> float:
        if doing == "reading":
            seconds(name, "building")
        return timed(*reading(name, root / "timed" / name))

    killed: Counter[tuple[str, str]] = Counter()
    for number in range(times):
        if number % 2 == 0:  # the second of two finds what others built after the first
            name, folder = random.choice(sorted(shared_tables.ORDERS)), root / "cache"
            shutil.rmtree(folder, ignore_errors=True)
        doing = "reading" if shared_tables.kept(folder) else "building"
        patience = seconds(name, doing) * random.random()
        victim, *others = [start(*reading(name, folder)) for _ in range(random.randint(1, 3))]
        victim.join(patience)
        killed[name, doing] += kill(victim)
        for process in [*others, start(*reading(name, folder))]:
            end(process)
    return killed


def at_tables(folder: Path, times: str = "250") -> str:
    """Kill processes that share tables; return how many of each order."""
    killed = of_tables(folder, int(times))
    lines = [f"{who}: {number} killed {doing}" for (who, doing), number in sorted(killed.items())]
    return "\n".join([*lines, f"{killed.total()} killed at work; all read right"])


# --- full disks

STEP = 256  # KiB


@contextmanager
def mounted(folder: Path, kib: int) -> Iterator[tuple[Path, Callable[[], object]]]:
    """A disk of this size, and what makes it larger."""
    disk = folder / "disk"
    disk.mkdir(exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "tmpfs", str(disk), "-o"]
    subprocess.run([*mount, f"size={kib}k"], check=True)
    yield disk, lambda: subprocess.run([*mount, "remount,size=64m"], check=True)
    gc.collect()  # else the disk is busy
    subprocess.run(["umount", disk], check=True)  # noqa: S607


def fill_cache(folder: Path, kib: int, expected: list[Any]) -> bool:
    """Read an order whose table is kept on a disk of this size. Return if that was too small."""
    with mounted(folder, kib) as (disk, enlarge):
        shared_tables.share_all(str(disk))
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            assert expected == shared_tables.read_alone("Packed", lengths())
        full = bool(said)
        assert full is not bool(shared_tables.kept(disk))
        assert ["No space left on device" in str(each.message) for each in said] == [True] * full
        assert not [path for path in disk.rglob(".*") if path.is_file()]
        enlarge()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert expected == shared_tables.read_alone("Packed", lengths())
        assert shared_tables.kept(disk)
        tables.TABLES.clear()
    return full


def fill(folder: Path, kib: int, expected: dict[str, str]) -> bool:
    """Build on a disk of this size; if it was too small, on a larger one. Return if it was."""
    with mounted(folder, kib) as (disk, enlarge):
        full, root = False, disk / "a.plan"
        try:
            KINDS["large"].save(root)
        except ip.PlanFileError as error:
            cure = "got 'No space left on device'; free some space, then run it again"
            assert str(error).endswith(cure), error  # noqa: PT017
            full = True
            left = digests(root) if root.exists() else {}
            assert left.items() < expected.items(), sorted(left)
            enlarge()
        check_finished("large", str(root), expected)
    return full


def on_full_disks(folder: Path, *inside: str) -> str:
    """Go into a namespace where mounting is allowed, and try disks of many sizes."""
    if not inside:
        again = [sys.executable, "-m", "tests.kills", "disks", "inside"]
        command = ["unshare", "--user", "--map-root-user", "--mount", *again]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    num_bytes = KINDS["large"].save(folder / "b.plan").num_bytes
    expected = digests(folder / "b.plan")
    sizes = range(4, num_bytes // 1024 + 2 * STEP, STEP)
    full = [fill(folder, kib, expected) for kib in sizes]
    alone = shared_tables.reads("Packed", lengths())
    tried = range(4, lengths().size * 4 // 1024 + 2 * STEP, STEP // 4)
    small = [fill_cache(folder, kib, alone) for kib in tried]
    return (
        f"{len(sizes)} disks of {sizes[0]} to {sizes[-1]} KiB, {sum(full)} of them too small: "
        "clean errors, whole files; with more space, the bytes of an undisturbed build\n"
        f"{len(tried)} disks for a table, {sum(small)} of them too small: kept in memory, with one "
        "warning; with more space, in a file"
    )


COMMANDS: dict[str, Callable[..., str]] = {
    "calls": before_each_call,
    "builders": at_random,
    "tables": at_tables,
    "disks": on_full_disks,
}


def main(arguments: Sequence[str]) -> None:
    """Run as a script."""
    if not arguments or arguments[0] not in COMMANDS:
        raise SystemExit(__doc__)
    warm = ["tests.support.warmed", "tests.support.shared_tables", "tests.kills"]
    warm += ["s3fs"] * any("s3://" in each for each in arguments)
    CONTEXT.set_forkserver_preload(warm)
    end(start(gc.collect))  # the server takes seconds to start, in which nothing is killed
    # what a call leaves does not depend on the disk, and this one syncs at once
    fast = arguments[0] == "calls" and os.access("/dev/shm", os.W_OK)  # noqa: S108
    with tempfile.TemporaryDirectory(dir="/dev/shm" if fast else None) as folder:  # noqa: S108
        print(COMMANDS[arguments[0]](Path(folder), *arguments[1:]))  # noqa: T201
