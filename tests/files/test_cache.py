"""The folder that keeps chunks of remote plans, in a place that others can write to as well."""

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest

import indexplan as ip
from indexplan.stores.cache import cache_folder
from tests.support.children import NOBODY, become_nobody, in_child
from tests.support.refusals import refused_file as refused
from tests.support.trees import PLAN

CHUNK = "epoch-00000/chunk-00001.npy"
RIGHT = PLAN.order.take(0, 300).tolist()
LEVELS = ["user", "plan", "epoch", "chunk", "part"]


@pytest.fixture
def shared(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that anybody may write to, for what is kept."""
    (place / "shared").mkdir()
    (place / "shared").chmod(0o777)
    monkeypatch.setenv("INDEXPLAN_CACHE", str(place / "shared"))
    return place / "shared"


@pytest.fixture
def order(shared: Path) -> Iterator[ip.types.Stored]:
    """A reader of a plan in a store, of which nothing is kept yet."""
    url = f"memory://{shared}/a.plan"
    ip.save(PLAN, url, units_per_chunk=256)
    yield ip.types.Stored(url)
    fsspec.filesystem("memory").store.clear()


@pytest.mark.parametrize("at", [9, 200, -1])
def test_a_kept_copy_that_was_edited(order: ip.types.Stored, at: int) -> None:
    """A kept chunk is hashed when it is read, and the cure works, also in the same process."""
    assert RIGHT == order.take(0, 300).tolist()
    path = places(order)["chunk"]
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)
    said = refused(lambda: ip.load(order.path).order.take(0, 300))
    assert said.startswith(
        f"{path}, block 0 must have the XXH64 in {CHUNK.replace('.npy', '.xxh64')}, "
    )
    assert said.endswith(f"; delete this copy of what {order.path} holds, to fetch it again")
    path.unlink()
    assert RIGHT == ip.load(order.path).order.take(0, 300).tolist()


def places(order: ip.types.Stored) -> dict[str, Path]:
    """The paths that are made for one chunk, from the outermost to the innermost."""
    path = cache_folder(order.path, order.build.sha256) / CHUNK
    epoch, plan, user = path.parents[:3]
    part = path.with_name(f".{path.name}.part")
    return dict(zip(LEVELS, (user, plan, epoch, path, part), strict=True))


def expected(path: Path, folder: bool, got: str) -> str:
    """The message about a place that somebody else could write to."""
    rule = f"{'folder' if folder else 'file'} that only you, user {os.geteuid()}, can write to"
    cure = "delete it, or set INDEXPLAN_CACHE to a folder of your own"
    return f"{path} must be a {rule}; got {got}; {cure}"


def test_what_is_made(order: ip.types.Stored, shared: Path) -> None:
    """Folders and files are the user's alone, whatever the umask and the place are."""
    before = os.umask(0)
    try:
        assert RIGHT == order.take(0, 300).tolist()
    finally:
        os.umask(before)
    made = {path.relative_to(shared): path.stat().st_mode for path in shared.rglob("*")}
    assert 4 == len(made)
    for mode in made.values():
        assert stat.S_IMODE(mode) == (0o700 if stat.S_ISDIR(mode) else 0o600)


def make(path: Path, folder: bool) -> None:
    """Make a folder, or a file of a chunk's size."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if folder:
        path.mkdir()
    else:
        path.write_bytes(bytes(1152))


PLANTED = ["a link", "a named pipe", "one of mode 777", f"one of user {NOBODY}"]
LINKED = "one with other hard links"  # of a file of the user's


@pytest.mark.parametrize(
    ("level", "planted"),
    [*((level, each) for level in LEVELS for each in PLANTED), ("chunk", LINKED), ("part", LINKED)],
)
def test_planted(
    order: ip.types.Stored,
    precious: Path,
    level: str,
    planted: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What somebody else may have planted, at any level, is refused; deleting it is the cure."""
    path, folder = places(order)[level], level in LEVELS[:3]
    make(path, folder)
    path.chmod(0o700 if "user" in planted else 0o777)
    if "user" in planted and os.geteuid() == 0:
        os.chown(path, NOBODY, NOBODY)
    elif "user" in planted:  # who cannot give files away: whoever asks is another one
        path, folder, planted = places(order)["user"], True, f"one of user {os.geteuid()}"
        monkeypatch.setattr(os, "geteuid", lambda: NOBODY)
    elif planted == LINKED or not planted.startswith("one"):
        path.rmdir() if folder else path.unlink()
    if planted == "a link":
        path.symlink_to(precious.parent if folder else precious)
    elif planted == "a named pipe":
        os.mkfifo(path)
    elif planted == LINKED:
        path.hardlink_to(precious)
    for _ in range(2):
        assert expected(path, folder, planted) == refused(lambda: order.take(0, 300))
    if "user" not in planted:
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
        assert RIGHT == order.take(0, 300).tolist()


def plant(user: Path, chunk: Path) -> None:
    """Make the folders of another user's cache before that user does, and a chunk of zeros."""
    become_nobody()
    os.umask(0)
    chunk.parent.mkdir(parents=True)
    chunk.write_bytes(bytes(1152))
    for folder in (user, *chunk.parents[:2]):
        folder.chmod(0o777)


def test_planted_by_another_user(order: ip.types.Stored) -> None:
    """A cache that another user has made before, with a chunk of the right size, is refused."""
    path = places(order)
    in_child(plant, path["user"], path["chunk"])
    got = f"one of user {NOBODY}" if os.geteuid() == 0 else "one of mode 777"
    assert expected(path["user"], True, got) == refused(lambda: order.take(0, 300))


def test_where_the_cache_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """INDEXPLAN_CACHE comes before XDG_CACHE_HOME, and that before the home folder.

    In the first, each user has a folder of their own.
    """
    key = hashlib.sha256(b"s3://b/a.plan\nid").hexdigest()[:32]
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("INDEXPLAN_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert tmp_path / "home/.cache/indexplan" / key == cache_folder("s3://b/a.plan", "id")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert tmp_path / "xdg/indexplan" / key == cache_folder("s3://b/a.plan", "id")
    monkeypatch.setenv("INDEXPLAN_CACHE", str(tmp_path / "own"))
    for user in (os.geteuid(), 4321):
        monkeypatch.setattr(os, "geteuid", lambda user=user: user)
        assert tmp_path / f"own/indexplan-{user}" / key == cache_folder("s3://b/a.plan", "id")


def test_the_place_itself_may_be_a_link(
    order: ip.types.Stored, shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where INDEXPLAN_CACHE leads is the user's choice."""
    (tmp_path / "link").symlink_to(shared)
    monkeypatch.setenv("INDEXPLAN_CACHE", str(tmp_path / "link"))
    assert RIGHT == ip.types.Stored(order.path).take(0, 300).tolist()
    assert places(order)["chunk"].exists()
