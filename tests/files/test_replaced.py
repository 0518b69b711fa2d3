"""A plan that is replaced by another one at its path: no reader of the first answers from it."""

import pickle
import sys
from collections.abc import Iterator
from pathlib import Path

import fsspec
import numpy as np
import pytest

import indexplan as ip
from tests.support.children import in_child
from tests.support.in_a_fork import refused_in_a_fork
from tests.support.refusals import refused_file as refused
from tests.support.trees import PLAN

OTHER = PLAN.replace(order=ip.Shuffle(1000, seed=6))  # whose files have the same sizes
MANY = {"units_per_chunk": 256}
RIGHT = PLAN.order.take(0, 0, 1000)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A plan directory of 4 chunks."""
    ip.save(PLAN, tmp_path / "a.plan", **MANY)
    return tmp_path / "a.plan"


@pytest.fixture(params=["folder", "store"])
def anywhere(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    """The path of such a plan, or its URL."""
    monkeypatch.setenv("INDEXPLAN_CACHE", str(tmp_path / "cache"))
    path = f"{'memory://' if request.param == 'store' else ''}{tmp_path}/a.plan"
    ip.save(PLAN, path, **MANY)
    yield path
    fsspec.filesystem("memory").store.clear()


def remove(path: Path | str) -> None:
    """Remove a plan."""
    store, root = fsspec.core.url_to_fs(str(path))
    store.rm(root, recursive=True)


def replace(root: Path | str) -> str:
    """Put another plan at a path; return with which words a reader of the first is refused."""
    first = digest(root)
    remove(root)
    ip.save(OTHER, root, **MANY)
    cure = "open it again, and give every plan a path of its own"
    rule = f"must still hold the plan that was opened, of the sha256 {first:.16}..."
    return f"{root} {rule}; got {digest(root):.16}...; {cure}"


def digest(root: Path | str) -> str:
    """The digest that plan.json holds of itself."""
    return ip.types.Stored(root).build.sha256


def first_batch(plan: ip.Plan) -> list[int]:
    """What a worker reads."""
    batch: list[int] = plan.batch(0, 0, step=0, rank=0).tolist()
    return batch


def test_pickled_readers(anywhere: str) -> None:
    """A pickled order, and a plan that holds one, refuse another plan at their path or URL."""
    order, plan = pickle.dumps(ip.types.Stored(anywhere)), pickle.dumps(ip.load(anywhere))
    assert PLAN.order == pickle.loads(order)  # noqa: S301 (our own)
    assert first_batch(PLAN) == first_batch(pickle.loads(plan))  # noqa: S301
    said = replace(anywhere)
    for text in (order, plan):
        assert said == refused(pickle.loads, text)
    assert first_batch(OTHER) == first_batch(ip.load(anywhere))  # what was kept is of the first
    remove(anywhere)
    assert "must be a plan directory; got nothing there" in refused(pickle.loads, order)
    ip.save(PLAN, anywhere, **MANY)  # the same plan again is the same
    assert first_batch(PLAN) == first_batch(pickle.loads(plan))  # noqa: S301


def test_open_readers(root: Path) -> None:
    """What is mapped stays as it was; what has to be opened is not taken from another plan."""
    order = ip.types.Stored(root)
    assert RIGHT[:256].tolist() == order.take(0, 0, 256).tolist()
    said = replace(root)
    assert RIGHT[:256].tolist() == order.take(0, 0, 256).tolist()
    for _ in range(2):
        assert said == refused(order.take, 0, 0, 257)
    assert [*OTHER.order.take(0, 0, 1000)] == [*ip.types.Stored(root).take(0, 0, 1000)]
    remove(root)
    ip.save(PLAN, root, **MANY)
    assert RIGHT.tolist() == order.take(0, 0, 1000).tolist()


def test_readers_while_the_other_plan_is_built(root: Path) -> None:
    """Between the deletion of a plan and the last file of its successor, nothing is taken."""
    order = ip.types.Stored(root)
    remove(root)
    ip.save(OTHER, root, part=(1, 2), **MANY)
    assert "must still hold the plan that was opened" in refused(order.take, 0, 0, 1)
    assert "must be readable; got 'No such file or directory'" in refused(order.take, 0, 600, 601)


def test_forked_workers(root: Path) -> None:
    """A forked worker inherits its parent's reader, and what that will not take."""
    plan = ip.load(root)
    said = replace(root)
    assert said == refused_in_a_fork(lambda: first_batch(plan))


def opened(root: Path) -> list[str]:
    """The files that are opened while a reader maps all chunks of a plan."""
    order, paths = ip.types.Stored(root), []
    sys.addaudithook(lambda call, args: paths.append(str(args[0])) if call == "open" else None)
    assert np.array_equal(RIGHT, order.take(0, 0, 1000))
    return [Path(path).name for path in paths]


def test_plan_json_is_read_once(root: Path) -> None:
    """Of a plan that stays, plan.json is not read again, however many files are mapped."""
    names = in_child(opened, root)
    assert {f"chunk-0000{i}.npy" for i in range(4)} <= set(names)
    assert "plan.json" not in names
