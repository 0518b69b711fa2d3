"""Full disks, quotas, limits and failing disks: a clear error, and nothing half-written."""

import errno
import re
import resource
import sys
from pathlib import Path
from typing import Any

import pytest

import indexplan as ip
from tests.support.builders import KINDS, digests
from tests.support.children import in_child
from tests.support.refused_calls import refuse

FREE = "free some space, then run it again"
CHECK = "check its permissions and its file system"
FILE = r"epoch-\d{5}/chunk-\d{5}(\.offsets)?\.(npy|xxh64)"


@pytest.fixture(scope="module", params=["many", "bins"])
def kind(request: pytest.FixtureRequest) -> str:
    """The name of a plan to build."""
    return str(request.param)


@pytest.fixture(scope="module")
def expected(kind: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The digests of an undisturbed build."""
    root = tmp_path_factory.mktemp("undisturbed") / "a.plan"
    KINDS[kind].save(root)
    return digests(root)


def check_mended(kind: str, root: Path, expected: dict[str, str]) -> None:
    """What is there is whole, and the same build, run again, finishes it."""
    assert digests(root).items() < expected.items()
    KINDS[kind].save(root)
    assert expected == digests(root)
    assert ip.verify(ip.load(root)).ok


def save_refused(kind: str, root: Path, call: str, error: int, files: int) -> str:
    """Build, while the kernel refuses a call once some files were opened; return the error."""
    opened = 0

    def event(name: str, arguments: tuple[Any, ...]) -> None:
        nonlocal opened
        if name == "open" and str(arguments[0]).endswith(".tmp"):
            opened += 1
            if opened == files:  # in the thread that is about to write it
                refuse(call, error)

    sys.addaudithook(event)
    try:
        KINDS[kind].save(root)
    except ip.PlanFileError as raised:
        return str(raised)
    return "built"


@pytest.mark.parametrize("files", [2, 6])  # the first is plan.json
@pytest.mark.parametrize(
    ("call", "error", "got", "cure"),
    [
        ("write", errno.ENOSPC, "No space left on device", FREE),
        ("write", errno.EDQUOT, "Disk quota exceeded", FREE),
        ("link", errno.ENOSPC, "No space left on device", FREE),
        ("fsync", errno.EIO, "Input/output error", CHECK),
    ],
)
def test_calls_that_fail(
    kind: str,
    expected: dict[str, str],
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
    assert re.fullmatch(f"{root}/{FILE} must be written; got '{got}'; {cure}", message)
    check_mended(kind, root, expected)


def refuse_at_once(kind: str, root: Path, call: str, error: int) -> str:
    """Build, while the kernel refuses a call from the start; return the error."""
    refuse(call, error)
    try:
        KINDS[kind].save(root)
    except ip.PlanFileError as raised:
        return str(raised)
    return "built"


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (
            "mkdir",
            errno.ENOSPC,
            f" must be a folder that can be made; got 'No space left on device'; {FREE}",
        ),
        (
            "write",
            errno.ENOSPC,
            f"/plan.json must be written; got 'No space left on device'; {FREE}",
        ),
        (
            "fsync",
            errno.EIO,
            f" must be a folder that can be made; got 'Input/output error'; {CHECK}",
        ),
    ],
)
def test_disk_that_is_full_before(
    kind: str, expected: dict[str, str], tmp_path: Path, call: str, error: int, said: str
) -> None:
    """A disk that is full when the build starts leaves an empty folder, or none."""
    root = tmp_path / "a.plan"
    assert f"{root}{said}" == in_child(refuse_at_once, kind, root, call, error)
    assert {} == digests(root)
    check_mended(kind, root, expected)


def save_limited(root: Path, num_bytes: int) -> str:
    """Build, where no file may be larger than this; return the error."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, num_bytes))
    try:
        KINDS["large"].save(root)
    except ip.PlanFileError as raised:
        return str(raised)
    return "built"


@pytest.mark.parametrize("num_bytes", [1_000_000, 4_300_000])
def test_limit_in_mid_file(tmp_path: Path, num_bytes: int) -> None:
    """A file that the disk takes only in part, in its first block or a later one, is removed."""
    root = tmp_path / "a.plan"
    limit = "raise the limit on file sizes, then run it again"
    said = rf"{root}/{FILE} must be written; got 'File too large'; {limit}"
    assert re.fullmatch(said, in_child(save_limited, root, num_bytes))
    KINDS["large"].save(tmp_path / "b.plan")
    check_mended("large", root, digests(tmp_path / "b.plan"))
