"""Plan directories: what is written is what is read, whoever writes it and however often."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import indexplan as ip
from indexplan.files.format import INDICES, Build, Chunk, hashes_bytes, header
from indexplan.orders import Units
from tests.golden.files import (
    DIRECTORIES,
    DOCUMENTS,
    EPOCHS,
    LENGTHS,
    SAMPLES_PER_CHUNK,
    WINDOWS_PER_CHUNK,
    digest_of,
)
from tests.support.bins import Bins
from tests.support.children import in_child
from tests.support.examples import examples
from tests.support.trees import PLAN, tree


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A plan directory of 2 epochs in 8 chunks."""
    ip.save(PLAN, tmp_path / "a.plan", epochs=range(2), units_per_chunk=256)
    return tmp_path / "a.plan"


@given(st.sampled_from(["<u4", "<i8", "<u8"]), st.integers(0, 2**62))
def test_header_is_what_numpy_reads(dtype: str, length: int) -> None:
    """The header is 128 bytes that NumPy's own reader takes for the array that follows."""
    import io

    data = header(dtype, length)
    stream = io.BytesIO(data)
    assert (1, 0) == np.lib.format.read_magic(stream)
    assert ((length,), False, np.dtype(dtype)) == np.lib.format.read_array_header_1_0(stream)
    assert 128 == len(data) == stream.tell()


GOLDEN = json.loads((Path(__file__).parents[1] / "golden/plan_file.json").read_text())
FROZEN = {  # the plan, and its units_per_chunk
    "of samples": (PLAN, SAMPLES_PER_CHUNK),
    "balanced": (PLAN.replace(balance=ip.Balance(LENGTHS, quadratic=2)), SAMPLES_PER_CHUNK),
    "of pieces": (
        ip.Plan(ip.DocumentWindows(**DOCUMENTS._asdict()), batch_size=3),
        WINDOWS_PER_CHUNK,
    ),
}


@pytest.mark.parametrize("name", DIRECTORIES)
def test_bytes_are_frozen(name: str, tmp_path: Path) -> None:
    """Each file is what the page on the format says, and the digest of all never changes."""
    plan, units_per_chunk = FROZEN[name]
    ip.save(plan, tmp_path / "a.plan", epochs=range(EPOCHS), units_per_chunk=units_per_chunk)
    found = tree(tmp_path / "a.plan")
    expected = DIRECTORIES[name]()
    assert sorted(expected) == sorted(found)
    for file in expected:
        assert expected[file] == found[file], file
    assert GOLDEN["sha256_of_names_and_bytes"][name] == digest_of(found)


LARGE = ip.Plan(ip.Shuffle(300_000, seed=1), world_size=8, batch_size=16)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plan directory of 300,000 units in 4 chunks."""
    root = tmp_path_factory.mktemp("large") / "a.plan"
    ip.save(LARGE, root, units_per_chunk=80_000)
    return root


@examples(90)
@given(
    size=st.one_of(st.integers(1, 300), st.integers(1, 9_000)),
    less=st.sampled_from([0, 1, 2, 150, 9_000]),
    num_runs=st.integers(0, 90),
    seed=st.integers(0, 99),
)
def test_any_runs(
    large: Path,
    tmp_path_factory: pytest.TempPathFactory,
    size: int,
    less: int,
    num_runs: int,
    seed: int,
) -> None:
    """Runs are read together as their source deals them: of any size, in any order, over chunks.

    Of 300,000 units in 4 chunks, and of 1,000 in 10.
    """
    small = tmp_path_factory.getbasetemp() / "runs.plan"
    if not small.exists():
        ip.save(PLAN, small, units_per_chunk=100)
    for root, source in ((large, LARGE.order), (small, PLAN.order)):
        draw = np.random.default_rng(seed)
        most = min(size, source.num_units(0))
        sizes = most - draw.integers(0, min(most, less) + 1, num_runs)
        starts = draw.integers(0, source.num_units(0) - most + 1, num_runs)
        if seed % 2:  # as ranks do
            starts = np.sort(starts)
        expected = source.take(0, starts, starts + sizes)
        assert np.array_equal(expected, ip.types.Stored(root).take(0, starts, starts + sizes))
        singles = starts[starts < source.num_units(0)]
        assert np.array_equal(source.take(0, singles), ip.types.Stored(root).take(0, singles))


@pytest.mark.parametrize("epoch", [[1], -1, 2**32])
def test_an_epoch_is_a_number(saved: Path, epoch: Any) -> None:
    """Asked for the units of what is none, an order that is stored says what must be one."""
    with pytest.raises(
        ip.IndexPlanError, match=r"^epoch must be an integer from 0 to 2\*\*32 - 1;"
    ):
        ip.types.Stored(saved).num_units(epoch)


def test_arrays_are_the_callers_own(saved: Path) -> None:
    """Writing to what a stored plan returned changes neither the file nor later answers."""
    plan = ip.load(saved)
    before = tree(saved)
    for _ in range(2):
        batch = plan.batch(0, 0, step=0, rank=0)
        assert PLAN.batch(0, 0, step=0, rank=0).tolist() == batch.tolist()
        batch[:] = -1
    assert before == tree(saved)


@dataclass(frozen=True, eq=False)
class Heavy(Bins):
    """Bins whose sizes a float does not hold."""

    algorithm = "test-heavy-v1"

    def deal(self, epoch: int, starts: np.ndarray, stops: np.ndarray) -> Units:
        units = super().deal(epoch, starts, stops)
        return units._replace(sizes=np.full_like(units.sizes, 2**53 + 1))


def test_offsets_are_integers_throughout() -> None:
    """Offsets past 2**53 are exact."""
    plan = ip.Plan(Heavy(20), world_size=1, batch_size=3)
    expected = [i * (2**53 + 1) for i in range(4)]
    assert expected == plan.units(0, step=0, rank=0).offsets.tolist()


def test_indices_past_four_bytes(tmp_path: Path) -> None:
    """A dataset of more than 2**32 samples is stored in eight bytes an index."""
    samples = range(0, 10 * 2**36, 2**36)
    plan = ip.Plan(ip.Subset(ip.Sequential(10), samples, 2**40), world_size=2, batch_size=2)
    ip.save(plan, tmp_path / "a.plan")
    stored = np.load(tmp_path / "a.plan/epoch-00000/chunk-00000.npy")
    assert (np.dtype("<i8"), [*samples]) == (stored.dtype, stored.tolist())
    assert [0, 2**36] == ip.load(tmp_path / "a.plan").batch(0, step=0, rank=0).tolist()


def test_sizes_and_names_grow_with_their_numbers() -> None:
    """Four bytes hold the indices of up to 2**32 samples; numbers are written in full."""
    for num_samples, dtype in ((2**32, "<u4"), (2**32 + 1, "<i8")):
        assert dtype == Build.of({}, ip.Shuffle(num_samples), [0], 2**26, None).dtype
    assert "epoch-4294967295/chunk-123456.npy" == Chunk(2**32 - 1, 123456, 0, 1, INDICES).name


def opened(root: Path) -> tuple[set[str], int]:
    """The files of a plan that are opened when it is loaded, and its samples."""
    paths: list[str] = []
    sys.addaudithook(lambda call, args: paths.append(str(args[0])) if call == "open" else None)
    plan = ip.load(root)
    names = [Path(path).name for path in paths]
    return {each for each in names if each.startswith(("plan.", "chunk"))}, plan.order.num_samples


def test_opening_reads_no_chunk(tmp_path: Path) -> None:
    """An epoch of 1e12 samples is opened by its plan.json, and the names and sizes of the rest."""
    plan, root = ip.Plan(ip.Shuffle(10**12), batch_size=8), tmp_path / "a.plan"
    build = Build.of(json.loads(plan.to_json()), plan.order, [0], 2**34, None)
    (root / "epoch-00000").mkdir(parents=True)
    (root / "plan.json").write_text(json.dumps(build.to_dict()))
    for chunk in build.chunks():
        size = build.num_bytes(chunk, 0, 0)
        for name, length in ((chunk.name, size), (chunk.hashes_name, hashes_bytes(size))):
            with (root / name).open("wb") as file:
                file.truncate(length)  # a hole, which takes no room
    assert ({"plan.json"}, 10**12) == in_child(opened, root)


@pytest.mark.parametrize("slab", [1, 7, 33])
def test_chunks_are_written_some_at_a_time(
    slab: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of any size: the same bytes."""
    monkeypatch.setattr("indexplan.files.format.SLAB_UNITS", slab)
    plan, each = FROZEN["of pieces"]
    ip.save(plan, tmp_path / "slabs.plan", epochs=range(EPOCHS), units_per_chunk=each)
    assert DIRECTORIES["of pieces"]() == tree(tmp_path / "slabs.plan")
