"""Errors of questions that a plan has no answer to, and of pictures of it."""

from __future__ import annotations

import indexplan as ip
import indexplan.plot
from tests.errors.catalogue.made import (
    CARRY,
    EMPTY,
    OPEN,
    PLAN,
    RESUMED,
    WHOLE,
    Case,
    without,
)
from tests.support.bins import Bins, ChangingBins

LAST = 2**32 - 1
MANY_SHARES = ip.Plan(
    ip.Sequential(2**50), world_size=2**31 - 1, global_batch_size=1001, sub_epochs=2**30,
    remainder="drop",
)  # fmt: skip
BINS = ip.Plan(Bins(10), world_size=1, batch_size=2)
CHANGING = ip.Plan(ChangingBins(10), world_size=1, batch_size=2)


SOURCES = {"all": ip.Sequential(2), "hard": ip.Shuffle(2)}
MIXED = ip.Plan(ip.Mixture(SOURCES, {"all": 1, "hard": 1}), world_size=1, batch_size=2)

CASES: list[Case] = [
    ("too many epochs", lambda: ip.verify(PLAN, range(2**32))),
    ("an account of too many different shares", lambda: MANY_SHARES.account(0)),
    (
        "a batch that no memory holds",
        lambda: ip.Plan(ip.Sequential(2**61), world_size=1, batch_size=2**60).batch(
            0, step=0, rank=0
        ),
    ),
    (
        "a batch that repeats an epoch for hours",
        lambda: ip.Plan(ip.Sequential(5), world_size=1, batch_size=2**27, remainder="pad").batch(
            0, step=0, rank=0
        ),
    ),
    ("a boolean among indices", lambda: ip.Shuffle(5).locate(0, [True, 2, 3])),
    ("a step too many", lambda: WHOLE.batch(0, step=3, rank=0)),
    ("a step of an epoch without any", lambda: EMPTY.batch(0, step=0, rank=0)),
    ("a finished step", lambda: RESUMED.batch(1, 1, step=0, rank=0)),
    ("an epoch before the resume", lambda: RESUMED.steps(1, 0).stop),
    ("a sub-epoch of a plan without", lambda: WHOLE.batch(0, 1, step=0, rank=0)),
    ("a sub-epoch left out", lambda: PLAN.steps(0).stop),
    ("an open world", lambda: OPEN.batch(0, step=0, rank=0)),
    ("steps backwards", lambda: PLAN.indices(0, 1, rank=0, start_step=2, stop_step=1)),
    ("a cursor of an epoch without steps", lambda: EMPTY.cursor(0, step=2)),
    ("a cursor of a place before the plan's start", lambda: RESUMED.cursor_at(17)),
    (
        "a cursor of a place before the start of epochs that differ in units",
        lambda: CHANGING.resume(CHANGING.cursor(1, step=1)).cursor_at(0),
    ),
    ("a cursor of a place too far to count to", lambda: CHANGING.cursor_at(2**80)),
    ("a cursor of a place that is perhaps dropped", lambda: EMPTY.cursor_at(3)),
    ("a step past the run", lambda: CARRY.batch(LAST, step=CARRY.steps(LAST).stop - 1, rank=0)),
    ("a sample too many", lambda: WHOLE.locate(10, 0)),
    ("rows of different lengths", lambda: WHOLE.order.take(0, [[1], [2, 3]])),
    ("a word for a plan", lambda: ip.diff("a", WHOLE)),
    ("a number for a progress", lambda: ip.verify(WHOLE, progress=5)),
    ("positions past the end", lambda: PLAN.order.take(3, 0, 11)),
    ("positions past the only one", lambda: ip.Shuffle(1).take(3, 1, 2)),
    ("starts without stops", lambda: PLAN.order.take(3, [0, 1], [2])),
    ("a number of epochs", lambda: ip.diff(WHOLE, WHOLE, 3)),
    ("a difference of no epochs", lambda: ip.diff(WHOLE, WHOLE, [])),
    ("a verification of no plan", lambda: ip.verify(WHOLE.order)),
    (
        "draws of very many epochs that have to be drawn",
        lambda: ip.draws(WHOLE.replace(order=ip.ClassBalanced([0, 1])), stop=2**30),
    ),
    (
        "draws of a sample that belongs to two sources",
        lambda: ip.draws(MIXED.replace(order=ip.Subset(MIXED.order, [0, 1, 1, 2], 3))),
    ),
    ("draws of an order without groups", lambda: ip.draws(WHOLE)),
    ("draws of an epoch from a place on", lambda: ip.draws(MIXED, 0, start=2)),
    ("draws that end before they start", lambda: ip.draws(MIXED, start=3, stop=2)),
    ("draws from before the run", lambda: ip.draws(MIXED, start=-1)),
    (
        "draws of a finished epoch",
        lambda: ip.draws(MIXED.resume(MIXED.replace(world_size=1).cursor(2, step=0)), 1),
    ),
    (
        "draws up to before where a plan was resumed",
        lambda: ip.draws(
            MIXED.resume(MIXED.replace(world_size=1).cursor(2, step=0)),
            stop=MIXED.replace(world_size=1).cursor(1, step=0),
        ),
    ),
    ("a picture of the mixing of bins", lambda: ip.plot.mixing(BINS)),
    ("a picture without matplotlib", lambda: without("matplotlib", lambda: ip.plot.reading(WHOLE))),
]
