"""Plan directories in object stores that are read once what the error names is put right."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import fsspec

import indexplan as ip
from indexplan.cli.main import main
from indexplan.stores.open import store_of
from tests.errors.catalogue.made import CHUNK, STORED, saved
from tests.errors.catalogue.remotes import CASES, URL, USER, local, store
from tests.support.cures import after, where_all_may_enter

met = after(CASES)


def read(url: str, cache: str = "fresh") -> Callable[[], None]:
    """Read a plan, keeping what is read in a folder of one's own."""

    def do() -> None:
        with patch.dict("os.environ", INDEXPLAN_CACHE=str(Path(cache).absolute())):
            plan = ip.load(url)
            assert plan == STORED
            assert 300 == plan.order.take(0, 300)[0]

    return do


def copied() -> None:
    """Copy the plan to a folder, and read it there."""
    fsspec.filesystem("memory").get(store("copied"), "copied.plan", recursive=True)
    read("copied.plan")()


def built() -> None:
    """Build what is not there with the command."""
    size = ["--num-samples", "1000", "--world-size", "3", "--batch-size", "16"]
    assert 0 == main(["build", URL, *size])
    ip.verify(ip.load(URL))


def elsewhere() -> None:
    """Choose another path."""
    saved("memory://elsewhere.plan")
    read("memory://elsewhere.plan")()


def restored(url: str, cache: str) -> Callable[[], None]:
    """Verify the plan, which finds something, restore the chunk, and read it again."""

    def do() -> None:
        assert 1 == main(["verify", url])
        chunk = saved("copy.plan") / CHUNK
        fsspec.filesystem("memory").pipe_file(f"{url}/{CHUNK}", chunk.read_bytes())
        read(url, cache)()

    return do


def folder_restored() -> None:
    """Restore plan.json, or build the plan again at another path."""
    shutil.copy(saved("b.plan") / "plan.json", "a.plan")
    for name in ("a.plan", "b.plan"):
        read(f"local://{Path(name).absolute()}")()


def own_folder() -> None:
    """Delete the folder that others can write to."""
    shutil.rmtree(Path("shared", USER))
    read("memory://shared-0.plan", "shared")()


def written_there() -> None:
    """Write the URL with the letters of the store, without a password."""
    store()
    read(URL)()


def kept_again(at: int) -> Callable[[], None]:
    """Delete the copy, and fetch it again."""

    def do() -> None:
        for path in Path("kept").glob(f"{USER}/*/{CHUNK}"):
            path.unlink()
        read(f"memory://kept-{at}.plan", "kept")()

    return do


def allowed(name: str) -> Callable[[], None]:
    """Do it again as somebody who may."""

    def do() -> None:
        place = store_of(local())
        assert place.has("plan.json")
        assert place.kind()
        assert place.names()
        assert place.piece("plan.json", 0, 1)
        place.publish("new", [b""])

    return where_all_may_enter(met(name, do))


CURED = {
    "a URL of no store": met("a URL of no store", written_there),
    "a URL with a password": met("a URL with a password", written_there),
    "a plan.json that is gone": met(
        "a plan.json that is gone", store, lambda: store_of(URL).open("plan.json")
    ),
    "a chunk that is gone": met(
        "a chunk that is gone", lambda: saved("memory://right.plan"), read("memory://right.plan")
    ),
    "a kept chunk whose header was edited": met(
        "a kept chunk whose header was edited", kept_again(9)
    ),
    "a kept chunk that was edited": met("a kept chunk that was edited", kept_again(200)),
    **{name: allowed(name) for name, _ in CASES if "locked" in name},
    "no file locks": met("no file locks", copied),
    "a file that ends too soon": met("a file that ends too soon", copied),
    "a URL of more than one place": met("a URL of more than one place", elsewhere),
    "nothing there": met("nothing there", built),
    "a file at the URL": met("a file at the URL", elsewhere),
    "a folder of something else": met("a folder of something else", elsewhere),
    "no temporary folder": met("no temporary folder", elsewhere),
    "a plan.json that is huge": met("a plan.json that is huge", folder_restored),
    "no home folder for what is kept": met(
        "no home folder for what is kept", read("memory://homeless.plan")
    ),
    "a file for what is kept": met("a file for what is kept", read("memory://file-0.plan")),
    "a folder of others for what is kept": met(
        "a folder of others for what is kept", read("memory://shared-0.plan"), own_folder
    ),
    "a chunk of another size": met(
        "a chunk of another size", restored("memory://cache-1.plan", "cache")
    ),
    "a chunk of other bytes": met(
        "a chunk of other bytes", restored("memory://cache-1152.plan", "cache")
    ),
}
