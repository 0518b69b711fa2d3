"""A damaged block is found by the first read that touches it, and not before."""

import pickle
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import indexplan as ip
from indexplan.kernels.xxh64 import xxh64
from indexplan.stores.store import BLOCK_BYTES
from tests.support.bins import Bins
from tests.support.forging import rehashed

PLAN = ip.Plan(ip.Shuffle(2_500_000, seed=3), world_size=2, batch_size=1000)
EACH = 1_500_000  # units of a chunk: one chunk of two blocks, and one of one
FIRST = BLOCK_BYTES // 4 - 32  # the first block holds the header, and so many indices
BLOCKS = {(0, 0): (0, FIRST), (0, 1): (FIRST, EACH), (1, 0): (EACH, 2_500_000)}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plan directory of three blocks."""
    root = tmp_path_factory.mktemp("whole") / "a.plan"
    ip.save(PLAN, root, units_per_chunk=EACH)
    return root


@pytest.fixture
def saved(whole: Path, tmp_path: Path) -> Path:
    """A copy of it, to be damaged."""
    shutil.copytree(whole, tmp_path / "a.plan")
    return tmp_path / "a.plan"


def file_of(root: Path, position: int) -> Path:
    """The chunk file that holds a position."""
    return root / f"epoch-00000/chunk-{position // EACH:05d}.npy"


def flip(root: Path, position: int, bit: int = 0) -> None:
    """Flip a bit of the index at a position, in place."""
    with file_of(root, position).open("r+b") as stream:
        stream.seek(128 + 4 * (position % EACH) + bit // 8)
        octet = stream.read(1)[0] ^ (1 << bit % 8)
        stream.seek(-1, 1)
        stream.write(bytes([octet]))


def damaged(order: ip.Order, start: int, stop: int) -> str:
    """The message with which a read of an interval fails."""
    with pytest.raises(ip.PlanFileError) as error:
        order.take(0, start, stop)
    return str(error.value)


@pytest.mark.parametrize("block", BLOCKS, ids=str)
@pytest.mark.parametrize("where", ["first", "middle", "last"])
def test_flipped_bits(saved: Path, block: tuple[int, int], where: str) -> None:
    """One flipped bit is found when its block is touched, by name; other blocks read on."""
    start, stop = BLOCKS[block]
    position = {"first": start, "middle": (start + stop) // 2, "last": stop - 1}[where]
    data = file_of(saved, position).read_bytes()[BLOCK_BYTES * block[1] :][:BLOCK_BYTES]
    flip(saved, position, bit=position % 32)
    order = ip.types.Stored(saved)
    for other, (low, high) in BLOCKS.items():
        if other != block:
            expected = PLAN.order.take(0, low, high)
            assert np.array_equal(expected, order.take(0, low, high))
    after = file_of(saved, position).read_bytes()[BLOCK_BYTES * block[1] :][:BLOCK_BYTES]
    said = (
        f"{file_of(saved, position)}, block {block[1]} must have the XXH64 in "
        f"{file_of(Path(), position).with_suffix('.xxh64')}, {xxh64(data):016x}; got "
        f"{xxh64(after):016x}; run `indexplan verify` to see what is wrong, then restore the "
        "file, or delete it and its hashes and run the same build again"
    )
    for _ in range(2):  # it stays an error
        assert said == damaged(order, start, start + 1)
        assert said == damaged(order, stop - 1, stop)


READS: dict[str, Callable[[ip.Order, int, int], Any]] = {
    "one run": lambda order, start, stop: order.take(0, start, stop),
    "long runs": lambda order, _, stop: order.take(0, [0, stop - 500], [500, stop]),
    "short runs": lambda order, _, stop: order.take(0, [stop - 2, 0], [stop, 2]),
    "single positions": lambda order, _, stop: order.take(0, [0, 1, stop - 1, 2]),
    "many long runs": lambda order, _, stop: order.take(
        0, [*range(0, 40_000, 2000), stop - 300], [*range(300, 40_000, 2000), stop]
    ),
    "many short runs": lambda order, _, stop: order.take(
        0, [*range(0, 400, 9), stop - 2], [*range(2, 400, 9), stop]
    ),
    "many single positions": lambda order, _, stop: order.take(0, [*range(50), stop - 1]),
}


@pytest.mark.parametrize("name", READS)
def test_edges(saved: Path, name: str) -> None:
    """A read up to a damaged block does not touch it; a read of one index more does."""
    flip(saved, EACH - 1)  # the last of the second block
    order = ip.types.Stored(saved)
    expected = READS[name](PLAN.order, FIRST - 1000, FIRST)
    assert expected.tolist() == READS[name](order, FIRST - 1000, FIRST).tolist()
    with pytest.raises(ip.PlanFileError, match=r"chunk-00000\.npy, block 1 must have the XXH64"):
        READS[name](order, FIRST - 999, FIRST + 1)


@pytest.mark.parametrize("size", [1, 20, 3000, 5000])
@pytest.mark.parametrize("block", [0, 1])
def test_many_runs_and_one_into_a_damaged_block(saved: Path, size: int, block: int) -> None:
    """Of many runs that are read together, one has its first or its last unit in another block."""
    flip(saved, [5, EACH - 1][block])
    starts = np.arange(30) * 2 * size + [FIRST, 0][block]
    order = ip.types.Stored(saved)
    expected = PLAN.order.take(0, starts, starts + size)
    assert np.array_equal(expected, order.take(0, starts, starts + size))
    starts[17] = [FIRST - 1, FIRST + 1 - size][block]
    with pytest.raises(ip.PlanFileError, match=rf"chunk-00000\.npy, block {block} must have the"):
        order.take(0, starts, starts + size)


def test_batches(saved: Path) -> None:
    """Whatever a plan is asked for, it reads through the check."""
    flip(saved, FIRST + 5)
    plan = ip.load(saved)
    step = (FIRST + 5) // 2000
    assert np.array_equal(PLAN.batch(0, step=0, rank=1), plan.batch(0, step=0, rank=1))
    rank = (FIRST + 5) % 2000 // 1000
    for read in (
        lambda: plan.batch(0, step=step, rank=rank),
        lambda: plan.indices(0, rank=rank),
        lambda: list(plan.batches(0, rank=rank)),
        lambda: plan.replace(world_size=5).indices(0, rank=(FIRST + 5) % 5),
    ):
        with pytest.raises(ip.PlanFileError, match="block 1 must have the XXH64"):
            read()


def test_a_block_is_checked_once(saved: Path) -> None:
    """What happens to a block after it was checked goes unseen, until an order is opened again."""
    right = PLAN.order.take(0, 10).tolist()
    order = ip.types.Stored(saved)
    assert right == order.take(0, 10).tolist()
    flip(saved, 10)
    assert right[0] ^ 1 == order.take(0, 10)[0]
    again = ip.types.Stored(saved)
    for reader in (again, pickle.loads(pickle.dumps(order))):  # noqa: S301 (our own)
        assert "block 0 must have the XXH64" in damaged(reader, 10, 11)
    code = f"import indexplan as ip; ip.load({str(saved)!r}).order.take(0, 10)"
    command = [sys.executable, "-c", code]
    other = subprocess.run(command, check=False, capture_output=True, text=True)
    assert "PlanFileError" in other.stderr
    assert "chunk-00000.npy, block 0 must have the XXH64" in other.stderr
    flip(saved, 10)
    assert right == ip.types.Stored(saved).take(0, 10).tolist()


def test_impossible_offsets(tmp_path: Path) -> None:
    """Offsets of right hashes that point out of their chunk are refused when read."""
    ip.save(ip.Plan(Bins(500), world_size=1, batch_size=7), tmp_path / "a.plan")
    file = tmp_path / "a.plan/epoch-00000/chunk-00000.offsets.npy"
    whole = file.read_bytes()
    said = f"{tmp_path}/a.plan: the offsets of epoch 0 must ascend inside their chunk; got others;"
    for value in (-1, 2**62):
        file.write_bytes(whole[:208] + value.to_bytes(8, "little", signed=True) + whole[216:])
        rehashed(file)
        order = ip.types.Stored(tmp_path / "a.plan")
        for start, stop in ((9, 11), (10, 11)):
            with pytest.raises(ip.PlanFileError, match=re.escape(said)):
                order.take(0, start, stop)


@pytest.mark.parametrize("which", ["the tag", "a hash", "another chunk's"])
def test_damaged_hashes(saved: Path, which: str) -> None:
    """Hashes that were damaged, or put elsewhere, are refused at the first touch of their chunk."""
    file = saved / "epoch-00000/chunk-00000.xxh64"
    whole = file.read_bytes()
    damage = {
        "the tag": bytes([whole[0] ^ 1]) + whole[1:],
        "a hash": whole[:-1] + bytes([whole[-1] ^ 1]),
        "another chunk's": file.with_name("chunk-00001.xxh64").read_bytes() + bytes(8),
    }
    file.write_bytes(damage[which])
    order = ip.types.Stored(saved)
    for _ in range(2):  # it stays an error
        assert "chunk-00000.xxh64" in damaged(order, EACH - 1, EACH)
    file.write_bytes(whole)
    assert PLAN.order.take(0, EACH - 1) == order.take(0, EACH - 1)


def test_chunks_swapped_with_their_hashes(tmp_path: Path) -> None:
    """A chunk that moved with its hashes, to another number or epoch or plan, is found out."""
    for name, size in (("a", 8), ("b", 9)):
        plan = ip.Plan(ip.Shuffle(1000), batch_size=size)
        ip.save(plan, tmp_path / name, epochs=range(2), units_per_chunk=250)
    root = tmp_path / "a"
    moved = [
        (root / "epoch-00000/chunk-00001", root / "epoch-00000/chunk-00002", 0),
        (root / "epoch-00001/chunk-00000", root / "epoch-00000/chunk-00000", 1),
        (root / "epoch-00001/chunk-00003", tmp_path / "b/epoch-00001/chunk-00003", 1),
    ]
    for here, there, epoch in moved:
        for kind in (".npy", ".xxh64"):
            a, b = here.with_suffix(kind), there.with_suffix(kind)
            whole = a.read_bytes()
            a.write_bytes(b.read_bytes())
            b.write_bytes(whole)
        start = 250 * int(here.name[-1])
        with pytest.raises(ip.PlanFileError, match=r"must hold the hashes of epoch-0000"):
            ip.types.Stored(root).take(epoch, start, start + 5)


def test_threads(saved: Path) -> None:
    """Several threads fill at once: right answers, and an error in each that meets the damage."""
    flip(saved, EACH + 1)
    order = ip.types.Stored(saved)
    expected = PLAN.order.take(0, 0, EACH)
    with ThreadPoolExecutor(8) as pool:
        taken = [pool.submit(order.take, 0, 0, EACH) for _ in range(8)]
        failed = [pool.submit(order.take, 0, EACH, 2_500_000) for _ in range(8)]
    assert all(np.array_equal(expected, future.result()) for future in taken)
    assert all(isinstance(future.exception(), ip.PlanFileError) for future in failed)
