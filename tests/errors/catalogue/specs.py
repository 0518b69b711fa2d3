"""Errors of what is made by hand: orders, plans and phases."""

from __future__ import annotations

from typing import Any

import numpy as np

import indexplan as ip
from tests.errors.catalogue.made import CURSOR, EMPTY, PLAN, Case
from tests.support.bins import ChangingBins


class Impostor(ip.Sequential):
    """An order that takes another's name."""

    algorithm = "sequential-v1"


def plan(**fields: Any) -> ip.Plan:
    """Make a plan that is right but for what is given."""
    sizes = {} if {"batch_size", "global_batch_size"} & set(fields) else {"batch_size": 2}
    return ip.Plan(**{"order": ip.Sequential(10), "sub_epochs": 2, **sizes, **fields})


def at(*places: Any) -> ip.Plan:
    """Make a plan with a phase at each of some places."""
    return plan(batch_size=[ip.Phase(place, size) for size, place in enumerate(places, 1)])


CASES: list[Case] = [
    (
        "JSON of too many objects",
        lambda: ip.Plan.from_json('{"a":[' + "[]," * 2**20 + "0]}"),
        "a plan must hold at most 1048576 brackets, colons and quotes; got 1048581; pass what "
        "to_json returned, unchanged",
    ),
    (
        "no samples",
        lambda: ip.Shuffle(0),
        "num_samples must be an integer from 1 to 2**63 - 1; got 0; pass len(dataset)",
    ),
    (
        "a float of samples",
        lambda: ip.Shuffle(1e9),
        "num_samples must be an integer from 1 to 2**63 - 1; got 1000000000.0; pass len(dataset)",
    ),
    (
        "a negative seed",
        lambda: ip.Shuffle(10, seed=-1),
        "seed must be an integer from 0 to 2**128 - 1; got -1; hash other seeds to such an "
        "integer first",
    ),
    (
        "a boolean seed",
        lambda: ip.Shuffle(10, seed=True),
        "seed must be an integer from 0 to 2**128 - 1; got True; hash other seeds to such an "
        "integer first",
    ),
    (
        "an empty block",
        lambda: ip.BlockShuffle(10, 0),
        "block_size must be an integer from 1 to 2**63 - 1; got 0; pass the samples of a shard",
    ),
    (
        "a window of no blocks",
        lambda: ip.BlockShuffle(10, 2, window=0),
        "window must be an integer from 1 to 2**63 - 1; got 0; pass how many blocks are mixed "
        "together",
    ),
    (
        "two orders of one name",
        lambda: ip.register(Impostor),
        "algorithm must be a name that no other class has registered; got 'sequential-v1'; give "
        "it another name",
    ),
    (
        "no order",
        lambda: plan(order=10),
        "order must be an Order; got 10; pass indexplan.Shuffle(len(dataset))",
    ),
    (
        "an array for an order",
        lambda: plan(order=np.zeros((3, 2), np.int8)),
        "order must be an Order; got array([[0, 0], [0, 0], [0, 0]], dtype=int8); pass "
        "indexplan.Shuffle(len(dataset))",
    ),
    (
        "a long list for an order",
        lambda: plan(order=list(range(1000))),
        "order must be an Order; got [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, "
        "17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, "
        "38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, "
        "59, 60, 61, 62, 63, 64, 65, 66, 67, 68, 69, 70, 71, 72, 73, 74, 75, 76, 7...; pass "
        "indexplan.Shuffle(len(dataset))",
    ),
    (
        "a class for an order",
        lambda: plan(order=ip.Shuffle),
        "order must be an Order; got <class 'indexplan.orders.shuffle.Shuffle'>; pass "
        "indexplan.Shuffle(len(dataset))",
    ),
    (
        "no ranks",
        lambda: plan(world_size=0),
        "world_size must be an integer from 1 to 2**31 - 1; got 0; leave it out to keep it open",
    ),
    (
        "no sub-epochs",
        lambda: plan(sub_epochs=0),
        "sub_epochs must be an integer from 1 to 2**63 - 1; got 0; leave it out for one "
        "sub-epoch an epoch",
    ),
    (
        "an unknown remainder",
        lambda: plan(remainder="wrap"),
        "remainder must be one of drop, pad, spread, carry; got 'wrap'; leave it out for spread",
    ),
    (
        "no batch size",
        lambda: plan(batch_size=None),
        "exactly one of batch_size and global_batch_size must be given; got neither; pass "
        "batch_size for the units of one rank, or global_batch_size for those of all",
    ),
    (
        "both batch sizes",
        lambda: plan(batch_size=1, global_batch_size=2),
        "exactly one of batch_size and global_batch_size must be given; got both; pass batch_size "
        "for the units of one rank, or global_batch_size for those of all",
    ),
    (
        "a batch size that is no integer",
        lambda: plan(batch_size=2.0),
        "batch_size must be an integer from 1 to 2**62 - 1; got 2.0; pass how many units a "
        "batch holds, or a tuple such as (5, 3)",
    ),
    (
        "a batch size of nothing",
        lambda: plan(batch_size=()),
        "batch_size must be a positive integer or a non-empty tuple of them; got (); pass how "
        "many units a batch holds, or a tuple such as (5, 3)",
    ),
    (
        "a nested size of nothing",
        lambda: plan(batch_size=(2, 0)),
        "batch_size[1] must be an integer from 1 to 2**62 - 1; got 0; pass how many units a "
        "batch holds, or a tuple such as (5, 3)",
    ),
    (
        "a huge nested size",
        lambda: plan(global_batch_size=(2**40, 2**40)),
        "the product of global_batch_size must be an integer from 1 to 2**62 - 1; got "
        "1208925819614629174706176; use smaller batches",
    ),
    (
        "a huge global batch",
        lambda: plan(batch_size=2**40, world_size=2**30),
        "batch_size * world_size must be an integer from 1 to 2**62 - 1; got "
        "1180591620717411303424; use smaller batches",
    ),
    (
        "text for a batch size",
        lambda: plan(batch_size="0:512"),
        "batch_size must be a size or a list of phases; got '0:512'; use parse_schedule for text",
    ),
    (
        "a size among phases",
        lambda: plan(batch_size=[ip.Phase(0, 2), 5]),
        "each phase of batch_size must be a Phase; got 5; pass Phase(at, size)",
    ),
    (
        "a schedule that starts late",
        lambda: at(5),
        "the first phase of batch_size must be at 0; got 5; start the schedule with Phase(at=0, "
        "...)",
    ),
    (
        "phases in no order",
        lambda: at(0, 7, 5),
        "at must be rising from phase to phase; got (7, 5); sort the phases by their "
        "place, and keep one at each",
    ),
    (
        "a phase at no sub-epoch",
        lambda: at(0, (1, 2)),
        "at's sub_epoch must be below 2; got 2; name one of the plan's 2 sub-epochs",
    ),
    (
        "phases by place in uneven epochs",
        lambda: plan(order=ChangingBins(10), batch_size=[ip.Phase(0, 1), ip.Phase(5, 2)]),
        "a phase at a stream place needs an order with the same number of units in every epoch; "
        "got test-changing-bins-v1; use another remainder, and phases at (epoch, sub_epoch)",
    ),
    (
        "carry over uneven epochs",
        lambda: plan(order=ChangingBins(10), remainder="carry"),
        "carry needs an order with the same number of units in every epoch; got "
        "test-changing-bins-v1; use another remainder, and phases at (epoch, sub_epoch)",
    ),
    (
        "a resume by hand",
        lambda: plan(resumed=(0, 0)),
        "resumed must be a Resume; got (0, 0); use plan.resume(cursor)",
    ),
    (
        "a change of no field",
        lambda: PLAN.replace(ranks=3),
        "a changed field must be one of order, world_size, batch_size, global_batch_size, "
        "sub_epochs, remainder, balance; got 'ranks'; check the spelling; plan.resume sets resumed",
    ),
    (
        "a phase at a float",
        lambda: ip.Phase(at=1.5),
        "at must be an integer from 0 to 2**95 - 1; got 1.5; count units from the start of the "
        "run, or name (epoch, sub_epoch)",
    ),
    (
        "a phase at three numbers",
        lambda: ip.Phase(at=(1, 2, 3)),
        "at must be a stream place or (epoch, sub_epoch); got (1, 2, 3); count units from the "
        "start of the run, or name (epoch, sub_epoch)",
    ),
    (
        "a phase at a negative epoch",
        lambda: ip.Phase(at=(-1, 0)),
        "at's epoch must be an integer from 0 to 2**32 - 1; got -1; count units from the start "
        "of the run, or name (epoch, sub_epoch)",
    ),
    (
        "a phase at a negative sub-epoch",
        lambda: ip.Phase(at=(0, -1)),
        "at's sub_epoch must be an integer from 0 to 2**63 - 1; got -1; count units from the "
        "start of the run, or name (epoch, sub_epoch)",
    ),
    (
        "a phase of no units",
        lambda: ip.Phase(size=0),
        "size must be an integer from 1 to 2**62 - 1; got 0; pass how many units a batch holds, "
        "or a tuple such as (5, 3)",
    ),
    (
        "a parameter that a phase has not",
        lambda: ip.Phase(parameters={"size": 128})["resolution"],
        "a parameter must be one of the phase's, ['size']; got 'resolution'; give each phase of "
        "the plan the same parameters",
    ),
    (
        "parameters that are no mapping",
        lambda: ip.Phase(parameters=5),
        "parameters must be a mapping of names to JSON scalars; got 5; pass a dict such as "
        "{'resolution': 192}",
    ),
    (
        "a parameter without a name",
        lambda: ip.Phase(parameters={1: 2}),
        "a parameter's name must be a string; got 1; pass a dict such as {'resolution': 192}",
    ),
    (
        "a parameter that is a list",
        lambda: ip.Phase(parameters={"a": [1]}),
        "parameter 'a' must be a finite JSON scalar (str, int, float, bool or None); got [1]; "
        "pass a dict such as {'resolution': 192}",
    ),
    (
        "a number for a schedule",
        lambda: ip.parse_schedule(5),
        "a batch size must be text: a size, or phases such as '0:512 250000:768'; got 5; pass "
        "numbers and phases to the plan directly",
    ),
    (
        "no words for a schedule",
        lambda: ip.parse_schedule(" "),
        "a batch size must be text: a size, or phases such as '0:512 250000:768'; got ' '; write "
        "at least a size",
    ),
    (
        "a word that is no phase",
        lambda: ip.parse_schedule("0:5 x"),
        "a phase must be AT:SIZE or AT:SIZE:NAME=VALUE,...; got 'x'; write one such as 250000:768",
    ),
    (
        "a place of three numbers",
        lambda: ip.parse_schedule("1/2/3:4"),
        "AT must be a stream place or EPOCH/SUB_EPOCH; got '1/2/3'; write one such as 250000 or "
        "3/0",
    ),
    (
        "a place that is no number",
        lambda: ip.parse_schedule("-1:4"),
        "AT must be a stream place or EPOCH/SUB_EPOCH; got '-1'; write digits",
    ),
    (
        "a size that is no number",
        lambda: ip.parse_schedule("5x"),
        "a batch size must be a size such as 256 or 5x3; got '5x'; write digits",
    ),
    (
        "a size of nothing",
        lambda: ip.parse_schedule("0"),
        "a batch size must be an integer from 1 to 2**62 - 1; got 0; pass how many units a "
        "batch holds, or a tuple such as (5, 3)",
    ),
    (
        "a parameter without a value",
        lambda: ip.parse_schedule("0:5:a"),
        "a parameter must be NAME=VALUE; got 'a'; write one such as resolution=192",
    ),
    (
        "a resume from no cursor",
        lambda: PLAN.resume(5),
        "cursor must be a Cursor; got 5; read saved text with Cursor.from_json",
    ),
    (
        "another order's cursor",
        lambda: PLAN.replace(order=ip.Shuffle(10)).resume(CURSOR),
        "a cursor must belong to the plan's order; got one with algorithm sequential-v1, not "
        "shuffle-v1, seed missing, not 0; resume it with the order it was saved under",
    ),
    (
        "other sub-epochs' cursor",
        lambda: PLAN.replace(sub_epochs=3).resume(CURSOR),
        "a cursor's sub_epochs must be 3, the plan's; got 2; use plan.replace(sub_epochs=2)",
    ),
    (
        "a seed for no rank",
        lambda: ip.worker_seed(0, epoch=0, rank=-1, worker=0),
        "rank must be an integer from 0 to 2**32 - 1; got -1; count from 0",
    ),
    (
        "a bench of no step",
        lambda: ip.bench(EMPTY),
        "the number of steps to measure must be at least 1; got 0; bench more samples, fewer "
        "ranks or a smaller batch",
    ),
    (
        "a batch that nests too deep",
        lambda: plan(batch_size=(1,) * 900),
        "batch_size must be a tuple of at most 62 levels; got '900 levels'; leave out levels of 1",
    ),
    (
        "a parameter of 5,000 digits",
        lambda: ip.Phase(parameters={"a": 10**5000}),
        "parameter 'a' must be an integer of at most 4000 digits; got a value of type int that "
        "cannot be printed; use a str",
    ),
]
