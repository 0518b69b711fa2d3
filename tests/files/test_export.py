"""Exports: what each rank reads as plain arrays, whole, never replaced, in little memory."""

import json
import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

import indexplan as ip
from indexplan.cli import main
from tests.support.children import in_child
from tests.support.examples import examples
from tests.support.listed import Listed, Wrapped
from tests.support.strategies import balanced_plans, plans, start_of, sub_epochs_of
from tests.support.trees import PLAN, tree

DRAWN = plans() | balanced_plans()


def read(root: Path, name: str) -> list[list[int]]:
    """A rank's batches, from its two files, by NumPy alone."""
    indices = np.load(root / f"{name}.npy", mmap_mode="r")
    steps = np.load(root / f"{name}.steps.npy", mmap_mode="r")
    return [indices[a:b].tolist() for a, b in pairwise(steps.tolist())]


def refused(message: str, *args: object, **kwargs: object) -> None:
    """Check that an export raises an error with this message."""
    with pytest.raises(ip.IndexPlanError, match=f"^{re.escape(message)}$"):
        ip.export(*args, **kwargs)  # type: ignore[arg-type]


def test_files(tmp_path: Path) -> None:
    """An export holds two files for each rank of each sub-epoch, and says what it is."""
    out = tmp_path / "a"
    done = ip.export(PLAN, out, epochs=[1, 0])
    names = {
        f"epoch-{e:05d}/sub-epoch-{s:05d}/rank-{r:05d}.{kind}"
        for e in range(2) for s in range(2) for r in range(3) for kind in ("npy", "steps.npy")
    }  # fmt: skip
    files = tree(out)
    assert names | {"export.json"} == set(files)
    said = json.loads(files.pop("export.json"))
    assert {
        "format": "indexplan-export",
        "format_version": 1,
        "dtype": "<u4",
        "plan": json.loads(PLAN.to_json()),
        "plan_fingerprint": PLAN.fingerprint,
    } == said
    size = sum(len(data) for data in files.values())
    counts = {"num_bytes": size, "num_written": 24, "num_kept": 0}
    assert ip.types.Saved(path=str(out), **counts, fingerprint=PLAN.fingerprint) == done
    whole = ip.export(PLAN.replace(sub_epochs=1, world_size=1), tmp_path / "b")
    assert 2 == whole.num_written
    assert (tmp_path / "b/epoch-00000/rank-00000.npy").exists()
    indices = np.load(out / "epoch-00001/sub-epoch-00001/rank-00002.npy")
    steps = np.load(out / "epoch-00001/sub-epoch-00001/rank-00002.steps.npy")
    assert (np.dtype("<u4"), np.dtype("<i8")) == (indices.dtype, steps.dtype)


@examples(20)
@given(plan=DRAWN.filter(lambda plan: plan.world_size * plan.sub_epochs <= 16))
def test_any_plan(tmp_path_factory: pytest.TempPathFactory, plan: ip.Plan) -> None:
    """Cut by its steps, a rank's array is its batches; a resumed plan's finished ones are empty."""
    root = tmp_path_factory.mktemp("any") / "a"
    epochs = range(start_of(plan)[0], start_of(plan)[0] + 2)
    ip.export(plan, root, epochs=epochs)
    places = [place for place in sub_epochs_of(plan, epochs.stop) if place[0] in epochs]
    for epoch, sub_epoch in places:
        for rank in range(plan.world_size or 0):
            folder = f"epoch-{epoch:05d}"
            if plan.sub_epochs > 1:
                folder += f"/sub-epoch-{sub_epoch:05d}"
            expected = [[] for _ in range(plan.steps(epoch, sub_epoch).start)]
            expected += [batch.tolist() for batch in plan.batches(epoch, sub_epoch, rank=rank)]
            assert expected == read(root, f"{folder}/rank-{rank:05d}")
    num = 2 * len(places) * (plan.world_size or 0) + 1 + (plan.balance is not None)
    assert num == len(tree(root))


def test_many_steps_and_large_batches(tmp_path: Path) -> None:
    """Shares of more steps and more indices than are drawn at a time are cut right."""
    plan = ip.Plan(
        ip.Shuffle(2_500_000, seed=1),
        world_size=2,
        batch_size=[ip.Phase(0, 3), ip.Phase(60_000, 100), ip.Phase(1_000_000, 700_000)],
    )
    ip.export(plan, tmp_path / "a")
    for rank in range(2):
        expected = [batch.tolist() for batch in plan.batches(0, rank=rank)]
        assert expected == read(tmp_path / "a/epoch-00000", f"rank-{rank:05d}")
    assert plan.steps(0).stop > 10_000


def test_indices_past_four_bytes(tmp_path: Path) -> None:
    """Indices of more than 2**32 samples are int64; here, of the last few samples of 2**33."""
    large = ip.Plan(ip.Sequential(2**33), world_size=1, batch_size=2**31 - 1, remainder="carry")
    plan = large.replace(batch_size=1, world_size=2, remainder="spread")
    ip.export(plan.resume(large.cursor(0, step=4)), tmp_path / "a")
    assert [[], [], [], [], [2**33 - 4], [2**33 - 2]] == read(
        tmp_path / "a/epoch-00000", "rank-00000"
    )
    assert np.dtype("<i8") == np.load(tmp_path / "a/epoch-00000/rank-00000.npy").dtype


def test_columns(tmp_path: Path) -> None:
    """An export keeps the columns of its order, so that its plan can be opened again."""
    order = Wrapped(Listed(np.arange(300)[::-1], 300, np.arange(200_000) * 0.5))
    plan = ip.Plan(order, world_size=2, batch_size=16)
    done = ip.export(plan, tmp_path / "a")
    files = tree(tmp_path / "a")
    columns = {f"columns/{digest}.npy" for digest in order.columns}
    assert columns == {name for name in files if name.startswith("columns")}
    assert (6, 0) == (done.num_written, done.num_kept)
    assert done.num_bytes == sum(map(len, files.values())) - len(files["export.json"])
    data = json.loads(files["export.json"])["plan"]
    assert plan == ip.Plan.from_json(json.dumps(data), columns=tmp_path / "a/columns")
    ip.save(plan, tmp_path / "a.plan")
    assert {name: files[name] for name in columns} == {
        name: data for name, data in tree(tmp_path / "a.plan").items() if name in columns
    }
    ip.export(ip.load(tmp_path / "a.plan"), tmp_path / "b")
    assert files == tree(tmp_path / "b")
    name = max(columns)
    left = tmp_path / f"a/columns/.{Path(name).name}.indexplan-01234567-1-0123456789ab.tmp"
    left.write_bytes(b"of a killed one")
    os.utime(left, (0, 0))
    (tmp_path / "a" / name).unlink()
    again = ip.export(plan, tmp_path / "a", epochs=range(2))
    assert (5, 5) == (again.num_written, again.num_kept)
    assert files.items() < tree(tmp_path / "a").items()
    assert not left.exists()
    other = "other bytes in block 2"
    cut = files[name][:-1]
    for wrong, got in ((cut, other), (files[name] + b"x", "more bytes"), (cut + b"\x01", other)):
        (tmp_path / "a" / name).write_bytes(wrong)
        rule = f"{tmp_path / 'a' / name} must hold what the plan deals; got {got}"
        cure = "delete the file and run the same export again"
        refused(f"{rule}; {cure}", plan, tmp_path / "a")


def test_again(tmp_path: Path) -> None:
    """A second export compares and writes nothing; later epochs join; what is lost comes back."""
    out = tmp_path / "a"
    ip.export(PLAN, out, epochs=range(2))
    before = tree(out)
    times = {file: file.stat().st_mtime_ns for file in out.rglob("*.npy")}
    again = ip.export(PLAN, out, epochs=range(2))
    assert (0, 24) == (again.num_written, again.num_kept)
    assert times == {file: file.stat().st_mtime_ns for file in out.rglob("*.npy")}
    (out / "epoch-00001/sub-epoch-00000/rank-00001.steps.npy").unlink()
    left = out / "epoch-00001/sub-epoch-00000/.rank-00001.npy.indexplan-01234567-1-0123456789ab.tmp"
    left.write_bytes(b"of a killed one")
    os.utime(left, (0, 0))
    (out / "epoch-00001/.x.tmp").write_bytes(b"of a user")
    again = ip.export(PLAN, out, epochs=range(2))
    assert (1, 23) == (again.num_written, again.num_kept)
    assert {**before, "epoch-00001/.x.tmp": b"of a user"} == tree(out)
    (out / "epoch-00001/.x.tmp").unlink()
    ip.export(PLAN, out, epochs=[5])
    assert before.items() < tree(out).items()
    assert 37 == len(tree(out))


def test_many_at_once(tmp_path: Path) -> None:
    """Several processes export one plan to one folder; it holds what one would have written."""
    plan = ip.Plan(ip.Sequential(10_000), world_size=8, batch_size=16)
    (tmp_path / "plan.json").write_text(plan.to_json())
    command = [sys.executable, "-m", "indexplan", "export", str(tmp_path / "plan.json")]
    command += [str(tmp_path / "a")]
    exporters = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for _ in range(4)]
    assert [0] * 4 == [exporter.wait() for exporter in exporters]
    ip.export(plan, tmp_path / "b")
    assert tree(tmp_path / "b") == tree(tmp_path / "a")


@pytest.mark.parametrize("change", [b"", b"\0" * 200, "longer"])
def test_other_bytes(tmp_path: Path, change: bytes | str) -> None:
    """What is there and is not what belongs there is an error, and is left as it is."""
    ip.export(PLAN, tmp_path / "a")
    file = tmp_path / "a/epoch-00000/sub-epoch-00001/rank-00001.npy"
    data = file.read_bytes() + b"\0" if isinstance(change, str) else change
    file.write_bytes(data)
    got = "more bytes" if isinstance(change, str) else "other bytes in block 0"
    refused(
        f"{file} must hold what the plan deals; got {got}; delete the file and run the same "
        "export again",
        PLAN,
        tmp_path / "a",
    )
    assert data == file.read_bytes()
    file.unlink()
    assert 1 == ip.export(PLAN, tmp_path / "a").num_written


def test_places_that_are_taken(tmp_path: Path) -> None:
    """A folder of something else is refused and left alone."""
    (tmp_path / "file").write_text("mine")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/notes.txt").write_text("mine")
    (tmp_path / "empty").mkdir()
    other = PLAN.replace(batch_size=5)
    ip.export(other, tmp_path / "empty")
    before = tree(tmp_path)
    rule = "must be new, empty or an export of the same plan"
    for name, got in (
        ("file", "a file"),
        ("folder", "a folder that holds notes.txt"),
        ("empty", f"one with plan.batch_size 5, not {PLAN.batch_size!r}"),
    ):
        refused(f"{tmp_path / name} {rule}; got {got}; choose another path", PLAN, tmp_path / name)
    got = "'No such file or directory'; check the path"
    refused(f"{tmp_path / 'no/a'} must be a folder that can be made; got {got}", PLAN,
            tmp_path / "no/a")  # fmt: skip
    assert before == tree(tmp_path)


def export_overtaken(out: Path) -> list[int]:
    """Export; before a rank's indices get their name, another process exports all."""
    overtaken = False

    def event(call: str, arguments: tuple[object, ...]) -> None:
        nonlocal overtaken
        if call == "os.link" and not overtaken and str(arguments[1]).endswith("rank-00001.npy"):
            overtaken = True
            ip.export(PLAN, out)

    sys.addaudithook(event)
    done = ip.export(PLAN, out)
    return [done.num_written, done.num_kept]


def test_an_export_that_is_overtaken(tmp_path: Path) -> None:
    """A file that somebody else named first is compared, and kept."""
    assert [2, 10] == in_child(export_overtaken, tmp_path / "a")
    ip.export(PLAN, tmp_path / "b")
    assert tree(tmp_path / "b") == tree(tmp_path / "a")


def test_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file:// URL is a folder; a chain of URLs is refused, and makes no folder of that name."""
    monkeypatch.chdir(tmp_path)
    refused(
        "path must be one URL, not a chain of them; got 'zip::...'; pass the folder's own URL",
        PLAN,
        "zip::s3://bucket/a",
    )
    rule = "out must be a str or path-like object; got 3"
    refused(f"{rule}; pass where the directory is, such as run.plan", PLAN, 3)
    assert [] == list(tmp_path.iterdir())
    ip.export(PLAN, f"file://{tmp_path}/a")
    ip.export(PLAN, tmp_path / "run::1")
    assert tree(tmp_path / "a") == tree(tmp_path / "run::1")


def test_links(tmp_path: Path) -> None:
    """The folder may be a link; one below it leads elsewhere, so nothing is written there."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "a").symlink_to("elsewhere")
    ip.export(PLAN, tmp_path / "a")
    assert 13 == len(tree(tmp_path / "elsewhere"))
    (tmp_path / "b").mkdir()
    (tmp_path / "others").mkdir()
    (tmp_path / "b/epoch-00000").symlink_to(tmp_path / "others")
    (tmp_path / "b/export.json").write_bytes((tmp_path / "a/export.json").read_bytes())
    refused(
        f"{tmp_path}/b/epoch-00000 must be a plain folder; got a link; put the folder itself in "
        f"its place, or choose another path",
        PLAN,
        tmp_path / "b",
    )
    assert [] == list((tmp_path / "others").iterdir())


def test_hidden_names(tmp_path: Path) -> None:
    """What file managers leave in a new folder is no reason to refuse it."""
    (tmp_path / ".DS_Store").write_bytes(b"mine")
    assert 12 == ip.export(PLAN, tmp_path).num_written


def test_memory_is_bounded(tmp_path: Path) -> None:
    """A rank's 64 MB of indices are never in memory, in many steps and in few."""
    code = (
        "import sys, indexplan as ip\n"
        "from benchmarks.measure.memory import measured\n"
        "def go(n, size, out):\n"
        "    ip.export(ip.Plan(ip.Sequential(n), world_size=1, batch_size=size), out)\n"
        "go(1000, 10, sys.argv[1] + '0')\n"
        "for size in (256, 2**20):\n"
        "    out = sys.argv[1] + str(size)\n"
        "    print(measured(lambda: go(2**24, size, out))[1]['peak_bytes'])\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "a")]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert all(int(growth) < 2**25 for growth in done.stdout.split()), done.stdout


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A plan directory of 2 epochs that leaves its world size open."""
    plan = ip.Plan(ip.Shuffle(1000, seed=5), batch_size=16)
    ip.save(plan, tmp_path / "a.plan", epochs=range(2))
    return str(tmp_path / "a.plan")


def test_command(path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command exports all stored epochs, or one, and says what it did."""
    out = str(tmp_path / "out")
    words = ["export", path, out, "--world-size", "3"]
    assert 0 == main([*words, "--epoch", "1"])
    assert f"{out}: 5,296 bytes; 6 files written, 0 were there already\n" == capsys.readouterr().out
    assert 0 == main([*words, "--json"])
    plan = ip.load(path).replace(world_size=3)
    assert {
        "path": out,
        "num_bytes": 10592,
        "num_written": 6,
        "num_kept": 6,
        "fingerprint": plan.fingerprint,
    } == json.loads(capsys.readouterr().out)
    expected = [batch.tolist() for batch in plan.batches(1, rank=2)]
    assert expected == read(Path(out), "epoch-00001/rank-00002")


def test_wrong_commands(path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Wrong commands exit with 2, wrong places with 1, and one line says why."""
    assert 2 == main(["export", path, str(tmp_path / "out")])
    assert (
        "indexplan: --world-size must be set for an export, which has files for each rank; got "
        "none; give --world-size\n"
    ) == capsys.readouterr().err
    assert 1 == main(["export", path, path, "--world-size", "3"])
    assert (
        f"indexplan: {path} must be new, empty or an export of the same plan; got a folder that "
        f"holds epoch-00000; choose another path\n"
    ) == capsys.readouterr().err
