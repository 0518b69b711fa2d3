"""Errors of questions that a plan has no answer to, and of pictures of it."""

from __future__ import annotations

import numpy as np

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
    locked,
    without,
    written,
)
from tests.support.bins import Bins

LAST = 2**32 - 1
MANY_SHARES = ip.Plan(
    ip.Sequential(2**50), world_size=2**31 - 1, global_batch_size=1001, sub_epochs=2**30,
    remainder="drop",
)  # fmt: skip
BINS = ip.Plan(Bins(10), world_size=1, batch_size=2)


def draw(path: str) -> None:
    """Draw a plan to a file."""
    ip.plot.save(ip.plot.reading(WHOLE), path)


SOURCES = {"all": ip.Sequential(2), "hard": ip.Shuffle(2)}
MIXED = ip.Plan(ip.Mixture(SOURCES, {"all": 1, "hard": 1}), world_size=1, batch_size=2)

CASES: list[Case] = [
    (
        "too many epochs",
        lambda: ip.verify(PLAN, range(2**32)),
        "epochs must be at most 1048576 epochs; got range(0, 4294967296); pass fewer at a time",
    ),
    (
        "an account of too many different shares",
        lambda: MANY_SHARES.account(0),
        "the different shares of an account's sub-epochs must be at most 1048576; got "
        "1073741824; use a global_batch_size that world_size divides, or ask for one sub_epoch",
    ),
    (
        "a batch that no memory holds",
        lambda: ip.Plan(ip.Sequential(2**61), world_size=1, batch_size=2**60).batch(
            0, step=0, rank=0
        ),
        "a step that is listed must be at most 134217728 units of each rank; got "
        "1152921504606846976; use a smaller batch size",
    ),
    (
        "a batch that repeats an epoch for hours",
        lambda: ip.Plan(ip.Sequential(5), world_size=1, batch_size=2**27, remainder="pad").batch(
            0, step=0, rank=0
        ),
        "a step that is listed must be at most 1048576 readings of its units; got 26843546; use a "
        "smaller batch size",
    ),
    (
        "a boolean among indices",
        lambda: ip.Shuffle(5).locate(0, [True, 2, 3]),
        "index must be an integer below 2**63, or an array of them; got [True, 2, 3]; pass "
        "integers, such as an int64 array",
    ),
    (
        "a rank too many",
        lambda: WHOLE.batch(0, step=0, rank=2),
        "rank must be an integer from 0 to 1; got 2; use plan.replace(world_size=...) to change "
        "how many ranks there are",
    ),
    (
        "a step too many",
        lambda: WHOLE.batch(0, step=3, rank=0),
        "step must be an unfinished step of epoch 0 from 0 to 2; got 3; pass a step from "
        "plan.first_step(...) to plan.num_steps(...) - 1",
    ),
    (
        "a step of an epoch without any",
        lambda: EMPTY.batch(0, step=0, rank=0),
        "step must be an unfinished step of epoch 0, and there is none; got 0; plan.account "
        "says why; use smaller batches",
    ),
    (
        "a finished step",
        lambda: RESUMED.batch(1, 1, step=0, rank=0),
        "step must be 1, an unfinished step of epoch 1, sub-epoch 1; got 0; pass a step from "
        "plan.first_step(...) to plan.num_steps(...) - 1",
    ),
    (
        "an epoch before the first",
        lambda: WHOLE.batch(-1, step=0, rank=0),
        "epoch must be an integer from 0 to 2**32 - 1; got -1; count from 0; a run ends with "
        "epoch 2**32 - 1",
    ),
    (
        "an epoch before the resume",
        lambda: RESUMED.num_steps(0, 1),
        "(epoch, sub_epoch) must be not before (1, 1), where the plan was resumed; got (0, 1); "
        "ask the plan that was not resumed",
    ),
    (
        "a sub-epoch too many",
        lambda: PLAN.batch(0, 2, step=0, rank=0),
        "sub_epoch must be an integer from 0 to 1; got 2; name one of the plan's 2 sub-epochs",
    ),
    (
        "a sub-epoch of a plan without",
        lambda: WHOLE.batch(0, 1, step=0, rank=0),
        "sub_epoch must be the integer 0; got 1; leave it out, as the plan has one sub-epoch an "
        "epoch",
    ),
    (
        "a sub-epoch left out",
        lambda: PLAN.num_steps(0),
        "sub_epoch must be an integer from 0 to 1; got None; name one of the plan's 2 sub-epochs",
    ),
    (
        "an account of a sub-epoch too many",
        lambda: PLAN.account(0, 2),
        "sub_epoch must be an integer from 0 to 1; got 2; leave it out for the whole epoch",
    ),
    (
        "an open world",
        lambda: OPEN.batch(0, step=0, rank=0),
        "world_size must be set for this; got None; use plan.replace(world_size=...), "
        "with the number of running ranks",
    ),
    (
        "steps from before the first",
        lambda: PLAN.indices(0, 1, rank=0, start_step=-1),
        "start_step must be an integer from 0 to 2; got -1; name one of the unfinished steps of "
        "epoch 0, sub-epoch 1, or their end",
    ),
    (
        "steps to past the end",
        lambda: PLAN.indices(0, 1, rank=0, stop_step=9),
        "stop_step must be an integer from 0 to 2; got 9; name one of the unfinished steps of "
        "epoch 0, sub-epoch 1, or their end",
    ),
    (
        "steps backwards",
        lambda: PLAN.indices(0, 1, rank=0, start_step=2, stop_step=1),
        "stop_step must be at least 2, the start_step; got 1; swap them",
    ),
    (
        "a cursor of an epoch without steps",
        lambda: EMPTY.cursor(0, step=1),
        "step must be the integer 0; got 1; epoch 0 has no unfinished step; plan.account says why",
    ),
    (
        "no threads",
        lambda: WHOLE.indices(0, rank=0, num_threads=0),
        "num_threads must be an integer from 1 to 65535; got 0; pass the number of cores",
    ),
    (
        "a step past the run",
        lambda: CARRY.batch(LAST, step=CARRY.num_steps(LAST) - 1, rank=0),
        "a step under carry must be inside the run, which ends with epoch 2**32 - 1; got one "
        "that reads on into the next; use another remainder for the last epoch",
    ),
    (
        "a sample too many",
        lambda: WHOLE.locate(10, 0),
        "index must be from 0 to 9; got 10; name one of the order's 10 samples",
    ),
    (
        "rows of different lengths",
        lambda: WHOLE.order.take(0, [[1], [2, 3]]),
        "position must be an integer below 2**63, or an array of them; got [[1], [2, 3]]; pass "
        "integers, such as an int64 array",
    ),
    (
        "a word for a plan",
        lambda: ip.diff("a", WHOLE),
        "a must be a Plan; got 'a'; pass indexplan.Plan(...) or indexplan.load(path)",
    ),
    (
        "a number for a progress",
        lambda: ip.verify(WHOLE, progress=5),
        "progress must be a function; got 5; leave it out, or pass a function of two integers",
    ),
    (
        "a sample among others",
        lambda: WHOLE.locate(np.array([3, -1]), 0),
        "index must be from 0 to 9; got -1; name one of the order's 10 samples",
    ),
    (
        "a sample that is no integer",
        lambda: WHOLE.locate(0.5, 0),
        "index must be an integer below 2**63, or an array of them; got 0.5; pass integers, "
        "such as an int64 array",
    ),
    (
        "positions past the end",
        lambda: PLAN.order.take(3, 0, 11),
        "positions must be an interval inside [0, 10), the positions of epoch 3; got (0, 11); "
        "name some of the epoch's 10 units",
    ),
    (
        "positions past the only one",
        lambda: ip.Shuffle(1).take(3, 1, 2),
        "positions must be an interval inside [0, 1), the positions of epoch 3; got (1, 2); name "
        "some of the epoch's 1 unit",
    ),
    (
        "starts without stops",
        lambda: PLAN.order.take(3, [0, 1], [2]),
        "stops must be of the same shape as starts, (2,); got (1,); give each start a stop",
    ),
    (
        "an explanation of a sample too many",
        lambda: ip.explain(WHOLE, 10),
        "index must be an integer from 0 to 9; got 10; name one of the order's 10 samples",
    ),
    (
        "a number of epochs",
        lambda: ip.diff(WHOLE, WHOLE, 3),
        "epochs must be an iterable of integers; got 3; pass range(3), or [3] for one",
    ),
    (
        "a difference of no epochs",
        lambda: ip.diff(WHOLE, WHOLE, []),
        "epochs must be at least one epoch from 0 on, where the later plan starts; got []; "
        "leave it out for those that can differ",
    ),
    (
        "a verification of no plan",
        lambda: ip.verify(WHOLE.order),
        "plan must be a Plan; got Sequential(num_samples=10); pass indexplan.Plan(...) or "
        "indexplan.load(path)",
    ),
    (
        "draws of very many sub-epochs",
        lambda: ip.draws(MIXED.replace(sub_epochs=2**40)),
        "sub_epochs that are left must be at most 65536, to be counted one by one; got "
        "1099511627776; use fewer sub_epochs",
    ),
    (
        "draws of a sample that belongs to two sources",
        lambda: ip.draws(MIXED.replace(order=ip.Subset(MIXED.order, [0, 1, 1, 2], 3))),
        "sample 1 of a subset must be in one group only, so that its reads can be counted; got "
        "['all', 'hard']; list each sample for one group only",
    ),
    (
        "draws of an order without groups",
        lambda: ip.draws(WHOLE),
        "an order must be one with groups, such as a Mixture; got 'sequential-v1'; plan.account "
        "counts units without groups",
    ),
    (
        "a bench of an order of one's own",
        lambda: ip.bench(BINS),
        'the process that measures first_batch must end well; got "indexplan.errors.'
        "IndexPlanError: an order's algorithm must be one of {ours}; got 'test-bins-v1'; upgrade "
        "indexplan, or import the module that registers it\"; bench one of indexplan's own orders, "
        "with memory to spare",
    ),
    (
        "a picture of the coverage of bins",
        lambda: ip.plot.coverage(BINS),
        "coverage needs an order of single samples; got test-bins-v1; use indexplan.verify",
    ),
    (
        "a picture of the mixing of bins",
        lambda: ip.plot.mixing(BINS),
        "mixing needs an order of single samples; got test-bins-v1; plot the reading instead",
    ),
    (
        "a picture of no window",
        lambda: ip.plot.mixing(WHOLE, window=0),
        "window must be an integer from 1 to 2**63 - 1; got 0; pass how many steps are looked "
        "at together",
    ),
    (
        "a picture of no epochs",
        lambda: ip.plot.schedule(WHOLE, iter(())),
        "epochs must be at least one epoch; got []; leave it out",
    ),
    (
        "a picture of another format",
        lambda: draw("a.gif"),
        "a picture's path must end with .png or .svg or .pdf; got 'a.gif'; end it with one of "
        "these",
    ),
    (
        "a picture that exists",
        lambda: draw(str(written("a.png"))),
        "a.png must be a new file; got one that exists; choose another path, or delete the file",
    ),
    (
        "a picture in no folder",
        lambda: draw("no/a.png"),
        "no/a.png must be written; got 'No such file or directory'; check the folder, its "
        "permissions and its space",
    ),
    (
        "a picture in a locked folder",
        lambda: locked({".": 0o555}, lambda: draw("a.png")),
        "a.png must be written; got 'Permission denied'; check the folder, its permissions and "
        "its space",
    ),
    (
        "a picture without matplotlib",
        lambda: without("matplotlib", lambda: draw("a.png")),
        "matplotlib must be installed for pictures; got No module named 'matplotlib'; pip "
        "install 'indexplan[cli]'",
    ),
]
