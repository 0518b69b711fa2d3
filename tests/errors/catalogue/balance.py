"""Errors of balance."""

from __future__ import annotations

from typing import Any

import numpy as np

import indexplan as ip
from tests.errors.catalogue.made import Case, Command, load_edited, load_forged, nothing

EMPTY = "leave out what is empty, or count in larger units"
NUMBERS = "pass numbers in one dimension, or the path of a .npy file of them"
RESTORE = "restore the file, or build the plan again at another path"
WRITE = "write plans with to_json"
SMALLER = "make linear and quadratic smaller, or count lengths in larger units"
BINS = ip.ClassBatches([0] * 4, classes=1, per_class=4, epoch_size=4)


def planned(balance: Any, **fields: Any) -> ip.Plan:
    """Return a plan of three samples."""
    fields = {"world_size": 1, "batch_size": 2, **fields}
    return ip.Plan(ip.Sequential(3), balance=balance, **fields)


def described(**fields: Any) -> None:
    """Read a plan whose balance has some fields changed."""
    balance = {**ip.Balance([1, 2, 3]).to_dict(), **fields}
    ip.Plan.from_dict({**planned(None).to_dict(), "balance": balance}, columns=[[1, 2, 3]])


def other_plan() -> None:
    """Load a directory whose manifest says of its plan alone that it has a balance."""
    load_forged(plan={**planned(None).to_dict(), "balance": {}})


CASES: list[Case] = [
    (
        "a balance that is none",
        lambda: planned([1, 2, 3]),
        "balance must be a Balance; got [1, 2, 3]; pass indexplan.Balance(lengths)",
    ),
    (
        "a balance of other samples",
        lambda: planned(ip.Balance([1, 2])),
        "balance's lengths must be 3 numbers, one for each sample of the order; got 2; pass the "
        "length of each sample of the dataset",
    ),
    (
        "a balance of a length of 0",
        lambda: ip.Balance([1, 0]),
        f"the length of sample 1 must be an integer from 1 to 1099511627776; got 0; {EMPTY}",
    ),
    (
        "a balance of a negative length",
        lambda: ip.Balance(np.array([1, 5, -1])),
        f"the length of sample 2 must be an integer from 1 to 1099511627776; got -1; {EMPTY}",
    ),
    (
        "a balance of whole floats",
        lambda: ip.Balance([1.0]),
        "lengths must be a flat list or array of integers; got [1.0]; pass integers, such as "
        "an int64 array",
    ),
    (
        "a balance of truths",
        lambda: ip.Balance([True, False]),
        "lengths must be a flat list or array of integers; got [True, False]; pass integers, such "
        "as an int64 array",
    ),
    (
        "a balance that weighs nothing",
        lambda: ip.Balance([1], linear=0),
        "linear and quadratic must be not both 0; got (0, 0); leave linear out for 1",
    ),
    (
        "a balance that weighs less than nothing",
        lambda: ip.Balance([1], quadratic=-1),
        "quadratic must be an integer from 0 to 2**63 - 1; got -1; leave it out, or scale both "
        "down",
    ),
    (
        "a balance of half a cost",
        lambda: ip.Balance([1], linear=0.5),
        "linear must be an integer from 0 to 2**63 - 1; got 0.5; leave it out, or scale both down",
    ),
    (
        "a balance of costs past 2**63",
        lambda: planned(
            ip.Balance([1, 2, 2**31], quadratic=1), batch_size=[ip.Phase(0, 1), ip.Phase(1, 2)]
        ),
        "the costs of a step of 2 units must be below 2**63 - 2, if each cost as much "
        f"as the costliest; got {2 * (2**62 + 2**31)}; {SMALLER}",
    ),
    (
        "a balance of bins that cost more than 2**63",
        lambda: ip.Plan(
            BINS, world_size=1, batch_size=1, balance=ip.Balance([2**40] * 4, linear=2**22)
        ).batch(0, step=0, rank=0),
        "the costs of a step of 1 unit must be below 2**63 - 1, if each cost as much "
        f"as the costliest; got {2**63 - 1}; {SMALLER}",
    ),
    (
        "a balance of lengths in another unit than those of the order",
        lambda: ip.Plan(
            ip.DocumentWindows([50, 30], 10), world_size=1, batch_size=2, balance=ip.Balance([5, 3])
        ).batch(0, step=0, rank=0),
        "a part of a sample must be at most 5, the longest of balance's lengths; got 11; pass "
        "lengths in the order's own unit",
    ),
    (
        "a balance in JSON that is none",
        lambda: ip.Plan.from_dict({**planned(None).to_dict(), "balance": None}),
        f"a balance must be an object; got None; {WRITE}",
    ),
    (
        "a balance of another algorithm",
        lambda: described(algorithm="balance-v9"),
        "a balance's algorithm must be balance-v1; got 'balance-v9'; read it with the version of "
        "indexplan that wrote it, or a newer one",
    ),
    (
        "a balance in JSON that holds its lengths",
        lambda: described(lengths=[1, 2, 3]),
        f"a balance's lengths must be a column's identity; got [1, 2, 3]; {WRITE}",
    ),
    (
        "a build of a balance that is none",
        lambda: load_edited(
            format_version=4,
            constant_num_units=True,
            reads="any",
            stream_key=0,
            cuts_samples=False,
            balance=[],
        ),
        f"{{here}}/a.plan: a build's balance must be an object; got []; {RESTORE}",
    ),
    (
        "a manifest whose plan has another balance",
        other_plan,
        f"{{here}}/a.plan: manifest.json must hold one balance; got a plan with {{}}, not None; "
        f"{RESTORE}",
    ),
    (
        "a picture of work without balance",
        lambda: ip.plot.work(planned(None)),
        "balance must be set for this; got None; use "
        "plan.replace(balance=indexplan.Balance(lengths))",
    ),
    (
        "a picture of work without steps",
        lambda: ip.plot.work(planned(ip.Balance([1, 2, 3]), batch_size=4, remainder="drop")),
        "a picture of work must be of a step, with few ranks; got 0; pass a sub_epoch with "
        "steps, and up to 2**21 ranks",
    ),
]

BUILD = "build a.plan --num-samples 3 --batch-size 2 --balance"
AS = 'write it as "lengths.npy linear=24576 quadratic=1"'

COMMANDS: list[Command] = [
    (
        f"{BUILD} ''",
        2,
        "indexplan: --balance must be text of a path and numbers, with each quote closed; got ''; "
        f"{AS}",
        nothing,
    ),
    (
        f'{BUILD} "a.npy squared=1"',
        2,
        "indexplan: a word of --balance after the path must be NAME=N, with linear and quadratic "
        f"once each; got 'squared=1'; {AS}",
        nothing,
    ),
    (
        f'{BUILD} "a.npy quadratic=0.5"',
        2,
        "indexplan: a word of --balance after the path must be NAME=N, with linear and quadratic "
        f"once each; got 'quadratic=0.5'; {AS}",
        nothing,
    ),
    (
        f"{BUILD} a.npy",
        2,
        "indexplan: a column's path must be that of a .npy file of numbers in one dimension; got "
        "\"{here}/a.npy ([Errno 2] No such file or directory: '{here}/a.npy')\"; write it with "
        "np.save",
        nothing,
    ),
]
