"""A plan directory with random edits is refused in one line, or is still the plan that it was.

Runs 100 examples of each test, 60 of the one that verifies;
`pytest --hypothesis-profile=thorough tests/files/test_fuzz_files.py` runs 2000 of each.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import indexplan as ip
from tests.support.bins import Bins
from tests.support.forging import rehashed, rewritten

NUM = 60
LENGTHS = [3, 1, 2, 3, 1, 2, 4, 4, 1, 2, 3, 4]
PHASES = [ip.Phase(0, 4), ip.Phase(7, (2, 3))]
PLANS = {  # each with its units_per_chunk
    "samples": (ip.Plan(ip.Shuffle(NUM, seed=5), world_size=2, batch_size=6, sub_epochs=2), 30),
    "bins": (ip.Plan(Bins(NUM), world_size=2, batch_size=PHASES), 30),
    "packed": (ip.Plan(ip.Packed(LENGTHS, max_length=5), world_size=2, batch_size=3), 4),
    "windows": (
        ip.Plan(ip.DocumentWindows(LENGTHS, length=4, overlap=1), world_size=2, batch_size=3),
        4,
    ),
}
COPIES = count()
EXAMPLES = settings(
    max_examples=max(100, settings().max_examples),
    suppress_health_check=list(HealthCheck),
)


def save(name: str, root: Path) -> None:
    """Save a plan, that of samples with a dataset."""
    plan, units_per_chunk = PLANS[name]
    dataset = ip.Dataset.scan(root.parent / "data.npy") if name == "samples" else None
    ip.save(plan, root, epochs=range(2), dataset=dataset, units_per_chunk=units_per_chunk)


@pytest.fixture(scope="module")
def roots(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Path]]:
    """Plan directories; made whole by each example."""
    folder = tmp_path_factory.mktemp("fuzz")
    np.save(folder / "data.npy", np.zeros(NUM))
    for name in PLANS:
        save(name, folder / name)
        shutil.copytree(folder / name, folder / f"{name}.whole")
    yield {name: folder / name for name in PLANS}
    shutil.rmtree(folder)


def questions(plan: ip.Plan) -> Iterator[Callable[[], Any]]:
    """Yield whatever the stored epochs of a plan can be asked, for values to compare."""
    order = plan.order
    for epoch in range(2):
        units = order.num_units(epoch)
        yield partial(order.offsets, epoch, 0, units)
        yield partial(order.offsets, epoch, 3, 4)
        if order.traits.cuts_samples:
            yield partial(order.spans, epoch, 0, units)
        yield partial(order.take, epoch, 0, units)
        yield partial(order.take, epoch, [0, units - 5], [3, units])
        yield partial(plan.indices, epoch, 0, rank=1)
        yield lambda epoch=epoch: plan.units(epoch, 0, step=0, rank=0).offsets


def answers(plan: ip.Plan) -> list[Any]:
    """Return what a plan answers."""
    return [plan.to_json(), *(ask().tolist() for ask in questions(plan))]


EXPECTED = {name: answers(plan) for name, (plan, _) in PLANS.items()}


def check_words(error: ip.IndexPlanError) -> None:
    """A refusal is one line, and quotes no more of a file than a screen holds."""
    assert "\n" not in str(error)
    assert len(str(error)) < 2000


def opened(root: Path, name: str) -> None:
    """Read a directory as users do: the plan that it was, or a refusal."""
    try:
        found = answers(ip.load(root))
    except ip.PlanFileError as error:
        check_words(error)
    else:
        assert EXPECTED[name] == found


@st.composite
def edits(draw: st.DrawFn) -> list[tuple[str, float, bytes]]:
    """Up to three edits of a file: what to do, where in it, and with which bytes."""
    some = st.one_of(
        st.binary(min_size=1, max_size=6),
        st.sampled_from([b"}", b"{", b"[", b",", b'"', b" ", b"\n", b"0", b"9" * 400, b"\\u0000"]),
        st.sampled_from(
            [b"null", b"NaN", b"1e999", b"-1", b"[" * 3000, b"\xff\xfe", b"\xef\xbb\xbf"]
        ),
    )
    kinds = st.sampled_from(["replace", "insert", "delete", "flip", "truncate", "copy"])
    return draw(st.lists(st.tuples(kinds, st.floats(0, 1), some), min_size=1, max_size=3))


def edited(data: bytes, changes: list[tuple[str, float, bytes]]) -> bytes:
    """Return a file's bytes after some edits."""
    for kind, where, some in changes:
        place = min(int(where * len(data)), max(0, len(data) - 1))
        if not data:
            return some
        data = {
            "replace": data[:place] + some + data[place + len(some) :],
            "insert": data[:place] + some + data[place:],
            "delete": data[:place] + data[place + len(some) :],
            "flip": data[:place] + bytes([data[place] ^ some[0]]) + data[place + 1 :],
            "truncate": data[:place],
            "copy": data[:place] + data[place // 2 : place // 2 + 20] + data[place:],
        }[kind]
    return data


@contextmanager
def copied(root: Path, in_place: bool = False) -> Iterator[Path]:
    """Copy a directory to a new path, of which this process has mapped nothing yet.

    In place, it is the same one each time, and a reader has it open.
    """
    path = root if in_place else root.parent / f"{next(COPIES)}.plan"
    if not in_place:
        shutil.copytree(root, path)
    earlier = ip.load(path) if in_place else None
    if earlier is not None:
        assert EXPECTED[root.name] == answers(earlier)
    try:
        yield path
    finally:
        shutil.rmtree(path)
        if in_place:
            shutil.copytree(f"{root}.whole", root)


@pytest.mark.slow
@EXAMPLES
@given(
    kind=st.sampled_from([*PLANS]),
    changes=edits(),
    which=st.integers(0, 99),
    in_place=st.booleans(),
    put_back=st.booleans(),
)
def test_edited_bytes(
    roots: dict[str, Path],
    kind: str,
    changes: list[tuple[str, float, bytes]],
    which: int,
    in_place: bool,
    put_back: bool,
) -> None:
    """Edited bytes of any file are refused by readers and builds, or make no difference.

    An edit may keep the file's time.
    """
    with copied(roots[kind], in_place) as root:
        files = [root / "plan.json", *sorted(root.glob("epoch-*/*"))]
        file = files[which % len(files)]
        times = file.stat()
        file.write_bytes(edited(file.read_bytes(), changes))
        if put_back:
            os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
        opened(root, kind)
        try:
            save(kind, root)
        except ip.PlanFileError as error:
            check_words(error)
        else:
            opened(root, kind)


@settings(EXAMPLES, max_examples=max(60, settings().max_examples))
@given(
    kind=st.sampled_from([*PLANS]),
    which=st.integers(0, 99),
    data=st.binary(min_size=1, max_size=128),
    place=st.floats(0, 1, exclude_max=True),
    in_header=st.booleans(),
)
def test_arrays_edited_with_their_hashes(
    roots: dict[str, Path], kind: str, which: int, data: bytes, place: float, in_header: bool
) -> None:
    """A .npy header that was edited changes no answer, and `verify` finds it.

    Of edited numbers, each question gets an answer or a refusal, and never memory without bounds.
    """
    with copied(roots[kind]) as root:
        files = sorted(root.glob("epoch-*/*.npy"))
        file = files[which % len(files)]
        whole = file.read_bytes()
        start, stop = (0, 128) if in_header else (128, len(whole))
        at = start + int(place * (stop - start))
        edit = (whole[:at] + data + whole[at + len(data) :])[:stop] + whole[stop:]
        assume(edit != whole)
        file.write_bytes(edit)
        rehashed(file)
        if in_header:
            opened(root, kind)
            assert not ip.verify(ip.load(root)).ok
            return
        for ask, expected in zip(questions(ip.load(root)), EXPECTED[kind][1:], strict=True):
            with suppress(ip.PlanFileError):
                assert np.size(ask()) <= 2 * np.size(expected) + 8


@pytest.mark.slow
@EXAMPLES
@given(kind=st.sampled_from([*PLANS]), data=st.data())
def test_moved_files(roots: dict[str, Path], kind: str, data: st.DataObject) -> None:
    """Files and folders that are removed, renamed, swapped or copied over each other."""
    with copied(roots[kind]) as root:
        paths = sorted(path for path in root.rglob("*"))
        a, b = (data.draw(st.sampled_from(paths)) for _ in range(2))
        do = data.draw(st.sampled_from(["remove", "rename", "swap", "copy"]))
        inside = a in b.parents or b in a.parents or a == b
        if do == "remove":
            shutil.rmtree(a) if a.is_dir() else a.unlink()
        elif do == "rename":
            a.rename(a.with_name(data.draw(st.sampled_from([f"{a.name}x", f".{a.name}", "x.npy"]))))
        elif do == "copy" and a.is_file() and b.is_file():
            b.write_bytes(a.read_bytes())
        elif not inside:
            a.rename(root / "between")
            b.rename(a)
            (root / "between").rename(b)
        opened(root, kind)


VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-2, 250),
        st.sampled_from([2**31, 2**32, 2**53, 2**62, 2**63, 2**64, 2**70, 10**400]),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(max_size=5),
        st.sampled_from(
            ["../../x", "/etc/passwd", "sequential-v1", "partition-v2", "drop", "0" * 64]
        ),
    ),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2)
    ),
    max_leaves=6,
)


def changed(draw: Any, value: Any) -> Any:
    """Change something somewhere in a JSON value."""
    if isinstance(value, dict | list) and value and draw(st.integers(0, 4)):
        copy: Any = value.copy()
        place = draw(
            st.sampled_from(sorted(value) if isinstance(value, dict) else range(len(value)))
        )
        if draw(st.integers(0, 9)) == 0:
            del copy[place]
        else:
            copy[place] = changed(draw, value[place])
        return copy
    return draw(VALUES)


@pytest.mark.slow
@EXAMPLES
@given(kind=st.sampled_from([*PLANS]), data=st.data())
def test_forged_json(roots: dict[str, Path], kind: str, data: st.DataObject) -> None:
    """A plan.json that was forged, digests and all, may say other things, but breaks nothing.

    Whoever can write all files of a directory can write another plan. It is read or refused.
    """
    with copied(roots[kind]) as root:

        def change(content: dict[str, Any]) -> dict[str, Any]:
            field = data.draw(st.sampled_from(sorted(content)))
            return {**content, field: changed(data.draw, content[field])}

        rewritten(root, change)
        try:
            plan = ip.load(root)
            answers(plan)
            if kind == "samples" and plan.world_size is not None:
                assert ip.verify(plan).ok in (True, False)
        except ip.IndexPlanError as error:
            check_words(error)
