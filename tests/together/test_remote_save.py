"""Plan directories in object stores: built, in parts and at once, and never replaced."""

from pathlib import Path
from typing import Any

import fsspec
import pytest

import indexplan as ip
from indexplan.stores.open import store_of
from tests.support.fresh import printed
from tests.support.remote import AT_ONCE, SECRET, files_at, refused, store
from tests.support.trees import PLAN, tree


def test_place_holds_what_a_folder_holds(anywhere: str, tmp_path: Path) -> None:
    """A store gets the files of a local plan directory, byte for byte, and nothing else."""
    ip.save(PLAN, tmp_path / "a.plan", epochs=range(2), units_per_chunk=256)
    first = ip.save(PLAN, anywhere, epochs=range(2), units_per_chunk=256)
    again = ip.save(PLAN, anywhere + "/", epochs=range(2), units_per_chunk=256)
    assert (anywhere, 8, 0) == (first.path, first.num_written, first.num_kept)
    assert (anywhere, 0, 8) == (again.path, again.num_written, again.num_kept)
    assert tree(tmp_path / "a.plan") == files_at(anywhere)


@pytest.mark.parametrize(
    ("kind", "num", "name"),
    [
        ("npy", 12, "epoch-00000/sub-epoch-00001/rank-00002.npy"),
        ("parquet", 1, "epoch-00000.parquet"),
    ],
)
def test_export(anywhere: str, tmp_path: Path, kind: str, num: int, name: str) -> None:
    """An export to a store holds what one to a folder does, and is compared as strictly."""
    fs, root = fsspec.core.url_to_fs(anywhere)
    done = ip.export(PLAN, anywhere, format=kind)
    assert (anywhere, num, 0) == (done.path, done.num_written, done.num_kept)
    ip.export(PLAN, tmp_path / "a", format=kind)
    right = tree(tmp_path / "a")
    assert right == files_at(anywhere)
    again = ip.export(PLAN, anywhere, format=kind)
    assert (0, num, done.num_bytes) == (again.num_written, again.num_kept, again.num_bytes)
    fs.pipe_file(f"{root}/{name}", right[name][:-1] + b"x")
    said = refused(ip.export, PLAN, anywhere, format=kind)
    assert said.startswith(f"{anywhere}/{name} must hold what the plan deals; got other bytes in ")
    fs.rm_file(f"{root}/{name}")
    assert 1 == ip.export(PLAN, anywhere, format=kind).num_written
    other = PLAN.replace(batch_size=5)
    assert "; got one with plan.batch_size" in refused(ip.export, other, anywhere, format=kind)
    assert " or a plan directory; got a folder that holds " in refused(ip.save, PLAN, anywhere)
    assert right == files_at(anywhere)


def test_killed_builders(url: str) -> None:
    """Builders and parts that die at any moment, three at once, leave what the next completes."""
    said = printed("-m", "tests.kills", "builders", "12", "7", url)
    assert said.endswith("build, nothing left over\n")


def test_other_builders_at_once(url: str) -> None:
    """Of processes that build different plans at one URL at once, one succeeds."""
    code = AT_ONCE.format("save(_)").replace(
        "def work(_)",
        "def save(seed):\n"
        "    plan = PLAN.replace(order=ip.Shuffle(1000, seed=seed))\n"
        "    try: return bool(ip.save(plan, url, units_per_chunk=256))\n"
        "    except ip.PlanFileError as error: return 'with plan.order' in str(error) and seed\n"
        "def work(_)",
    )
    done = eval(printed("-c", code, url))  # noqa: S307 (a list of our own)
    (winner,) = [seed for seed, said in enumerate(done) if said is True]
    assert [True if seed == winner else seed for seed in range(3)] == done
    plan = PLAN.replace(order=ip.Shuffle(1000, seed=winner))
    assert plan == ip.load(url)
    assert ip.verify(ip.load(url)).ok


def test_temporary_folder_without_room(url: str, tmp_path: Path) -> None:
    """A chunk for which there is no room on the way to the store is a clear error."""
    code = (
        "import resource, sys, indexplan as ip\n"
        "from tests.support.trees import PLAN\n"
        "ip.save(PLAN, 'memory://a.plan')\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))\n"
        "try: ip.save(PLAN, sys.argv[1])\n"
        "except ip.PlanFileError as error: print(error)\n"
    )
    assert (
        f"{url}/epoch-00000/chunk-00000.npy must be written to a temporary file in $TMPDIR first; "
        "got 'File too large'; raise the limit on file sizes, then run it again\n"
    ) == printed("-c", code, url, TMPDIR=str(tmp_path))
    assert {} == tree(tmp_path)
    assert [f"{url}/plan.json"] == [f"s3://{path}" for path in store().find(url)]


@pytest.mark.parametrize("size", [100, 20 * 2**20])
def test_file_that_is_there_stays(anywhere: str, size: int) -> None:
    """A file is never replaced, whether it is sent at once or in pieces."""
    from fsspec.core import url_to_fs

    place = store_of(anywhere)
    assert place.publish("a/b", [b"a" * size])
    fs, root = url_to_fs(anywhere, use_listings_cache=False)
    before = fs.info(f"{root}/a/b")
    assert not place.publish("a/b", [b"b" * size])
    assert before == fs.info(f"{root}/a/b")
    with place.open("a/b") as stream:
        assert b"a" * size == stream.read()


def test_stores_that_write_in_place(tmp_path: Path) -> None:
    """In a store that would replace files, they are looked for first."""
    url = f"local://{tmp_path}/a.plan"
    saved = ip.save(PLAN, url, units_per_chunk=256)
    assert 4 == saved.num_written
    ip.save(PLAN, tmp_path / "b.plan", units_per_chunk=256)
    assert tree(tmp_path / "b.plan") == tree(tmp_path / "a.plan")
    assert not store_of(url).publish("plan.json", [b"another"])
    other = PLAN.replace(order=ip.Shuffle(1000, seed=6))
    message = refused(ip.save, other, url, units_per_chunk=256)
    assert message.startswith(f"{url} must be a build of the same plan and epochs; got one with")
    assert tree(tmp_path / "b.plan") == tree(tmp_path / "a.plan")


class Breaking(fsspec.get_filesystem_class("local")):  # type: ignore[misc]
    """A store that writes in place, and breaks off in the middle, or when it is done."""

    protocol = ("breaking", "late")
    cachable = False

    def put_file(self, path1: str, path2: str, **options: Any) -> None:
        data = Path(path1).read_bytes()
        if "late" in path2:
            Path(path2).write_bytes(data)
        elif "half" in path2:
            Path(path2).write_bytes(data[: len(data) // 2])
        raise OSError(5, f"connection lost, {SECRET}")


def test_uploads_that_break_off(tmp_path: Path) -> None:
    """What an upload has left by half is not taken for somebody else's file."""
    fsspec.register_implementation("breaking", f"{__name__}.Breaking", clobber=True)
    place = store_of(f"breaking://{tmp_path}")
    cure = "check the bucket, the credentials and the network"
    for name in ("half", "none"):
        expected = f"{place.path}/{name} must be written; got OSError (Input/output error); {cure}"
        assert expected == refused(place.publish, name, [b"abcd"])
    assert not place.publish("late", [b"abcd"])  # it is there whole, whoever wrote it
    assert {"half": b"ab", "late": b"abcd"} == tree(tmp_path)


def test_uploads_that_collide(url: str) -> None:
    """An upload that S3 refuses since another one is under way is tried again."""
    assert "collide" in url
    assert store_of(url).publish("a", [b"a"])
    with store_of(url).open("a") as stream:
        assert b"a" == stream.read()


def test_memory_is_bounded(url: str) -> None:
    """Building and reading a chunk of 120 MB takes less than half of it in memory."""
    code = (
        "import resource, sys, indexplan as ip\n"
        "def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024\n"
        "small = ip.Plan(ip.Shuffle(5_000_000), world_size=1, batch_size=8)\n"
        "ip.save(small, 'memory://a.plan'); ip.verify(ip.load('memory://a.plan'))\n"
        "import s3fs; s3fs.S3FileSystem().exists(sys.argv[1])\n"
        "before = peak()\n"
        "plan = ip.Plan(ip.Shuffle(30_000_000), world_size=1, batch_size=8)\n"
        "ip.save(plan, sys.argv[1])\n"
        "built = peak()\n"
        "order = ip.types.Stored(sys.argv[1])\n"
        "order.take(0, 5)\n"
        "print(built - before, peak() - before)\n"
    )
    built, read = map(int, printed("-c", code, url).split())
    assert built < 60
    assert read < 60
