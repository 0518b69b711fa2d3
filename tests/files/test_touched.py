"""A damaged block is found by the first read that touches it, and not before."""

import pickle
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import indexplan as ip
from indexplan.kernels.xxh64 import xxh64
from indexplan.stores.store import BLOCK_BYTES
from tests.support.bins import Bins
from tests.support.examples import examples
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


@examples(60)
@given(
    block=st.sampled_from([*BLOCKS]),
    size=st.sampled_from([1, 2, 20, 300, 3000, 5000]),
    num_runs=st.sampled_from([0, 1, 4, 60]),
    edge=st.tuples(st.booleans(), st.booleans(), st.integers(-1, 1)),
    seed=st.integers(0, 99),
)
def test_edges(
    whole: Path,
    block: tuple[int, int],
    size: int,
    num_runs: int,
    edge: tuple[bool, bool, int],
    seed: int,
) -> None:
    """Runs up to a damaged block do not touch it; one of many, with an end in it, does.

    It stays an error, which names the block.
    """
    (start, stop), drawn = BLOCKS[block], np.random.default_rng(seed)
    starts = drawn.integers(0, 2_500_000 - size, num_runs)
    starts = starts[(starts + size <= start) | (starts >= stop)]  # of other blocks
    at_start, before, off = edge  # one ends, or begins, around one edge of the block
    at = (start if at_start else stop) - before * size + off
    at = min(max(at, 0), 2_500_000 - size)
    starts = np.insert(starts, len(starts) // 2, at)
    runs = (starts,) if size == 1 else (starts, starts + size)
    position = int(drawn.choice([start, drawn.integers(start, stop), stop - 1]))
    file = file_of(whole, position)
    hashes = [xxh64(file.read_bytes()[BLOCK_BYTES * block[1] :][:BLOCK_BYTES])]
    bit = int(drawn.integers(32))
    flip(whole, position, bit)
    try:
        order = ip.types.Stored(whole)
        if start < at + size and at < stop:
            hashes += [xxh64(file.read_bytes()[BLOCK_BYTES * block[1] :][:BLOCK_BYTES])]
            said = (
                f"{file}, block {block[1]} must have the XXH64 in "
                f"{file_of(Path(), position).with_suffix('.xxh64')}, {hashes[0]:016x}; got "
                f"{hashes[1]:016x}; run `indexplan verify` to see what is wrong, then restore the "
                "file, or delete it and its hashes and run the same build again"
            )
            for _ in range(2):
                with pytest.raises(ip.PlanFileError, match=f"^{re.escape(said)}$"):
                    order.take(0, *runs)
        else:
            assert np.array_equal(PLAN.order.take(0, *runs), order.take(0, *runs))
    finally:
        flip(whole, position, bit)


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
        with pytest.raises(ip.PlanFileError, match="block 0 must have the XXH64"):
            reader.take(0, 10, 11)
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
            for ask in (order.take, order.offsets):
                with pytest.raises(ip.PlanFileError, match=re.escape(said)):
                    ask(0, start, stop)


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
