"""Exports: what each rank reads as plain arrays or tables, never replaced, in little memory."""

import json
import os
import re
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given

import indexplan as ip
from indexplan.files import rows
from tests.laws.test_pathological import peak
from tests.support import refusals
from tests.support.bins import bin_orders
from tests.support.children import before, in_child
from tests.support.examples import examples
from tests.support.fresh import printed
from tests.support.listed import Listed, Wrapped
from tests.support.shell import Shell
from tests.support.strategies import balanced_plans, plans, start_of, sub_epochs_of
from tests.support.trees import PLAN, tree
from tests.support.units import micro_batches

FEW = (plans() | balanced_plans()).filter(lambda plan: plan.world_size * plan.sub_epochs <= 16)
BINS = plans(bin_orders()).filter(lambda plan: plan.world_size * plan.sub_epochs <= 16)


refused = partial(refusals.refused, ip.export)


def read(root: Path, name: str) -> list[list[int]]:
    """A rank's batches, from its two files, by NumPy alone."""
    indices = np.load(root / f"{name}.npy", mmap_mode="r")
    steps = np.load(root / f"{name}.steps.npy", mmap_mode="r")
    return [indices[a:b].tolist() for a, b in pairwise(steps.tolist())]


def test_what_it_says(tmp_path: Path) -> None:
    """An export says what it is, and how many files and bytes it has."""
    out = tmp_path / "a"
    done = ip.export(PLAN, out, epochs=[1, 0])
    files = tree(out)
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
    indices = np.load(out / "epoch-00001/sub-epoch-00001/rank-00002.npy")
    steps = np.load(out / "epoch-00001/sub-epoch-00001/rank-00002.steps.npy")
    assert (np.dtype("<u4"), np.dtype("<i8")) == (indices.dtype, steps.dtype)


@examples(20)
@given(plan=FEW)
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
    left = leftover(tmp_path / "a" / name)
    (tmp_path / "a" / name).unlink()
    again = ip.export(plan, tmp_path / "a", epochs=range(2))
    assert (5, 5) == (again.num_written, again.num_kept)
    assert files.items() < tree(tmp_path / "a").items()
    assert not left.exists()


def leftover(file: Path) -> Path:
    """What a killed export leaves of a file, long ago."""
    left = file.with_name(f".{file.name}.indexplan-01234567-1-0123456789ab.tmp")
    left.write_bytes(b"of a killed one")
    os.utime(left, (0, 0))
    return left


def test_again(tmp_path: Path) -> None:
    """A second export compares and writes nothing; later epochs join; what is lost comes back."""
    out = tmp_path / "a"
    ip.export(PLAN, out, epochs=range(2))
    whole = tree(out)
    times = {file: file.stat().st_mtime_ns for file in out.rglob("*.npy")}
    again = ip.export(PLAN, out, epochs=range(2))
    assert (0, 24) == (again.num_written, again.num_kept)
    assert times == {file: file.stat().st_mtime_ns for file in out.rglob("*.npy")}
    (out / "epoch-00001/sub-epoch-00000/rank-00001.steps.npy").unlink()
    leftover(out / "epoch-00001/sub-epoch-00000/rank-00001.npy")
    (out / "epoch-00001/.x.tmp").write_bytes(b"of a user")
    again = ip.export(PLAN, out, epochs=range(2))
    assert (1, 23) == (again.num_written, again.num_kept)
    assert {**whole, "epoch-00001/.x.tmp": b"of a user"} == tree(out)
    (out / "epoch-00001/.x.tmp").unlink()
    ip.export(PLAN, out, epochs=[5])
    assert whole.items() < tree(out).items()
    assert 37 == len(tree(out))


ARRAYS = PLAN.replace(sub_epochs=1)
TABLE = Wrapped(Listed(np.arange(300)[::-1], 300))
FORMATS = {
    "epoch-00000/rank-00001.npy": (ARRAYS, "npy"),
    "epoch-00000.parquet": (ARRAYS, "parquet"),
    "columns/*.npy": (ARRAYS.replace(order=TABLE), "npy"),
}


@pytest.mark.parametrize("name", FORMATS)
def test_other_bytes(tmp_path: Path, name: str) -> None:
    """What is there and is not what belongs there is an error, and is left as it is.

    It may be of another plan, hold a row less or more, or be damaged.
    """
    plan, kind = FORMATS[name]
    ip.export(plan, tmp_path / "a", format=kind)
    (file,) = (tmp_path / "a").glob(name)
    right = file.read_bytes()
    wrong = [b"", b"\0" * 200, right[:-9], right[:-1] + b"\x02", right + b"x" * 9]
    if kind == "parquet" or "rank" in name:
        for order in (ip.Shuffle(999, seed=5), ip.Shuffle(1000, seed=99)):
            other = tmp_path / str(len(wrong))
            ip.export(plan.replace(order=order), other, format=kind)
            wrong.append((other / name).read_bytes())
    cure = "delete the file and run the same export again"
    for data in wrong:
        file.write_bytes(data)
        said = f"{re.escape(str(file))} must hold what the plan deals; got "
        said += rf"(other bytes in block \d+|more bytes); {cure}"
        assert re.fullmatch(said, refused(plan, tmp_path / "a", format=kind))
        assert data == file.read_bytes()
    file.unlink()
    assert 1 == ip.export(plan, tmp_path / "a", format=kind).num_written
    assert right == file.read_bytes()


def test_places_that_are_taken(tmp_path: Path) -> None:
    """A folder of something else is refused and left alone; what file managers leave is not."""
    (tmp_path / "file").write_text("mine")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/notes.txt").write_text("mine")
    ip.export(PLAN.replace(batch_size=5), tmp_path / "other")
    there = tree(tmp_path)
    for name in ("file", "folder", "other"):
        assert "must be new, empty or an export of the same plan" in refused(PLAN, tmp_path / name)
        said = refusals.refused(ip.save, PLAN, tmp_path / name)
        assert "must be new, empty or a plan directory" in said
    for make in (ip.export, ip.save):
        assert "check the path" in refusals.refused(make, PLAN, tmp_path / "no/a")
    assert there == tree(tmp_path)
    (tmp_path / "new").mkdir()
    (tmp_path / "new/.DS_Store").write_bytes(b"mine")
    assert 12 == ip.export(PLAN, tmp_path / "new").num_written


def export_overtaken(out: Path) -> list[int]:
    """Export; before a rank's indices get their name, another process exports all."""
    before("os.link", "rank-00001.npy", lambda: ip.export(PLAN, out))
    done = ip.export(PLAN, out)
    return [done.num_written, done.num_kept]


def test_an_export_that_is_overtaken(tmp_path: Path) -> None:
    """A file that somebody else named first is compared, and kept."""
    assert [2, 10] == in_child(export_overtaken, tmp_path / "a")
    ip.export(PLAN, tmp_path / "b")
    assert tree(tmp_path / "b") == tree(tmp_path / "a")


def test_paths(here: Path) -> None:
    """A file:// URL is a folder; a chain of URLs is refused, and makes no folder of that name."""
    assert refused(PLAN, "zip::s3://bucket/a").startswith("path must be one URL, not a chain of")
    assert [] == list(here.iterdir())
    ip.export(PLAN, f"file://{here}/a")
    ip.export(PLAN, here / "run::1")
    assert tree(here / "a") == tree(here / "run::1")


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
    assert "/b/epoch-00000 must be a plain folder; got a link" in refused(PLAN, tmp_path / "b")
    assert [] == list((tmp_path / "others").iterdir())


@pytest.mark.slow
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
    growths = printed("-c", code, tmp_path / "a").split()
    assert all(int(growth) < 2**25 for growth in growths), growths


def test_command(here: Path, shell: Shell) -> None:
    """The command exports all stored epochs, or one, and says what it did."""
    open_world = ip.Plan(ip.Shuffle(1000, seed=5), batch_size=16)
    ip.save(open_world, "a.plan", epochs=range(2))
    words = ["export", "a.plan", "out", "--world-size", "3"]
    said = shell.run(*words, "--epoch", "1")
    assert "out: 5,296 bytes; 6 files written, 0 were there already\n" == said
    plan = ip.load("a.plan").replace(world_size=3)
    counts = {"num_bytes": 10592, "num_written": 6, "num_kept": 6}
    assert {"path": "out", **counts, "fingerprint": plan.fingerprint} == shell.json(*words)
    expected = [batch.tolist() for batch in plan.batches(1, rank=2)]
    assert expected == read(here / "out", "epoch-00001/rank-00002")
    assert "1 file written" in shell.run(*words, "--epoch", "1", "--format", "parquet")
    assert expected_rows(plan, [(1, 0)]) == table(here / "out/epoch-00001.parquet")


# Tables: a row for each slot of each batch.


def leaves(nested: Any) -> list[list[int]]:
    """The inner batches of nested ones, as lists."""
    if isinstance(nested, np.ndarray):
        return [nested.tolist()]
    return [leaf for part in nested for leaf in leaves(part)]


def table(path: Path) -> list[dict[str, Any]]:
    """The rows of a file."""
    return pq.read_table(path).to_pylist()


def expected_rows(plan: ip.Plan, places: list[tuple[int, int]]) -> list[dict[str, Any]]:
    """What a table holds, batch by batch."""
    found = []
    for epoch, sub_epoch in places:
        steps = plan.steps(epoch, sub_epoch)
        for step in steps:
            for rank in range(plan.world_size or 0):
                where: Any = {"step": step, "rank": rank}
                batch = plan.batch(epoch, sub_epoch, **where).tolist()
                offsets = plan.units(epoch, sub_epoch, **where).offsets
                valid = offsets[plan.units(epoch, sub_epoch, **where).num_valid]
                inner = leaves(micro_batches(plan.units(epoch, sub_epoch, **where)))
                micro = [number for number, part in enumerate(inner) for _ in part]
                assert batch == [index for part in inner for index in part]
                for slot, index in enumerate(batch):
                    row = {"epoch": epoch, "sub_epoch": sub_epoch, **where}
                    row["micro_batch"] = micro[slot]
                    if plan.order.deals_bins:
                        row["bin"] = int(np.searchsorted(offsets, slot, "right")) - 1
                    padded = bool(slot >= valid)
                    found.append({**row, "slot": slot, "index": index, "padded": padded})
    return found


@examples(16)
@given(plan=FEW | BINS)
def test_any_table(tmp_path_factory: pytest.TempPathFactory, plan: ip.Plan) -> None:
    """The rows of an epoch are the batches of all ranks, in the sequence of steps."""
    root = tmp_path_factory.mktemp("any") / "a"
    epochs = range(start_of(plan)[0], start_of(plan)[0] + 2)
    done = ip.export(plan, root, epochs=epochs, format="parquet")
    num = 2 + (plan.balance is not None)  # with the lengths
    assert (num, 0) == (done.num_written, done.num_kept)
    for epoch in epochs:
        places = [place for place in sub_epochs_of(plan, epoch + 1) if place[0] == epoch]
        assert expected_rows(plan, places) == table(root / f"epoch-{epoch:05d}.parquet")
    again = ip.export(plan, root, epochs=epochs, format="parquet")
    assert (0, num, done.num_bytes) == (again.num_written, again.num_kept, again.num_bytes)


@pytest.mark.parametrize("batch_size", [3, 40, (4, 25)])
def test_row_groups(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, batch_size: Any) -> None:
    """No more rows are drawn at a time than a group has, or one step."""
    monkeypatch.setattr(rows, "ROWS", 64)
    plan = ip.Plan(ip.Shuffle(1000, seed=2), world_size=4, batch_size=batch_size, remainder="pad")
    ip.export(plan, tmp_path / "a", format="parquet")
    found = pq.ParquetFile(tmp_path / "a/epoch-00000.parquet").metadata
    groups = [found.row_group(i).num_rows for i in range(found.num_row_groups)]
    assert max(groups) <= max(64, 4 * int(np.prod(batch_size)))
    assert len(groups) >= 1000 // max(64, 4 * int(np.prod(batch_size)))
    assert expected_rows(plan, [(0, 0)]) == table(tmp_path / "a/epoch-00000.parquet")
    assert 1 == ip.export(plan, tmp_path / "a", format="parquet").num_kept


def test_memory_of_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is handed on row group by row group, and neither rows nor bytes are kept."""
    monkeypatch.setattr(rows, "ROWS", 2**12)

    def size_of(num_samples: int) -> int:
        plan = ip.Plan(ip.Sequential(num_samples), world_size=2, batch_size=256)
        return sum(map(len, rows.table_of(plan, 0, range(1))))

    size_of(2**12)  # imports
    (total, most), (_, before) = peak(lambda: size_of(2**17)), peak(lambda: size_of(2**14))
    assert total > 3 * 2**17
    assert most < 1.2 * before


def test_beside_arrays(tmp_path: Path) -> None:
    """One folder may hold all formats; each file says of which plan it is."""
    (tmp_path / "a").mkdir()
    leftover(tmp_path / "a/epoch-00000.parquet")
    for kind in ("npy", "parquet"):
        ip.export(PLAN, tmp_path / "a", format=kind)
    assert 12 + 1 + 1 == len(tree(tmp_path / "a"))
    schema = pq.read_schema(tmp_path / "a/epoch-00000.parquet")
    assert {b"indexplan.plan_fingerprint": PLAN.fingerprint.encode()} == schema.metadata
    assert {"int64", "bool"} == {str(field.type) for field in schema}
