"""Building plan directories: again, by many at once, killed, on full disks and locked folders."""

import errno
import os
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

import indexplan as ip
from tests.trees import PLAN, tree


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A plan directory of 2 epochs in 8 chunks."""
    ip.save(PLAN, tmp_path / "a.plan", epochs=range(2), units_per_chunk=256)
    return tmp_path / "a.plan"


def test_saving_again_keeps_every_byte(saved: Path) -> None:
    """A second save compares, writes nothing, and says so."""
    before = tree(saved)
    times = {file: file.stat().st_mtime_ns for file in saved.rglob("*.npy")}
    result = ip.save(PLAN, saved, epochs=range(2), units_per_chunk=256)
    assert (0, 8) == (result.num_written, result.num_kept)
    assert before == tree(saved)
    assert times == {file: file.stat().st_mtime_ns for file in saved.rglob("*.npy")}


def test_another_partition_is_the_same_file(saved: Path) -> None:
    """Two saves to one path agree if their orders and epochs do; the first default stays."""
    before = tree(saved)
    other = PLAN.replace(world_size=7, batch_size=5, remainder="drop")
    ip.save(other, saved, epochs=range(2), units_per_chunk=256)
    assert before == tree(saved)


@pytest.mark.parametrize("lost", ["manifest.json", "blocks.npy", "epoch-00001/chunk-00002.npy"])
def test_building_goes_on(saved: Path, lost: str) -> None:
    """A build that lacks files is half-built, until the same build has been run again."""
    before = tree(saved)
    (saved / "manifest.json").unlink()
    (saved / lost).unlink(missing_ok=True)
    (saved / "epoch-00000" / ".chunk-00000.npy.1-ab.tmp").write_bytes(b"left by a killed builder")
    with pytest.raises(ip.PlanFileError) as error:
        ip.load(saved)
    assert (
        f"{saved} must be finished; got a half-built one; run the same build again to finish it"
        == str(error.value)
    )
    ip.save(PLAN, saved, epochs=range(2), units_per_chunk=256)
    assert before == tree(saved)


def _save(path: str) -> None:
    ip.save(PLAN, path, epochs=range(2), units_per_chunk=16)


def test_many_builders_write_one_plan(tmp_path: Path) -> None:
    """Processes that build the same plan at once all succeed, and the bytes are those of one."""
    _save(str(tmp_path / "one.plan"))
    with ProcessPoolExecutor(4, mp_context=get_context("spawn")) as pool:
        for future in [pool.submit(_save, str(tmp_path / "four.plan")) for _ in range(4)]:
            future.result()
    assert tree(tmp_path / "one.plan") == tree(tmp_path / "four.plan")


def test_killed_builders_leave_nothing_wrong(tmp_path: Path) -> None:
    """Builders killed in mid-build, again and again, end in the bytes of an undisturbed build."""
    save = (
        "import indexplan as ip, sys\n"
        "def said(done, total): print(done, flush=True)\n"
        "plan = ip.Plan(ip.Shuffle(40_000, seed=1), batch_size=8)\n"
        "ip.save(plan, sys.argv[1], units_per_chunk=1000, progress=said)\n"
    )
    command = [sys.executable, "-c", save]
    for chunks in (1, 5, 9, 20, 33):
        builder = subprocess.Popen([*command, tmp_path / "a.plan"], stdout=subprocess.PIPE)
        assert builder.stdout is not None
        for _ in range(chunks):
            builder.stdout.readline()
        builder.kill()
        builder.communicate()
        assert not (tmp_path / "a.plan/manifest.json").exists()
    subprocess.run([*command, tmp_path / "a.plan"], check=True, capture_output=True)
    subprocess.run([*command, tmp_path / "b.plan"], check=True, capture_output=True)
    assert tree(tmp_path / "b.plan") == tree(tmp_path / "a.plan")
    assert ip.verify(ip.load(tmp_path / "a.plan").replace(world_size=2)).ok


def test_full_disk(tmp_path: Path) -> None:
    """A file that cannot be written whole is a clear error, and never gets its name."""
    code = (
        "import resource, indexplan as ip\n"
        "plan = ip.Plan(ip.Shuffle(100_000), batch_size=8)\n"
        "plan.order.take(0, 0)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))\n"
        "try: ip.save(plan, 'a.plan')\n"
        "except ip.PlanFileError as error: print(error)\n"
    )
    out = _run(code, tmp_path)
    assert (
        "a.plan/epoch-00000/chunk-00000.npy must be written; got 'File too large'; raise the limit "
        "on file sizes, then run the same build again\n"
    ) == out
    assert ["build.json"] == list(tree(tmp_path / "a.plan"))
    ip.save(ip.Plan(ip.Shuffle(100_000), batch_size=8), tmp_path / "a.plan")
    assert ip.verify(ip.load(tmp_path / "a.plan").replace(world_size=1)).ok


def test_folder_that_may_not_be_written(tmp_path: Path) -> None:
    """A folder without permission is a clear error, and stays as it was."""
    (tmp_path / "locked").mkdir(mode=0o555)
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(folder.stat().st_mode | 0o055)
    code = (
        "import os, indexplan as ip\n"
        "plan = ip.Plan(ip.Shuffle(100), batch_size=8)\n"
        "save = ip.save\n"
        "if os.geteuid() == 0: os.seteuid(65534)\n"
        "try: save(plan, 'locked/a.plan')\n"
        "except ip.PlanFileError as error: print(error)\n"
    )
    assert (
        "locked/a.plan must be a folder that can be made; got 'Permission denied'; check its "
        "permissions and its file system\n"
    ) == _run(code, tmp_path)
    assert {} == tree(tmp_path)


def _run(code: str, folder: Path) -> str:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
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
