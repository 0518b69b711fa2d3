"""The laws of what is made from an order: its dict form, copies, plan directories and plans."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO

import numpy as np

from indexplan.canonical import canonical_json
from indexplan.errors import IndexPlanError, shown
from indexplan.files.read import load
from indexplan.files.saving import save
from indexplan.orders.base import Order
from indexplan.orders.registry import order_from_dict, registered
from indexplan.partition.remainders import REMAINDERS, Remainder
from indexplan.plan.plan import Plan
from indexplan.reports.verification import verify
from indexplan.seeds import EPOCH_STOP
from indexplan.testing.looking import Found, Law, Look, Row, answers, read_too_often

MOST_STORED = 2**20  # samples of an epoch that are written to a plan directory
CHILD = """
import pickle, sys
with open(sys.argv[1], "rb") as file:
    sys.path[:] = pickle.load(file)
    from indexplan.testing.copies import answer
    answer(file, sys.argv[2])
"""


def _compared(look: Look) -> Found:
    kind = type(look.order)
    kept = kind.__eq__ is Order.__eq__ and kind.__hash__ is Order.__hash__
    yield 1, "" if kept else f"an __eq__ or __hash__ of {kind.__name__}"


def _registered(look: Look) -> Found:
    name = look.order.to_dict().get("algorithm")
    known = any(kind.algorithm == name for kind in registered())
    yield 1, "" if known else f"algorithm {shown(name)}, which is not"


def _from_json(look: Look) -> Found:
    data = look.order.to_dict()
    read = json.loads(canonical_json(data))
    yield 1, "" if read == data else f"{shown(data)}, which JSON reads as {shown(read)}"
    order = order_from_dict(read, list(look.order.columns.values()))
    yield look.differs("the copy", answers(order, look.asked))


def _from_pickle(look: Look) -> Found:
    order = pickle.loads(pickle.dumps(look.order))  # noqa: S301 (what was pickled a moment ago)
    yield look.differs("the copy", answers(order, look.asked))


def _fresh(look: Look) -> Found:
    with tempfile.TemporaryDirectory() as folder:
        asked, answered = Path(folder, "asked"), Path(folder, "answered")
        with asked.open("wb") as file:
            pickle.dump(sys.path, file)
            pickle.dump((look.order, look.asked), file)
        # another seed of Python's own hashes, on which nothing may depend
        seed = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
        done = subprocess.run(  # noqa: S603 (Python itself)
            [sys.executable, "-c", CHILD, str(asked), str(answered)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            yield 0, (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        answers = pickle.loads(answered.read_bytes())  # noqa: S301 (what we had written)
    yield look.differs("a new process", answers)


def answer(file: IO[bytes], answered: str) -> None:
    """Answer a parent's questions to an order, in a new process."""
    order, asked = pickle.load(file)  # noqa: S301 (what our parent wrote)
    Path(answered).write_bytes(pickle.dumps(answers(order, asked)))


def _continued(look: Look) -> Found:
    saved, row = look.order.to_dict(), look.rows[0]
    own = look.order.continues(saved, row.epoch, row.num_units // 2)
    yield 1, "" if own is True else f"{shown(own)} from continues for its own dict form"
    other = look.order.continues({"algorithm": "another-v1"}, row.epoch, row.num_units // 2)
    yield 1, "" if other is False else f"{shown(other)} from continues for algorithm another-v1"


def _too_large(look: Look) -> str:
    most = max(row.num_units for row in look.rows[:2])
    if most <= MOST_STORED and look.order.traits.deals_bins:
        ends = [look.order.offsets(row.epoch, 0, row.num_units)[-1] for row in look.rows[:2]]
        most = int(max(ends))
    words = f"an epoch has {most:,} reads, more than {MOST_STORED:,}; check a smaller order too"
    return words if most > MOST_STORED else ""


def _stored(look: Look) -> Found:
    plan = _planned(look.order, 2, 2, "spread")
    epochs = [row.epoch for row in look.rows[:2]]  # the others will be computed
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "order.plan")
        save(plan, path, epochs=epochs, units_per_chunk=look.rows[0].num_units // 3 + 1)
        loaded = load(path)
        yield look.differs("the directory", answers(loaded.order, look.asked))
        problems = [each for check in verify(loaded, []).checks for each in check.problems]
        yield 1, problems[0] if problems else ""


def _plans(look: Look) -> Found:
    for row in look.rows[:2]:
        size = min(row.num_units // 24 + 1, 64)
        reads_on = look.order.traits.constant_num_units and row.epoch + 1 < EPOCH_STOP
        remainders = [name for name, of in REMAINDERS.items() if reads_on or not of.crosses]
        remainders.sort(key="spread".__ne__)  # the default comes first
        problems = []
        for world_size, remainder in enumerate(remainders, 1):
            plan = _planned(look.order, world_size, size, remainder)
            cut = plan.cursor(row.epoch, step=plan.steps(row.epoch).stop // 2)
            rest = _planned(look.order, world_size + 2, size + 1, remainder).resume(cut)
            for each in (plan, rest):
                checks = verify(each, [row.epoch]).checks
                said = [problem for check in checks for problem in check.problems]
                problems += [f"{problem} ({remainder})" for problem in said]
        yield 1, problems[0] if problems else ""  # one, however many policies there are
        if row.whole:
            yield len(row.positions), _dealt(row, size)


def _planned(order: Order, world_size: int, size: int, remainder: Remainder) -> Plan:
    """Return a plan; with padding where, under "drop", an epoch is too short for a step.

    An order that is made for some global batch gets that.
    """
    whole = order.ip_global_batch if order.ip_global_batch > 1 else None
    mine = None if whole else size
    try:
        return Plan(
            order,
            world_size=world_size,
            batch_size=mine,
            global_batch_size=whole,
            remainder=remainder,
        )
    except IndexPlanError:
        if not REMAINDERS[remainder].leaves:
            raise
        return Plan(order, world_size=world_size, batch_size=size, remainder="pad")


def _dealt(row: Row, size: int) -> str:
    """Return what is wrong with the batches of all ranks, taken together."""
    plan = _planned(row.order, 3, size, "spread")
    ranks = [plan.batches(row.epoch, rank=rank) for rank in range(3)]
    batches = [batch for step in zip(*ranks, strict=True) for batch in step]
    right = np.array_equal(np.concatenate(batches), row.indices)
    return "" if right else f"batches of epoch {row.epoch} that are not what take reads"


IN_A_NEW_PROCESS = Law(
    "answer the same in a new process",
    _fresh,
    "define it in a module that a new process can import, and let it depend on its fields alone, "
    "or pass fresh_process=False",
)
LAWS = (
    Law("leave __eq__ and __hash__ to Order", _compared, "use @dataclass(frozen=True, eq=False)"),
    Law("be registered", _registered, "put @indexplan.register before its class"),
    Law(
        "come back from its dict form",
        _from_json,
        "hold all that it depends on in fields: of JSON types, columns and orders",
    ),
    Law(
        "come back from a pickle",
        _from_pickle,
        "define it in a module, and keep everything that it needs in its fields",
    ),
    IN_A_NEW_PROCESS,
    Law(
        "accept its own cursors, and no other order's",
        _continued,
        "remove continues, or let it compare what was read up to the cursor",
    ),
    Law(
        "answer the same from a plan directory",
        _stored,
        "hold all that it depends on in fields: of JSON types, columns and orders",
        _too_large,
    ),
    Law(
        "make plans that read each unit once, and locate it",
        _plans,
        "let each answer depend on the order's fields and the arguments alone",
        read_too_often,
    ),
)
