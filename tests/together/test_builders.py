"""Building plan directories: again, by many at once, killed, on full disks and locked folders."""

import errno
import os
import re
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import indexplan as ip
from indexplan.stores.publish import publish
from tests.support.children import in_child
from tests.support.refused_calls import refuse
from tests.support.trees import PLAN, tree


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A plan directory of 2 epochs in 8 chunks."""
    ip.save(PLAN, tmp_path / "a.plan", epochs=range(2), units_per_chunk=256)
    return tmp_path / "a.plan"


def _run(code: str, folder: Path) -> str:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, cwd=folder, env=environment
    )
    return done.stdout


def test_file_systems_without_links(
    tmp_path: Path, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a file system knows no links, files get their names by renaming; the bytes agree."""

    def refused(*_: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(Path, "hardlink_to", refused)
    ip.save(PLAN, tmp_path / "b.plan", epochs=range(2), units_per_chunk=256)
    assert tree(saved) == tree(tmp_path / "b.plan")


OTHER = PLAN.replace(order=ip.Shuffle(1000, seed=6))


def said(function: Callable[..., Any], *arguments: Any, **options: Any) -> str:
    """The message of the error that a call ends with, or "built"."""
    try:
        function(*arguments, **options)
    except ip.IndexPlanError as error:
        return str(error)
    return "built"


def save_another_without_links(root: Path, system: str) -> str:
    """Save another plan where one is, on a file system that knows no links."""
    refuse("link", errno.EPERM)
    sys.platform = system
    ip.save(PLAN, root)
    return said(ip.save, OTHER, root)


@pytest.mark.parametrize("system", [sys.platform, "another"])
def test_another_plan_without_links(tmp_path: Path, system: str) -> None:
    """Where files get their names by renaming, a plan is not turned into another one either."""
    root = tmp_path / "a.plan"
    message = in_child(save_another_without_links, root, system)
    assert message.startswith(f"{root} must be a build of the same plan and epochs; got one with")
    ip.save(PLAN, tmp_path / "b.plan")
    assert tree(tmp_path / "b.plan") == tree(root)


def save_overtaken_by_another(root: Path) -> str:
    """Save, without links; just before plan.json gets its name, another plan is saved there."""
    refuse("link", errno.EPERM)
    overtaken = False

    def event(call: str, arguments: tuple[object, ...]) -> None:
        nonlocal overtaken
        if call == "os.rename" and not overtaken and str(arguments[1]).endswith("plan.json"):
            overtaken = True
            ip.save(PLAN, root, part=(2, 2))  # no chunk, so nothing is swept up

    sys.addaudithook(event)
    return said(ip.save, OTHER, root)


def test_two_plans_at_once_without_links(tmp_path: Path) -> None:
    """A name that is taken between looking and renaming is not taken away again."""
    root = tmp_path / "a.plan"
    message = in_child(save_overtaken_by_another, root)
    assert message.startswith(f"{root} must be a build of the same plan and epochs; got one with")
    for path in (root, tmp_path / "b.plan"):
        ip.save(PLAN, path)
    assert tree(tmp_path / "b.plan") == tree(root)


def publish_swept(path: Path, there: bool) -> str:
    """Publish a file; when half of it is written, its temporary file is gone, as NFS says it."""

    def blocks() -> Iterator[bytes]:
        yield b"half"
        if there:
            assert publish(path, [b"half and half"])
        refuse("write", errno.ESTALE)
        yield b" and half"

    try:
        return str(publish(path, blocks()))
    except ip.PlanFileError as error:
        return str(error)


@pytest.mark.parametrize("there", [True, False])
def test_temporary_file_that_was_swept(tmp_path: Path, there: bool) -> None:
    """A file that cannot be written any more is an error, unless another builder has named it."""
    message = in_child(publish_swept, tmp_path / "a", there)
    reason = os.strerror(errno.ESTALE)
    cure = "check its permissions and its file system"
    failed = f"{tmp_path / 'a'} must be written; got '{reason}'; {cure}"
    assert ("False" if there else failed) == message
    assert ({"a": b"half and half"} if there else {}) == tree(tmp_path)


def save_one_by_one(root: Path) -> tuple[int, int]:
    """Save in one thread; before the fourth chunk gets its name, another builder saves all."""
    overtaken = False

    def event(call: str, arguments: tuple[object, ...]) -> None:
        nonlocal overtaken
        if call == "os.link" and not overtaken and "chunk-00003" in str(arguments[1]):
            overtaken = True
            ip.save(PLAN, root, epochs=range(2), units_per_chunk=256)

    sys.addaudithook(event)
    with ThreadPoolExecutor(1) as pool:
        saved = ip.save(PLAN, root, epochs=range(2), units_per_chunk=256, executor=pool)
    return saved.num_written, saved.num_kept


def test_counts_only_what_it_wrote(tmp_path: Path, saved: Path) -> None:
    """A chunk that another builder named first counts as one that was there."""
    assert (3, 5) == in_child(save_one_by_one, tmp_path / "b.plan")
    assert tree(saved) == tree(tmp_path / "b.plan")


@pytest.mark.parametrize("reason", [errno.EINVAL, errno.ENOTSUP])
def test_file_systems_that_sync_no_folders(
    tmp_path: Path, saved: Path, monkeypatch: pytest.MonkeyPatch, reason: int
) -> None:
    """Where a folder cannot be synced, a build does without."""
    sync = os.fsync

    def fsync(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(reason, os.strerror(reason))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    ip.save(PLAN, tmp_path / "b.plan", epochs=range(2), units_per_chunk=256)
    assert tree(saved) == tree(tmp_path / "b.plan")


def test_systems_that_lack_what_linux_has(tmp_path: Path) -> None:
    """Where POSIX's flags, file locks and open folders are missing, folders can still be used."""
    code = (
        "import os, sys\n"
        "sys.modules['fcntl'] = None\n"
        "for name in ('CLOEXEC', 'NOFOLLOW', 'NONBLOCK', 'NOCTTY', 'DIRECTORY'):\n"
        "    delattr(os, 'O_' + name)\n"
        "os.supports_dir_fd = set()\n"
        "import indexplan as ip\n"
        "from tests.support.trees import PLAN\n"
        "print(ip.save(PLAN, 'a.plan', units_per_chunk=256).num_written)\n"
        "plan = ip.load('a.plan')\n"
        "print(plan == PLAN, ip.verify(plan).ok, plan.batch(0, 1, step=2, rank=1)[0])\n"
        "os.symlink(os.path.abspath('a.plan/plan.json'), 'link')\n"
        "os.replace('link', 'a.plan/plan.json')\n"
        "try: ip.load('a.plan')\n"
        "except ip.PlanFileError as error: print(error)\n"
        "ip.save(PLAN, 'memory://a.plan')\n"
        "try: ip.load('memory://a.plan').batch(0, 1, step=2, rank=1)\n"
        "except ip.IndexPlanError as error: print(error)\n"
    )
    assert (
        f"4\nTrue True {PLAN.batch(0, 1, step=2, rank=1)[0]}\n"
        f"{tmp_path}/a.plan/plan.json must be a plain file; got a link; put the file itself in "
        "its place, or choose another path\n"
        "reading from an object store needs POSIX file locks, which this system lacks; copy the "
        "plan to a folder, and read it there\n"
    ) == _run(code, tmp_path)


@dataclass(frozen=True, eq=False)
class Unreadable(ip.Sequential):
    """An order that reads a file that is not there."""

    algorithm = "unreadable-test"

    def fill(self, epoch: int, starts: np.ndarray, stops: np.ndarray, out: np.ndarray) -> None:
        raise FileNotFoundError(errno.ENOENT, "nowhere", "table.bin")


@pytest.mark.parametrize("place", ["folder", "memory"])
@pytest.mark.parametrize("found", [False, True])
def test_errors_of_an_order(tmp_path: Path, place: str, found: bool) -> None:
    """An error of the order's own is raised as it is, and not said to be the chunk's."""
    path = str(tmp_path / "a.plan") if place == "folder" else f"memory://{tmp_path}/a.plan"
    if found:
        ip.save(ip.Plan(Unreadable(100), batch_size=8), path, part=(2, 2))
        from indexplan.stores.open import store_of

        store_of(path).publish("epoch-00000/chunk-00000.npy", [b"something"])
    with pytest.raises(FileNotFoundError, match=re.escape("table.bin")):
        ip.save(ip.Plan(Unreadable(100), batch_size=8), path)


def test_names_with_colons(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder's name may look a little like a URL."""
    monkeypatch.chdir(tmp_path)
    for path in ("run::1.plan", "run:1.plan"):
        ip.save(PLAN, path)
        assert PLAN == ip.load(path)
    assert {"run::1.plan", "run:1.plan"} == {path.name for path in tmp_path.iterdir()}
