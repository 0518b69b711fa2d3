"""Folders that are locked, missing, misnamed or taken away: a clear error, and nothing broken."""

import contextlib
import errno
import io
import os
import platform
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import indexplan as ip
from indexplan.cli import main
from tests.support.builders import KINDS, digests
from tests.support.children import become_nobody, in_child

CHECK = "check its permissions and its file system"
WORDS = ["--num-samples", "100", "--batch-size", "8"]


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that anybody may write to; pytest's own is closed whenever a pytest starts."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o777)
        yield Path(name)


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The digests of an undisturbed build."""
    root = tmp_path_factory.mktemp("undisturbed") / "a.plan"
    KINDS["many"].save(root)
    return digests(root)


def check_mended(root: Path, expected: dict[str, str]) -> None:
    """What was published is whole, and the same build, run again, finishes it and sweeps up."""
    published = {name: digest for name, digest in digests(root).items() if name[-4:] != ".tmp"}
    assert published.items() <= expected.items()
    KINDS["many"].save(root)
    assert expected == digests(root)
    assert ip.verify(ip.load(root)).ok


def save_until(root: Path, units: int, disturb: Callable[[Path], None]) -> str:
    """Build as nobody; do something to the directory after some units; return the error."""
    become_nobody()
    disturbed = False

    def progress(done: int, _: int) -> None:
        nonlocal disturbed
        if done >= units and not disturbed:
            disturb(root)
            disturbed = True

    try:
        KINDS["many"].save(root, progress=progress)
    except ip.PlanFileError as error:
        return str(error)
    return "built"


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


def said(root: Path, reason: int, cure: str) -> str:
    """The messages of a build that lost its folder: about the file or the folder it was at."""
    file = r"(/epoch-\d{5}/chunk-\d{5}\.(npy|xxh64)|/plan\.json) must be (written|readable)"
    folder = r"(/epoch-\d{5})? must be (a folder that can be made|cleared of temporary files)"
    return rf"{root}({file}|{folder}); got '{os.strerror(reason)}'; {cure}"


@pytest.mark.parametrize("units", [0, 1000, 9000, 12_000])
@pytest.mark.parametrize("disturb", [lock, hide])
def test_permission_lost(
    folder: Path, expected: dict[str, str], disturb: Callable[[Path], None], units: int
) -> None:
    """A builder whose folder is locked under its hands says so, and leaves what it published."""
    root = folder / "a.plan"
    message = in_child(save_until, root, units, disturb)
    for locked in (root, *root.glob("epoch-*")):
        locked.chmod(0o755)
    done = units == 12_000 and disturb is lock  # all files are there, and none is to be removed
    expected_words = "built" if done else said(root, errno.EACCES, CHECK)
    assert re.fullmatch(expected_words, message), message
    check_mended(root, expected)


@pytest.mark.parametrize("units", [0, 1000, 9000, 12_000])
def test_folder_that_vanishes(folder: Path, expected: dict[str, str], units: int) -> None:
    """A builder whose folder is removed stops, and does not make it again."""
    root = folder / "a.plan"
    message = in_child(save_until, root, units, remove)
    nowhere = (
        f"{root} must be there, for every worker to see; got no plan.json there on "
        f"{platform.node()}; if nobody removed it, choose a path on shared storage"
    )
    assert message == nowhere or re.fullmatch(said(root, errno.ENOENT, "check the path"), message)
    assert not root.exists()
    check_mended(root, expected)


def command(*words: str) -> tuple[int, str]:
    """Run the command as nobody; return its exit code, and what it wrote to stderr."""
    become_nobody()
    with contextlib.redirect_stderr(io.StringIO()) as err, contextlib.redirect_stdout(err):
        return main(words), err.getvalue()


def read_only(folder: Path) -> str:
    """A folder that may not be written to."""
    (folder / "locked").mkdir(mode=0o555)
    return "locked/a.plan"


def without_search(folder: Path) -> str:
    """A folder whose names may be listed, but not be looked up."""
    (folder / "hidden").mkdir()
    (folder / "hidden").chmod(0o666)
    return "hidden/a.plan"


def read_only_plan(folder: Path) -> str:
    """A plan directory that may not be written to."""
    (folder / "a.plan").mkdir(mode=0o555)
    return "a.plan"


def file(folder: Path) -> str:
    """A file in the place of the plan directory."""
    (folder / "a.plan").write_text("not a plan")
    return "a.plan"


def below_file(folder: Path) -> str:
    """A file in the place of a folder above it."""
    (folder / "a").write_text("not a folder")
    return "a/a.plan"


def missing(_: Path) -> str:
    """A folder that is not there."""
    return "missing/a.plan"


def long(_: Path) -> str:
    """A name that no file system takes."""
    return "a" * 300


def loop(folder: Path) -> str:
    """A link to itself."""
    (folder / "a.plan").symlink_to("a.plan")
    return "a.plan"


MADE = " must be a folder that can be made; got"


@pytest.mark.parametrize(
    ("place", "message"),
    [
        (read_only, f"{MADE} 'Permission denied'; {CHECK}"),
        (without_search, f"{MADE} 'Permission denied'; {CHECK}"),
        (read_only_plan, f"/plan.json must be written; got 'Permission denied'; {CHECK}"),
        (file, " must be new, empty or a plan directory; got a file; choose another path"),
        (below_file, f"{MADE} 'Not a directory'; check the path"),
        (missing, f"{MADE} 'No such file or directory'; check the path"),
        (long, f"{MADE} 'File name too long'; check the path"),
        (loop, " must be new, empty or a plan directory; got a file; choose another path"),
    ],
)
def test_command_in_a_bad_place(folder: Path, place: Callable[[Path], str], message: str) -> None:
    """The command says in a line what is wrong with its path, changes nothing, exits with 1."""
    path = str(folder / place(folder))
    before = sorted(folder.rglob("*"))
    code, err = in_child(command, "build", path, *WORDS)
    assert (1, f"indexplan: {path}{message}\n") == (code, err)
    assert before == sorted(folder.rglob("*"))


@pytest.mark.parametrize("verb", ["show", "verify"])
def test_reading_what_may_not_be_read(folder: Path, verb: str) -> None:
    """A reader that may not look into a plan directory, or the folder above it, says so."""
    root = folder / "a.plan"
    KINDS["tiny"].save(root)
    for locked in (root, folder):
        locked.chmod(0o600)
        code, err = in_child(command, verb, str(root))
        said = rf"{root}(/[a-z.]+)? must be readable; got 'Permission denied'; {CHECK}"
        assert re.fullmatch(f"indexplan: {said}\n", err)
        assert 1 == code
        locked.chmod(0o777)
    assert ip.verify(ip.load(root)).ok
