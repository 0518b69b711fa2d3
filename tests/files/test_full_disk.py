"""Full disks, quotas, limits, and folders that are locked, missing or taken away: a clear error.

Nothing is half-written, and the same build, run again, finishes what there is.
"""

import errno
import os
import platform
import re
import resource
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import indexplan as ip
from tests.support.builders import KINDS, digests
from tests.support.children import become_nobody, in_child
from tests.support.refused_calls import refuse

FREE = "free some space, then run it again"
CHECK = "check its permissions and its file system"
FILE = r"epoch-\d{5}/chunk-\d{5}(\.offsets)?\.(npy|xxh64)"


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    """The digests of undisturbed builds."""
    found = {}
    for kind in ("many", "bins", "large"):
        root = tmp_path_factory.mktemp(kind) / "a.plan"
        KINDS[kind].save(root)
        found[kind] = digests(root)
    return found


def check_mended(kind: str, root: Path, expected: dict[str, str]) -> None:
    """What was published is whole, and the same build, run again, finishes it and sweeps up."""
    published = {name: digest for name, digest in digests(root).items() if name[-4:] != ".tmp"}
    assert published.items() <= expected.items()
    KINDS[kind].save(root)
    assert expected == digests(root)
    assert ip.verify(ip.load(root)).ok


def saved(kind: str, root: Path, **options: Any) -> str:
    """Build; return the error, if there is one."""
    try:
        KINDS[kind].save(root, **options)
    except ip.PlanFileError as error:
        return str(error)
    return "built"


def save_refused(kind: str, root: Path, call: str, error: int, files: int) -> str:
    """Build, while the kernel refuses a call once some files were opened; return the error."""
    opened = 0

    def event(name: str, arguments: tuple[Any, ...]) -> None:
        nonlocal opened
        if name == "open" and str(arguments[0]).endswith(".tmp"):
            opened += 1
            if opened == files:  # in the thread that is about to write it
                refuse(call, error)

    if files == 0:
        refuse(call, error)
    sys.addaudithook(event)
    return saved(kind, root)


@pytest.mark.parametrize("kind", ["many", "bins"])
@pytest.mark.parametrize("files", [0, 2, 6])  # the first is plan.json
@pytest.mark.parametrize(
    ("call", "error", "got", "cure"),
    [
        ("write", errno.ENOSPC, "No space left on device", FREE),
        ("link", errno.EDQUOT, "Disk quota exceeded", FREE),
        ("mkdir", errno.ENOSPC, "No space left on device", FREE),
        ("fsync", errno.EIO, "Input/output error", CHECK),
    ],
)
def test_calls_that_fail(
    kind: str,
    undisturbed: dict[str, dict[str, str]],
    tmp_path: Path,
    call: str,
    error: int,
    got: str,
    cure: str,
    files: int,
) -> None:
    """Whatever call fails, and whenever, nothing gets its name that is not whole and synced."""
    root = tmp_path / "a.plan"
    message = in_child(save_refused, kind, root, call, error, files)
    what = r"(/epoch-\d{5})? must be a folder that can be made"
    if call != "mkdir" and not (call == "fsync" and files == 0):
        what = f"/{FILE if files else 'plan.json'} must be written"
    assert re.fullmatch(f"{root}{what}; got '{got}'; {cure}", message), message
    assert files or {} == digests(root)
    check_mended(kind, root, undisturbed[kind])


def save_limited(root: Path, num_bytes: int) -> str:
    """Build, where no file may be larger than this; return the error."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, num_bytes))
    return saved("large", root)


@pytest.mark.parametrize("num_bytes", [1_000_000, 4_300_000])
def test_limit_in_mid_file(
    undisturbed: dict[str, dict[str, str]], tmp_path: Path, num_bytes: int
) -> None:
    """A file that the disk takes only in part, in its first block or a later one, is removed."""
    root = tmp_path / "a.plan"
    limit = "raise the limit on file sizes, then run it again"
    said = rf"{root}/{FILE} must be written; got 'File too large'; {limit}"
    assert re.fullmatch(said, in_child(save_limited, root, num_bytes))
    check_mended("large", root, undisturbed["large"])


# Folders that are lost.


@pytest.fixture
def folder(place: Path) -> Path:
    """A folder that anybody may write to."""
    place.chmod(0o777)
    return place


def save_until(root: Path, units: int, disturb: Callable[[Path], None]) -> str:
    """Build as nobody; do something to the directory after some units; return the error."""
    become_nobody()
    disturbed = False

    def progress(done: int, _: int) -> None:
        nonlocal disturbed
        if done >= units and not disturbed:
            disturb(root)
            disturbed = True

    return saved("many", root, progress=progress)


def lock(root: Path) -> None:
    """Forbid to write to the plan directory and all below it."""
    for folder in (*root.glob("epoch-*"), root):
        folder.chmod(0o555)


def hide(root: Path) -> None:
    """Forbid to look up names in the plan directory."""
    root.chmod(0o666)


def remove(root: Path) -> None:
    """Remove the plan directory, whatever is written to it meanwhile."""
    while root.exists():
        shutil.rmtree(root, ignore_errors=True)


@pytest.mark.parametrize("units", [0, 1000, 9000, 12_000])
@pytest.mark.parametrize("disturb", [lock, hide, remove])
def test_folder_that_is_lost(
    folder: Path,
    undisturbed: dict[str, dict[str, str]],
    disturb: Callable[[Path], None],
    units: int,
) -> None:
    """A builder whose folder is locked or removed under its hands says so, about what it was at.

    It leaves what it published, and does not make the folder again.
    """
    root = folder / "a.plan"
    message = in_child(save_until, root, units, disturb)
    for locked in (root, *root.glob("epoch-*")):
        if disturb is not remove:
            locked.chmod(0o755)
    reason, cure = (errno.ENOENT, "check the path") if disturb is remove else (errno.EACCES, CHECK)
    at = r"(/epoch-\d{5}/chunk-\d{5}\.(npy|xxh64)|/plan\.json) must be (written|readable)"
    at += r"|(/epoch-\d{5})? must be (a folder that can be made|cleared of temporary files)"
    nowhere = (
        f"{root} must be there, for every worker to see; got no plan.json there on "
        f"{platform.node()}; if nobody removed it, choose a path on shared storage"
    )
    if units == 12_000 and disturb is lock:  # all files are there, and none is to be removed
        assert "built" == message
    elif not (disturb is remove and message == nowhere):
        assert re.fullmatch(rf"{root}({at}); got '{os.strerror(reason)}'; {cure}", message), message
    assert root.exists() == (disturb is not remove)
    check_mended("many", root, undisturbed["many"])
