"""A column whose file is written over or cut: answers are of the old numbers, or refusals."""

from __future__ import annotations

import mmap
import os
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import indexplan as ip
from indexplan import kernels
from indexplan.shards import guide
from indexplan.stores import tables
from tests.support.children import in_child
from tests.support.reweighted import reweighted

TIMES = 100  # so that a column has more than a page
N = 12 * TIMES
SMALL = np.tile([3, 1, 2, 3, 1, 2, 4, 4, 1, 2, 3, 4], TIMES)
LABELS = np.tile([0, 0, 0, 1, 1, 1, 2, 2, 2, 0, 1, 2], TIMES)
OTHER_LABELS = np.tile([2, 1, 0, 2, 1, 0, 2, 1, 0, 0, 1, 2], TIMES)
GROUPS = np.arange(N) // 2
OTHER_GROUPS = np.arange(N)[::-1] // 2 * 7 % (N // 2)
REVERSED = SMALL[::-1]
PARTS = {"train": 0.5, "val": 0.5}


def balanced(column: Any) -> Any:
    """Return a plan that shares work by the column."""
    return ip.Plan(
        ip.Shuffle(N), world_size=2, batch_size=3, remainder="drop", balance=ip.Balance(column)
    )


def shards_of(column: Any) -> ip.Shards:
    """Return shards whose sizes are the column."""
    files = [f"{number}.npy" for number in range(N)]
    each: dict[str, Any] = {"num_bytes": [8] * N, "digests": ["0" * 32] * N, "parts": [1] * N}
    return ip.Shards(kind="npy", whole_files=True, files=files, sizes=column, **each)


def asks_of(made: Any) -> dict[str, Callable[[], Any]]:
    """Return what may be asked of an order, a plan or shards, by name; or the only question."""
    if isinstance(made, ip.Order):
        return of_order(made)
    if isinstance(made, ip.Plan):
        return {
            "batch": lambda: made.batch(0, step=0, rank=1),
            "later": lambda: made.batch(1, step=1, rank=0),
            "locate": lambda: str(made.locate(3, 0)),
        }
    if isinstance(made, ip.Shards):
        return {
            "locate": lambda: made.locate(np.arange(20)),
            "num_samples": lambda: made.num_samples,
            "identity": lambda: made.identity,
            "saved": made.to_json,
        }
    return {"answer": made}


def of_order(order: ip.Order) -> dict[str, Callable[[], Any]]:
    """Return what may be asked of an order, by name."""
    every = np.arange(order.num_samples)
    return {
        "num_units": lambda: order.num_units(0),
        "take": lambda: order.take(0, 0, order.num_units(0)),
        "later": lambda: order.take(1, 0, order.num_units(1)),
        "offsets": lambda: order.offsets(0, 0, order.num_units(0)),
        "count": lambda: order.count(0, every),
        "locate": lambda: order.locate_all(0, every),
        "reads": lambda: order.traits.reads,
        "fingerprint": lambda: order.fingerprint,
        "names": lambda: order.group_names,
        "groups": lambda: order.group_of(every),
    }


OF_N = ip.Plan(ip.Shuffle(N), world_size=1, batch_size=5)
PLAN = ip.Plan(ip.Sequential(int(SMALL.sum())), world_size=1, batch_size=7)
FOUR = np.array([1.0, 2, 3, 4])
NINES = np.array([9] * N)
# what takes a column, its numbers, and what they become
TAKERS: dict[str, tuple[Callable[[Any], Any], Any, Any]] = {
    "ClassBalanced": (ip.ClassBalanced, LABELS, OTHER_LABELS),
    "ClassBalanced weights": (lambda c: ip.ClassBalanced(SMALL, 100, c), FOUR, FOUR[::-1]),
    "ClassBatches": (lambda c: ip.ClassBatches(c, 2, 2), LABELS, OTHER_LABELS),
    "Distinct": (lambda c: ip.Distinct(c, 3), GROUPS, OTHER_GROUPS),
    "DocumentWindows": (lambda c: ip.DocumentWindows(c, length=4), SMALL, REVERSED),
    "Grouped": (lambda c: ip.Grouped(c, batch_size=2), GROUPS, OTHER_GROUPS),
    "LengthGrouped": (lambda c: ip.LengthGrouped(c, batch_size=2), SMALL, REVERSED),
    "Packed": (lambda c: ip.Packed(c, max_length=5), SMALL, REVERSED),
    "ShardShuffle": (lambda c: ip.ShardShuffle(c, lanes=2), SMALL, REVERSED),
    "Split, far apart": (
        lambda c: ip.Split(N, PARTS, groups=c)["val"],
        GROUPS * 2**40,
        OTHER_GROUPS * 2**40,
    ),
    "Split, train": (lambda c: ip.Split(N, PARTS, groups=c)["train"], GROUPS, OTHER_GROUPS),
    "Split, val": (lambda c: ip.Split(N, PARTS, groups=c)["val"], GROUPS, OTHER_GROUPS),
    "Subset": (lambda c: ip.Subset(ip.Shuffle(N), c, N + 8), np.arange(N, 0, -1), NINES),
    "Subset, rising": (lambda c: ip.Subset(ip.Shuffle(N), c, N + 8), np.arange(N), NINES),
    "Subset, twice": (lambda c: ip.Subset(ip.Shuffle(N), c, N + 8), GROUPS, NINES),
    "TokenBudget": (lambda c: ip.TokenBudget(c, max_tokens=8), SMALL, REVERSED),
    "Weighted": (ip.Weighted, SMALL * 1.0, REVERSED * 1.0),
    "Weighted, capped": (
        lambda c: ip.Weighted(c, max_repeats=2),
        SMALL * 1.0,
        REVERSED * 1.0,
    ),
    "Weighted later": (
        lambda c: reweighted(ip.Weighted(REVERSED * 2.0), 1, c),
        SMALL * 1.0,
        REVERSED * 1.0,
    ),
    "Without": (lambda c: ip.Without(ip.Shuffle(2 * N), c), np.arange(N) * 2, NINES),
    "Balance": (balanced, SMALL, REVERSED * 3),
    "Shards": (shards_of, SMALL, REVERSED),
    "traffic": (lambda c: lambda: str(ip.traffic(PLAN, c, ranks_per_node=1)), SMALL, REVERSED),
    "reads": (lambda c: lambda: ip.reads(PLAN, c, 0).shards, SMALL, REVERSED),
    "step_total": (lambda c: lambda: OF_N.step_total(c, 0, step=0), SMALL, REVERSED * 2),
}


MOMENTS = ["before it is made", "before it is read", "after a read"]


def write_over(path: Path, numbers: Any) -> None:
    """Write other numbers into a `.npy` file in place, which who has it mapped sees."""
    with path.open("r+b") as stream:
        stream.seek(128)
        stream.write(np.ascontiguousarray(numbers).tobytes())
    os.utime(path, ns=(1, 1))  # as clocks of file systems are coarse


def plain(answer: Any) -> Any:
    """Return an answer with lists for arrays, whose text is cut."""
    if isinstance(answer, np.ndarray):
        return answer.tolist()
    return [*map(plain, answer)] if isinstance(answer, tuple) else answer


def asked(ask: Callable[[], Any]) -> str:
    """Return an answer as text; an empty one if it is refused."""
    try:
        return repr(plain(ask()))
    except ip.IndexPlanError as error:
        # other numbers may break rules too, as a part that is empty then
        return "" if isinstance(error, ip.PlanFileError) else f"refused: {error}"


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("taker", TAKERS)
def test_written_over(taker: str, moment: str, tmp_path: Path) -> None:
    """No answer is of the new numbers, or of both, whenever the file was written over."""
    make, numbers, others = TAKERS[taker]
    right = {name: asked(ask) for name, ask in asks_of(make(ip.Column(numbers))).items()}
    assert "" not in right.values()
    for first in list(right)[: None if moment == "after a read" else 1]:
        path = tmp_path / f"{first}.npy"
        np.save(path, numbers)
        column = ip.Column(path)
        if moment == "before it is made":
            write_over(path, others)
        try:
            made = make(column)
        except ip.IndexPlanError:
            assert moment == "before it is made"
            continue
        asks = asks_of(made)
        if moment != "before it is read":
            asked(asks[first])
        write_over(path, others)
        answers = {name: asked(ask) for name, ask in asks.items()}
        wrong = {name: said for name, said in answers.items() if said not in ("", right[name])}
        assert not wrong, f"after {first}"


def cut_all(folder: str, moment: str) -> str:
    """Cut each column's file short, and ask; return how many were asked."""
    log = Path(folder) / "log"
    for taker, (make, numbers, _) in TAKERS.items():
        path = Path(folder) / f"{taker}.npy"
        np.save(path, numbers)
        column = ip.Column(path)
        if moment == "before it is made":
            os.truncate(path, 128)
        try:
            made = make(column)
        except ip.IndexPlanError:
            continue
        asks = asks_of(made)
        if moment == "after a read":
            asked(next(iter(asks.values())))
        os.truncate(path, 128)
        for name, ask in asks.items():
            log.write_text(f"{taker}: {name}")
            asked(ask)
    return "all"


@pytest.mark.parametrize("moment", MOMENTS)
def test_cut_short(moment: str, tmp_path: Path) -> None:
    """A file that was cut short kills nobody: pages past its end are not touched."""
    try:
        answer = in_child(cut_all, str(tmp_path), moment)
    except EOFError:
        answer = f"killed at {(tmp_path / 'log').read_text()}"
    assert "all" == answer


LIBRARY = str(Path(ip.__file__).parent)
Line = tuple[str, int, str, int]  # a file, its line, where there, and the how manieth time
REFUSED = {"Packed, too short": (lambda c: ip.Packed(c, max_length=3), SMALL, SMALL)}


def is_mapped(value: Any) -> bool:
    """Return whether a value is an array of a mapped file."""
    while isinstance(value, np.ndarray):
        value = value.base
    return isinstance(value, mmap.mmap)


def walked(answers: Callable[[], dict[str, str]], at: Callable[[Line], None]) -> dict[str, str]:
    """Return what is answered; call `at` before each line that may read columns, and inside it."""
    seen: Counter[tuple[str, int, str]] = Counter()

    def reached(frame: FrameType, where: str) -> None:
        line = frame.f_code.co_filename.removeprefix(LIBRARY), frame.f_lineno, where
        seen[line] += 1
        at((*line, seen[line]))

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        code = frame.f_code
        if not code.co_filename.startswith(LIBRARY):
            return None
        if code.co_filename.endswith("orders/columns.py"):
            if event == "return" and frame.f_back:  # numbers that were not looked at yet
                reached(frame.f_back, "inside")
            return trace if code.co_name == "array" else None
        if event == "call" and not {"array", "steady"} & {*code.co_names}:
            return trace if any(map(is_mapped, frame.f_locals.values())) else None
        if event == "line":
            reached(frame, "before")
        return trace

    sys.settrace(trace)
    try:
        return answers()
    except ip.PlanFileError:
        return {}
    except Exception as error:
        return {"error": repr(error)}
    finally:
        sys.settrace(None)


def extremes(numbers: Any) -> list[Any]:
    """Return what a file may become at worst."""
    ends = [-(2**63), 2**63 - 1] if numbers.dtype.kind == "i" else [np.nan, np.inf]
    places = np.arange(len(numbers)) % 5
    some = np.where(places == 1, ends[0], np.where(places == 3, ends[1], numbers))
    return [some, np.ones_like(numbers)]


def edited_at_all_lines(folder: str, taker: str) -> list[Any]:
    """Write over the file before the lines of those who read it; return what went wrong."""
    kernels.sorting.FEW = 0  # so that labels are counted
    make, numbers, _ = {**TAKERS, **REFUSED}[taker]
    path = Path(folder) / "column.npy"

    def answers() -> dict[str, str]:
        tables.TABLES.clear()
        guide._table.cache_clear()
        return {name: asked(ask) for name, ask in asks_of(make(ip.Column(path))).items()}

    np.save(path, numbers)
    met: list[Line] = []
    right, wrong = walked(answers, met.append), []
    lasts = {line[:3]: line for line in met}.values()
    for others in extremes(numbers):
        for line in {*(line for line in met if line[3] == 1), *lasts}:

            def edit(at: Line, line: Line = line, others: Any = others) -> None:
                if at == line:
                    write_over(path, others)

            np.save(path, numbers)
            (Path(folder) / "line").write_text(str(line))
            said = walked(answers, edit).items()
            wrong += [(*line, *each) for each in said if each[1] and each not in right.items()]
    return sorted(wrong)


@pytest.mark.slow
@pytest.mark.parametrize("taker", [*TAKERS, *REFUSED])
def test_edited_at_any_line(taker: str, tmp_path: Path) -> None:
    """Between whichever readings it comes, an edit is told of, or has changed no answer."""
    try:
        wrong = in_child(edited_at_all_lines, str(tmp_path), taker)
    except EOFError:
        wrong = [f"killed at {(tmp_path / 'line').read_text()}"]
    assert [] == wrong
