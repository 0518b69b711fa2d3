"""Verification of stored plans: every byte by every core, every sample counted, little memory."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import indexplan as ip
from indexplan.cli import main
from indexplan.files import running, verifying
from indexplan.files.format import SLAB_UNITS, Build, Chunk
from indexplan.orders import Traits, Units
from indexplan.stores.store import BLOCK_BYTES
from tests.laws.test_pathological import peak
from tests.support import listed
from tests.support.bins import Bins, ChangingBins, Drawn
from tests.support.forging import rewritten
from tests.support.planted import Heavy

BYTES = "every byte of every chunk is what the order generates"
WRITTEN = "every byte of every chunk is what was written"
COUNTED = "every epoch reads every sample once"
NEED_NOT = "the order need not read every sample once"


@dataclass(frozen=True, eq=False)
class Listed(listed.Listed):
    """Samples in the order of a list, each once, as it says; no registry knows it."""

    algorithm = "test-listed-v1"
    traits = Traits()


def named(name: str, kind: type[ip.Order] = Listed, **body: Any) -> Any:
    """Register a kind of it."""
    made = {"algorithm": f"test-{name.lower()}-v1", "__module__": __name__, **body}
    return ip.register(type(name, (kind,), made))


Known = named("Known")
Claimed = named("Claimed", ip_is_permutation=True)  # which is a claim
Derived = named("Derived", Claimed)


def checks(plan: ip.Plan, root: Path, **options: Any) -> dict[str, ip.types.Check]:
    """Save a plan, verify it, and return the checks by name."""
    ip.save(plan, root, **options)
    return {check.name: check for check in ip.verify(ip.load(root)).checks}


@pytest.fixture(scope="module")
def blocks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plan of one chunk in three blocks."""
    root = tmp_path_factory.mktemp("blocks") / "a.plan"
    ip.save(ip.Plan(ip.Shuffle(2_500_000), world_size=2, batch_size=8), root)
    return root


def test_every_wrong_block_of_one_chunk(blocks: Path) -> None:
    """Whichever threads look at them, wrong blocks are told in order, each with its position."""
    file = blocks / "epoch-00000/chunk-00000.npy"
    whole = file.read_bytes()
    data = np.frombuffer(whole, "<u4", offset=128).copy()
    places = [0, 2**20 - 33, 2**20 - 32, 2_499_999]
    right = data[places].tolist()
    for place in places:
        data[place] ^= 1
    file.write_bytes(whole[:128] + data.tobytes())
    report = ip.verify(ip.load(blocks))
    file.write_bytes(whole)
    wrong = {check.name: check for check in report.checks if not check.ok}
    name = "epoch-00000/chunk-00000.npy, block"
    assert {BYTES} == set(wrong)
    assert [
        f"{name} 0: its hash is another",
        f"{name} 0: position 0 of epoch 0 holds {right[0] ^ 1}, not {right[0]}",
        f"{name} 1: its hash is another",
        f"{name} 1: position 1048544 of epoch 0 holds {right[2] ^ 1}, not {right[2]}",
        f"{name} 2: its hash is another",
        f"{name} 2: position 2499999 of epoch 0 holds {right[3] ^ 1}, not {right[3]}",
    ] == list(wrong[BYTES].problems)
    assert f"--  {COUNTED}: not checked; files are wrong, as said above" in str(report)


def test_progress(blocks: Path) -> None:
    """Progress comes chunk by chunk, in the thread that asked; an error in it ends all threads."""
    calls: list[tuple[int, int, threading.Thread]] = []
    ip.verify(
        ip.load(blocks), progress=lambda *seen: calls.append((*seen, threading.current_thread()))
    )
    size = (blocks / "epoch-00000/chunk-00000.npy").stat().st_size
    done = [call[0] for call in calls]
    assert (0, size) == (done[0], done[-1])
    assert sorted(done) == done
    assert 2 == len(done)
    assert {(size, threading.main_thread())} == {call[1:] for call in calls}
    before = threading.active_count()
    with pytest.raises(ZeroDivisionError):
        ip.verify(ip.load(blocks), progress=lambda done, _: done and 1 // 0)
    assert before == threading.active_count()


def test_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To build and to verify takes a few blocks of memory for each core, whatever the size.

    One core, as two need not have their blocks at the same time. The plan of 100 MB takes no more
    than that of 10 MB.
    """
    monkeypatch.setattr(running, "num_cores", lambda: 1)

    def build(num_samples: int) -> None:
        ip.save(ip.Plan(ip.Shuffle(num_samples), batch_size=8), tmp_path / f"{num_samples}")

    def verify(num_samples: int) -> None:
        assert ip.verify(ip.load(tmp_path / f"{num_samples}")).ok

    for work in (build, verify):
        work(10_000)  # imports, and compiles
        peaks = [peak(partial(work, num))[1] for num in (2_500_000, 25_000_000)]
        assert max(peaks) < 4 * BLOCK_BYTES
        assert peaks[1] < peaks[0] + 2**18, work.__name__


def test_proven_orders_are_not_counted(blocks: Path) -> None:
    """Of orders that are one-to-one by construction, right bytes are the proof."""
    report = ip.verify(ip.load(blocks))
    assert report.ok
    assert {(COUNTED, 2_500_000), (BYTES, 10_000_128)} == {
        (check.name, check.num_checked) for check in report.checks[-2:]
    }


def test_one_to_one_is_said_of_a_class_alone(tmp_path: Path) -> None:
    """Right bytes are the proof of a class that says so; not for a class derived from it."""
    twice = (0, 1, 1)
    plan = ip.Plan(Claimed(twice, 3), world_size=1, batch_size=1)
    assert checks(plan, tmp_path / "a")[COUNTED] == ip.types.Check(COUNTED, 3)
    plan = ip.Plan(Derived(twice, 3), world_size=1, batch_size=1)
    assert checks(plan, tmp_path / "b")[COUNTED].problems == (
        "epoch 0: 1 sample is never read, first 2",
        "epoch 0: 1 read of no sample or of one again",
    )


@pytest.mark.parametrize(("kind", "skipped"), [(Bins, ""), (ChangingBins, NEED_NOT)])
def test_bins_are_counted(tmp_path: Path, kind: type[Bins], skipped: str) -> None:
    """The samples in bins are counted, if each has to be read once."""
    plan = ip.Plan(kind(500), world_size=1, batch_size=7)
    found = checks(plan, tmp_path / "a.plan", epochs=range(2), units_per_chunk=60)
    assert all(check.ok for check in found.values())
    assert found[COUNTED].skipped == skipped
    assert found[COUNTED].num_checked == (0 if skipped else 1000)


def test_unknown_orders(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An order that is not known here is hashed and counted; the report says what was not done."""
    root = tmp_path / "a.plan"
    found = checks(ip.Plan(Listed(range(9), 9), world_size=1, batch_size=2), root)
    reason = found[BYTES].skipped
    assert reason.startswith("an order's algorithm must be one of ")
    assert reason.endswith("got 'test-listed-v1'; upgrade indexplan, or import the module that "
                           "registers it")  # fmt: skip
    assert [(WRITTEN, 164), (COUNTED, 9)] == [
        (name, found[name].num_checked) for name in (WRITTEN, COUNTED)
    ]
    assert reason == found["locate is the inverse of batch"].skipped
    assert 0 == main(["verify", str(root)])
    assert f"--  {BYTES}: not checked; {reason}\n" in capsys.readouterr().out
    file = root / "epoch-00000/chunk-00000.npy"
    whole = file.read_bytes()
    for place in (128, 30):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        report = ip.verify(ip.load(root))
        said = next(check.problems for check in report.checks if check.name == WRITTEN)
        assert ("epoch-00000/chunk-00000.npy, block 0: its hash is another",) == said
        assert 1 == main(["verify", str(root)])


def test_files_that_are_too_short(tmp_path: Path) -> None:
    """As many samples as files can't hold are not counted one by one."""
    plan = ip.Plan(Listed(range(10), 2**40), world_size=1, batch_size=2)
    said = "its files are too short for the 1,099,511,627,776 samples of an epoch"
    assert (said,) == checks(plan, tmp_path / "a.plan")[COUNTED].problems


def test_unknown_orders_of_bins(tmp_path: Path) -> None:
    """The same of bins, whose offsets are hashed."""
    root = tmp_path / "a.plan"
    ip.save(ip.Plan(Bins(60), world_size=1, batch_size=2), root)
    unknown = {"algorithm": "test-bins-v0", "num_samples": 60}
    rewritten(root, lambda content: content | {"plan": content["plan"] | {"order": unknown}})
    report = ip.verify(ip.load(root))
    assert report.ok, str(report)
    assert f"ok  {COUNTED} (60)" in str(report)


def test_plan_json_of_another_order(tmp_path: Path) -> None:
    """A plan.json that was forged, digests and all, is compared with the order that it names.

    So are the promises of its order.
    """
    order = ip.Shuffle(1001).to_dict()
    for drawn, change, said in (
        (
            ip.Shuffle(1000),
            lambda content: {"plan": content["plan"] | {"order": order}},
            "num_samples 1000, not 1001; num_units [1000], not [1001]",
        ),
        (
            Drawn(20, seed=7),
            lambda content: {
                "traits": content["traits"] | {"constant_num_units": False, "reads": "once"},
                "stream_key": 8,
            },
            "stream_key 8, not 7; traits.constant_num_units False, not True; traits.reads once, "
            "not any",
        ),
    ):
        root = tmp_path / drawn.algorithm
        ip.save(ip.Plan(drawn, world_size=1, batch_size=2), root)
        rewritten(root, lambda content, change=change: content | change(content))  # type: ignore[misc]
        checks = ip.verify(ip.load(root)).checks
        assert f"plan.json: {said}" == next(each.problems for each in checks if each.problems)[0]


def test_epochs_are_not_looked_up_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many epochs are counted, the list of chunks is walked a few times, not for each."""
    walks = []
    walk = Build.chunks

    def counted(self: Build) -> Iterator[Chunk]:
        walks.append(self)
        return walk(self)

    monkeypatch.setattr(Build, "chunks", counted)
    numbers = []
    for epochs in (2, 20):
        right = Known(range(10), 10)
        ip.save(
            ip.Plan(right, world_size=1, batch_size=8), tmp_path / f"{epochs}", epochs=range(epochs)
        )
        plan = ip.load(tmp_path / f"{epochs}")
        walks.clear()
        assert ip.verify(plan).ok
        numbers.append(len(walks))
    assert numbers[0] == numbers[1] < 5


@given(st.integers(1, 200), st.lists(st.integers(0, 210), min_size=1, max_size=300))
def test_counting(num_samples: int, reads: list[int]) -> None:
    """The count says what sets and lists say."""
    inside = [index for index in reads if index < num_samples]
    missing = sorted(set(range(num_samples)) - set(inside))
    said = []
    if missing:
        are = "sample is" if len(missing) == 1 else "samples are"
        said.append(f"{len(missing):,} {are} never read, first {missing[0]}")
    if again := len(reads) - len(set(inside)):
        said.append(f"{again} read{'s' * (again > 1)} of no sample or of one again")
    with TemporaryDirectory() as folder, patch.object(verifying, "SLAB", 32):
        plan = ip.Plan(Known(reads, num_samples), world_size=1, batch_size=1)
        found = checks(plan, Path(folder) / "a.plan", epochs=[4])
    assert tuple(f"epoch 4: {words}" for words in said) == found[COUNTED].problems
    assert found[BYTES].ok


@ip.register
@dataclass(frozen=True, eq=False)
class Wide(Heavy):
    """Bins of 1,024 samples; it asserts that no more are drawn at a time than fit a slab."""

    algorithm = "test-wide-v1"

    def deal(self, epoch: int, starts: np.ndarray, stops: np.ndarray) -> Units:
        units = super().deal(epoch, starts, stops)
        assert len(units.samples) <= 2 * SLAB_UNITS
        return units


def test_bins_are_drawn_some_at_a_time(tmp_path: Path) -> None:
    """However many samples the bins of a chunk hold, a build and a check draw few at a time."""
    order = Wide(1300 * 1024)
    found = checks(ip.Plan(order, world_size=1, batch_size=7), tmp_path / "a.plan")
    assert all(check.ok for check in found.values())
    assert order.num_samples == found[COUNTED].num_checked
    read = ip.load(tmp_path / "a.plan").order
    assert np.array_equal(np.arange(900 * 1024), read.take(0, 0, 900))
