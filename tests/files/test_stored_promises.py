"""A loaded plan answers every public question as the plan that was saved: it keeps all promises.

Also where the order's class is unknown to the process that loads it, whenever the files can tell.
"""

from __future__ import annotations

import inspect
import re
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure
from matplotlib.offsetbox import TextArea

import indexplan as ip
import indexplan_torch
from indexplan.orders.registry import _REGISTRY
from indexplan.orders.traits import HOOKS
from indexplan.partition.remainders import REMAINDERS
from tests.support.bins import Bins, ChangingBins, Drawn, Pieces
from tests.support.trees import tree

EPOCHS = [0, 2]  # of these, changing bins have as many: no promise, though it looks like one
ORDERS = [
    ip.Shuffle(20, seed=7),
    Bins(20),
    ChangingBins(20),
    Drawn(20, seed=9),
    Pieces(20),
    ip.Repeat(ip.Shuffle(20, seed=10), copies=3),
    ip.Subset(ip.Repeat(ip.Shuffle(20, seed=11), copies=2), range(20), 20),
    ip.Mixture({"a": ip.Shuffle(12, seed=12), "b": ip.Shuffle(8, seed=13)}, {"a": 3, "b": 2}),
]
# over the edge of a chunk, none, and nothing at all
RUNS: list[Any] = [(epoch, [1, 5, 3], [2, 9, 3]) for epoch in EPOCHS] + [(0, [], [])]
INVERSE = "locate is the inverse of batch"
UNKNOWN = "an order's algorithm must be one of"

Question = Callable[[ip.Plan], Any]


def each(ask: Callable[[ip.Plan, int, int], Any]) -> Question:
    """Ask for the two ranks' first step in the stored epochs."""
    return lambda plan: [ask(plan, epoch, rank) for epoch in EPOCHS for rank in range(2)]


def schedules() -> Iterator[dict[str, Any]]:
    """Yield the fields of a plan under every remainder, and of schedules by place."""
    for remainder in REMAINDERS:
        yield {"batch_size": 3, "remainder": remainder}
    yield {"batch_size": [ip.Phase(0, 2), ip.Phase(7, 3)]}
    yield {"batch_size": [ip.Phase(0, 2), ip.Phase((1, 0), 3)]}


def plans_of(order: ip.Order) -> list[Any]:
    """Return what becomes of plans of an order: their accounts, or the errors that refuse them."""
    return [
        outcome(lambda fields=fields: ip.Plan(order, world_size=2, **fields).account(0))
        for fields in schedules()
    ]


def files_of(write: Callable[[Path], Any]) -> Any:
    """Return what a function wrote to a folder."""
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder) / "out")
        return tree(Path(folder) / "out")


def numbers(batch: Any) -> Any:
    """Return numbers in lists, whatever number of lists they are in."""
    return [numbers(each) for each in batch] if isinstance(batch, list | tuple) else int(batch)


def streamed(plan: ip.Plan, kind: Any) -> Any:
    """Return the batches of a sampler or loader of rank 1, and where it stands."""
    stream = kind(plan, rank=1, world_size=2)
    return [numbers(list(stream)), len(stream), stream.state_dict()]


def pulled(plan: ip.Plan, rank: int) -> Any:
    """Return what a rank draws from a stream, into the second epoch, and where it stands then."""
    stream = ip.stream(plan.replace(balance=None), rank=rank)  # with balance it is refused
    first, then = stream.draw(15), stream.draw(9, units=True)
    stream.give_back(2)
    stream.trained(4)
    return first, then, stream.num_left, stream.state_dict()


def loaded(plan: ip.Plan) -> Any:
    """Return what a PlanLoader without workers reads, and its main process's random stream."""
    loader = indexplan_torch.PlanLoader(
        range(20), plan, rank=1, world_size=2, num_workers=0, collate_fn=list
    )
    return list(loader), len(loader), loader.state_dict()


def seeds(plan: ip.Plan, worker: int = 0) -> Any:
    """Return what the process of a worker is seeded with for two passes of both ranks."""
    said = []
    for rank in range(2):
        loader = indexplan_torch.PlanLoader(range(20), plan, rank=rank, world_size=2)
        for number in EPOCHS:
            loader.set_epoch(number)
            indexplan_torch.seeding.SeedWorker(loader.run)(worker)
            said.append(torch.initial_seed())
    return said


# Every public question, by the name of whoever answers it; attributes answer with their value.
QUESTIONS: dict[str, Question] = {
    "Plan": lambda plan: plans_of(plan.order),
    "Plan.steps": each(lambda plan, epoch, _: list(plan.steps(epoch))),
    "Plan.batch": each(lambda plan, epoch, rank: plan.batch(epoch, step=0, rank=rank)),
    "Plan.units": each(lambda plan, epoch, rank: plan.units(epoch, step=0, rank=rank)),
    "Plan.indices": each(lambda plan, epoch, rank: plan.indices(epoch, rank=rank)),
    "Plan.batch_sizes": each(lambda plan, epoch, rank: plan.batch_sizes(epoch, rank=rank)),
    "Plan.batches": each(
        lambda plan, epoch, rank: [
            list(plan.batches(epoch, rank=rank, units=units)) for units in (False, True)
        ]
    ),
    "Plan.step_total": each(lambda plan, epoch, _: plan.step_total(range(1, 21), epoch, step=0)),
    "Plan.step_size": each(lambda plan, epoch, _: plan.step_size(epoch, step=0)),
    "Plan.locate": each(lambda plan, epoch, _: plan.locate(range(20), epoch)),
    "Plan.locate_all": each(lambda plan, epoch, _: plan.locate_all(range(20), epoch)),
    "Plan.account": each(lambda plan, epoch, _: plan.account(epoch)),
    "Plan.cursor": each(lambda plan, epoch, _: plan.cursor(epoch, step=1)),
    "Plan.cursor_at": lambda plan: [
        outcome(lambda place=place: plan.cursor_at(place)) for place in (0, 5, 23)
    ],
    "Plan.resume": lambda plan: plan.resume(plan.cursor(0, step=1)).indices(0, rank=1),
    "Plan.replace": lambda plan: [
        outcome(lambda fields=fields: plan.replace(**fields).account(2)) for fields in schedules()
    ],
    "Plan.to_json": lambda plan: [
        plan.to_json(),
        ip.Plan.from_json(plan.to_json(), order=plan.order).account(0),
    ],
    "Plan.from_json": lambda plan: ip.Plan.from_json(plan.to_json()).account(0),
    "Order.take": lambda plan: [plan.order.take(*runs) for runs in RUNS],
    "Order.offsets": lambda plan: [plan.order.offsets(*runs) for runs in RUNS],
    "Order.spans": lambda plan: [plan.order.spans(*runs) for runs in RUNS],
    "Order.locate": lambda plan: [plan.order.locate(epoch, range(20)) for epoch in EPOCHS],
    "Order.locate_all": lambda plan: [plan.order.locate_all(e, range(20)) for e in EPOCHS],
    "Order.count": lambda plan: [plan.order.count(epoch, range(20)) for epoch in EPOCHS],
    "Order.continues": lambda plan: [
        plan.order.continues(saved, 1, 5) for saved in (plan.order.to_dict(), {})
    ],
    "Order.group_of": lambda plan: outcome(lambda: plan.order.group_of(range(20))),
    "Order.group_shares": lambda plan: [
        outcome(lambda epoch=epoch: plan.order.group_shares(epoch, 1, 5)) for epoch in EPOCHS
    ],
    "Order.shares_of": lambda plan: plan.order.shares_of,
    "Order.num_units": lambda plan: [plan.order.num_units(epoch) for epoch in EPOCHS],
    "Order.to_dict": lambda plan: plan.order.to_dict(),
    "stream": lambda plan: [outcome(lambda rank=rank: pulled(plan, rank)) for rank in range(2)],
    "explain": lambda plan: [ip.explain(plan, sample, EPOCHS) for sample in range(20)],
    "diff": lambda plan: ip.diff(plan, plan.replace(batch_size=3), EPOCHS),
    "verify": lambda plan: [
        check
        for check in ip.verify(plan, EPOCHS).checks
        if not ("byte" in check.name or check.name.startswith("every epoch reads"))
    ],  # the laws; a stored plan's files come after them
    "save": lambda plan: files_of(lambda out: ip.save(plan, out, epochs=EPOCHS)),
    "export": lambda plan: files_of(lambda out: ip.export(plan, out, epochs=EPOCHS)),
    "draws": ip.draws,
    "traffic": lambda plan: ip.traffic(plan, [7, 13], ranks_per_node=1, epochs=EPOCHS),
    "reads": lambda plan: ip.reads(plan, [7, 13], 2, ranks=[1]),
    "plot.mixing": ip.plot.mixing,
    "plot.reading": ip.plot.reading,
    "torch.PlanBatchSampler": lambda plan: streamed(plan, indexplan_torch.PlanBatchSampler),
    "torch.PlanSampler": lambda plan: list(indexplan_torch.PlanSampler(plan, rank=1, world_size=2)),
    "torch.PlanLoader": lambda plan: [loaded(plan), seeds(plan, 0), seeds(plan, 1)],
}

# Of an order whose class is not known, nobody can tell where a sample is, nor write it anew.
NEED_THE_CLASS = {
    "Plan.locate", "Plan.locate_all", "Plan.from_json", "Order.locate", "Order.locate_all",
    "Order.count", "explain", "save",
}  # fmt: skip


def found() -> set[str]:
    """Return the names of all public questions: whatever a plan or an order has or is passed to."""
    names = {f"Plan.{name}" for name in dir(ip.Plan) if not name.startswith("_")}
    names |= {f"Plan.{field.name}" for field in fields(ip.Plan)}
    names |= {f"Order.{name}" for name in dir(ip.Order) if not name.startswith(("_", "ip_"))}
    names |= {f"Order.{name}" for name in inspect.get_annotations(ip.Order)}
    for prefix, module in (("", ip), ("plot.", ip.plot), ("torch.", indexplan_torch)):
        for name in module.__all__:
            value = getattr(module, name)
            told = isinstance(value, type) and issubclass(value, Exception | ip.Order)
            if not callable(value) or told:
                continue
            for taken in inspect.signature(value).parameters.values():
                if re.search(r"\b(Plan|Order|Run|loader)\b", str(taken)):
                    names.add(prefix + name)
    hooks = {f"Order.{name}" for name in HOOKS if name not in ("num_units", "continues")}
    return names - hooks - {"register"}  # which Order asks itself; and of a class


def asked_of(order: ip.Order, name: str) -> bool:
    """Return whether to ask; pictures take their time."""
    quick = not name.startswith("plot.")
    return quick or type(order) in (ip.Shuffle, ChangingBins)


def ask(name: str, plan: ip.Plan) -> Any:
    """Return the answer to a question, made comparable, or the error that refuses it."""
    kind, _, attribute = name.partition(".")
    asked = {"Plan": plan, "Order": plan.order}.get(kind)
    return outcome(
        lambda: QUESTIONS[name](plan) if name in QUESTIONS else getattr(asked, attribute)
    )


def outcome(answer: Callable[[], Any]) -> Any:
    """Return an answer, or the words of the error that refuses it."""
    try:
        return plain(answer())
    except ip.IndexPlanError as error:
        return f"{type(error).__name__}: {error}"


def plain(value: Any) -> Any:
    """Return a value of which `==` tells all: lists, records, what a picture is of."""
    if isinstance(value, np.ndarray):
        return [value.dtype.str, value.shape, value.tolist()]
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, Figure):
        return [shown for artist in value.findobj() for shown in drawn(artist)]
    if is_dataclass(value) and not isinstance(value, ip.Order):
        return [type(value).__name__, *(plain(getattr(value, f.name)) for f in fields(value))]
    assert not callable(value), f"write the question that {value} is asked"
    return value


def drawn(artist: Any) -> Iterator[Any]:
    """Yield what tells a text, a line, a bar or an image of a figure from another."""
    for name in ("get_text", "get_xydata", "get_extents", "get_facecolor", "get_array"):
        if hasattr(artist, name) and not isinstance(artist, TextArea):
            value = getattr(artist, name)()
            yield name, str(value) if hasattr(value, "extents") else plain(value)


BALANCE = ip.Balance([1 + 7 * i % 20 for i in range(20)])


@pytest.mark.parametrize(
    ("order", "balance"),
    [*((order, None) for order in ORDERS), (ORDERS[0], BALANCE), (Bins(20), BALANCE)],
    ids=lambda each: getattr(each, "algorithm", "balance" if each else ""),
)
def test_every_question_is_answered_alike(
    order: ip.Order,
    balance: ip.Balance | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Computed, loaded, and loaded without the order's class, plans say the same, word by word."""
    remainder = "pad" if isinstance(order, ChangingBins) else "carry"
    constant = remainder == "carry"
    plan = ip.Plan(order, world_size=2, batch_size=(2, 2), remainder=remainder, balance=balance)
    epochs = range(4) if constant else EPOCHS
    ip.save(plan, tmp_path / "a.plan", epochs=epochs, units_per_chunk=8)
    names = [name for name in sorted(found()) if asked_of(order, name)]
    expected = {name: ask(name, plan) for name in names}
    answers = {name: ask(name, ip.load(tmp_path / "a.plan")) for name in names}
    assert [] == [name for name in names if answers[name] != expected[name]]
    if type(order).__module__ != Bins.__module__:
        return  # of this library, and known everywhere
    monkeypatch.delitem(_REGISTRY, order.algorithm)
    answers = {name: ask(name, ip.load(tmp_path / "a.plan")) for name in names}
    told = [check for check in answers.pop("verify") if UNKNOWN not in check[-1]]
    assert told == [check for check in expected["verify"] if check[1] != INVERSE]
    assert [] == [name for name in NEED_THE_CLASS if UNKNOWN not in answers.pop(name)]
    assert [] == [name for name in answers if answers[name] != expected[name]]


def test_a_question_cannot_be_forgotten() -> None:
    """Each question of the table is asked by that name; a name without one fails in `plain`."""
    assert set() == set(QUESTIONS) - found()
    assert {"Plan.batch", "Order.traits", "plot.reading", "torch.PlanLoader"} <= found()
