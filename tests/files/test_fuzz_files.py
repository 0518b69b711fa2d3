"""A plan directory with random edits is refused in one line, or is still the plan that it was.

Runs 100 examples of each test;
`pytest --hypothesis-profile=thorough tests/files/test_fuzz_files.py` runs 2000 of each.
"""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
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

NUM = 200
PLANS = {
    "samples": ip.Plan(ip.Shuffle(NUM, seed=5), world_size=2, batch_size=16, sub_epochs=2),
    "bins": ip.Plan(Bins(NUM), world_size=2, batch_size=[ip.Phase(0, 4), ip.Phase(7, (2, 3))]),
}
COPIES = count()
CHUNKS = {
    "samples": [f"epoch-0000{e}/chunk-0000{c}.npy" for e in range(2) for c in range(2)],
    "bins": [f"epoch-00001/chunk-00000{kind}.npy" for kind in ("", ".offsets")],
}
EXAMPLES = settings(
    max_examples=max(100, settings().max_examples),
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def roots(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Path]]:
    """A plan directory of samples and one of bins, with a dataset; made whole by each example."""
    folder = tmp_path_factory.mktemp("fuzz")
    data = folder / "data.npy"
    np.save(data, np.zeros(NUM))
    for name, plan in PLANS.items():
        dataset = ip.Dataset.scan(data)
        ip.save(plan, folder / name, epochs=range(2), dataset=dataset, units_per_chunk=100)
    yield {name: folder / name for name in PLANS}
    shutil.rmtree(folder)


def answers(plan: ip.Plan) -> list[Any]:
    """Whatever the stored epochs of a plan say, as values to compare."""
    said: list[Any] = [plan.to_json()]
    for epoch in range(2):
        units = plan.order.num_units(epoch)
        said.append(plan.order.take(epoch, 0, units).tolist())
        said.append(plan.order.take(epoch, [0, units - 5], [3, units]).tolist())
        said.append(plan.indices(epoch, 0, rank=1).tolist())
    return said


EXPECTED = {name: answers(plan) for name, plan in PLANS.items()}


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
def copied(root: Path) -> Iterator[Path]:
    """Copy a directory to a new path, of which this process has mapped nothing yet."""
    path = root.parent / f"{next(COPIES)}.plan"
    shutil.copytree(root, path)
    try:
        yield path
    finally:
        shutil.rmtree(path)


@EXAMPLES
@given(kind=st.sampled_from(list(PLANS)), changes=edits(), which=st.integers(0, 8))
def test_edited_bytes(
    roots: dict[str, Path], kind: str, changes: list[tuple[str, float, bytes]], which: int
) -> None:
    """Edited bytes of any file are refused, or make no difference."""
    hashes = [name.replace(".npy", ".xxh64") for name in CHUNKS[kind]]
    files = ["plan.json", *CHUNKS[kind], *hashes]
    with copied(roots[kind]) as root:
        file = root / files[which % len(files)]
        file.write_bytes(edited(file.read_bytes(), changes))
        opened(root, kind)


@EXAMPLES
@given(
    kind=st.sampled_from(list(PLANS)),
    which=st.integers(0, 3),
    data=st.binary(min_size=1, max_size=128),
    place=st.integers(0, 127),
)
def test_edited_headers(
    roots: dict[str, Path], kind: str, which: int, data: bytes, place: int
) -> None:
    """A .npy header that was edited with its hash changes no answer, and `verify` finds it."""
    names = CHUNKS[kind]
    with copied(roots[kind]) as root:
        file = root / names[which % len(names)]
        whole = file.read_bytes()
        header = (whole[:place] + data + whole[place + len(data) :])[:128]
        assume(header != whole[:128])
        file.write_bytes(header + whole[128:])
        rehashed(file)
        opened(root, kind)
        assert not ip.verify(ip.load(root)).ok


@EXAMPLES
@given(changes=edits())
def test_builds_that_find_an_edited_plan_json(
    roots: dict[str, Path], changes: list[tuple[str, float, bytes]]
) -> None:
    """A build goes on from its own plan.json only, and says in one line what is wrong with it."""
    with copied(roots["samples"]) as root:
        file = root / "plan.json"
        file.write_bytes(edited(file.read_bytes(), changes))
        dataset = ip.Dataset.scan(roots["samples"].parent / "data.npy")
        try:
            ip.save(PLANS["samples"], root, epochs=range(2), dataset=dataset, units_per_chunk=100)
        except ip.PlanFileError as error:
            check_words(error)
        else:
            opened(root, "samples")


@EXAMPLES
@given(kind=st.sampled_from(list(PLANS)), data=st.data())
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


@EXAMPLES
@given(kind=st.sampled_from(list(PLANS)), data=st.data())
def test_edited_json(roots: dict[str, Path], kind: str, data: st.DataObject) -> None:
    """A plan.json with any other value in it is refused, or says the same."""
    with copied(roots[kind]) as root:
        content = json.loads((root / "plan.json").read_text())
        (root / "plan.json").write_text(json.dumps(changed(data.draw, content)))
        opened(root, kind)


@EXAMPLES
@given(kind=st.sampled_from(list(PLANS)), data=st.data())
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
