"""A spec that breaks a rule is refused where it is made: orders, plans and phases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import indexplan as ip
from indexplan.partition.remainders import REMAINDERS
from tests.support.refusals import refuses


def a_plan(**fields: Any) -> ip.Plan:
    """Return a plan that is right but for what is given."""
    sizes = {} if {"batch_size", "global_batch_size"} & set(fields) else {"batch_size": 2}
    return ip.Plan(**{"order": ip.Sequential(10), "sub_epochs": 2, **sizes, **fields})


NOT_INTEGERS = [1.0, 10.5, True, "10", None, np.float64(5), np.True_, np.array([3])]


@pytest.mark.parametrize(
    "value", [0, -1, 2**63, np.int64(-3), np.uint64(2**63), *NOT_INTEGERS], ids=repr
)
@pytest.mark.parametrize("kind", [ip.Sequential, ip.Shuffle, lambda n: ip.BlockShuffle(n, 4)])
def test_num_samples(kind: Callable[[Any], Any], value: Any) -> None:
    """num_samples is an integer from 1 to 2**63 - 1, of whatever integer type."""
    got = int(value) if isinstance(value, np.integer) else value
    rule = "num_samples must be an integer from 1 to 2**63 - 1"
    refuses(f"{rule}; got {got!r}; pass len(dataset)", kind, value)


@pytest.mark.parametrize("value", [0, -1, 2**63, 2.0, True, None], ids=repr)
@pytest.mark.parametrize("name", ["block_size", "window"])
def test_block_size_and_window(name: str, value: Any) -> None:
    """They are integers from 1 to 2**63 - 1."""
    cures = {
        "block_size": "pass the samples of a shard",
        "window": "pass how many blocks are mixed together",
    }
    message = f"{name} must be an integer from 1 to 2**63 - 1; got {value!r}; {cures[name]}"
    fields = {"block_size": 2, name: value}
    refuses(message, ip.BlockShuffle, 10, **fields)


@pytest.mark.parametrize("value", [-1, 2**128, 1.5, "0", True, None], ids=repr)
def test_seed(value: Any) -> None:
    """A seed is an integer from 0 to 2**128 - 1."""
    rule = "seed must be an integer from 0 to 2**128 - 1"
    message = f"{rule}; got {value!r}; hash other seeds to such an integer first"
    refuses(message, ip.Shuffle, 10, seed=value)
    refuses(message, ip.BlockShuffle, 10, 2, seed=value)


INTEGER_TO = "must be an integer from 1 to"
LEAVE_OUT = "leave it out"
NEST = "pass how many units a batch holds, or a tuple such as (5, 3)"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        *(
            (
                {"world_size": value},
                f"world_size {INTEGER_TO} 2**31 - 1; got {value!r}; {LEAVE_OUT} to keep it open",
            )
            for value in (0, -1, 2**31, 2.0, True, "2")
        ),
        *(
            (
                {"sub_epochs": value},
                f"sub_epochs {INTEGER_TO} 2**63 - 1; got {value!r}; "
                f"{LEAVE_OUT} for one sub-epoch an epoch",
            )
            for value in (0, -1, 2**63, 1.0, True, None)
        ),
        *(
            ({name: value}, f"{name} {INTEGER_TO} 2**62 - 1; got {value!r}; {NEST}")
            for name in ("batch_size", "global_batch_size")
            for value in (0, -1, 2**62, 2.0, True, np.array([2, 3]), b"ab", {2, 3})
        ),
        (
            {"batch_size": []},
            f"batch_size must be a positive integer or a non-empty tuple of them; got []; {NEST}",
        ),
        *(
            (
                {"batch_size": value},
                f"batch_size[{i}] {INTEGER_TO} 2**62 - 1; got {value[i]!r}; {NEST}",
            )
            for i, value in [(0, (0,)), (1, (2, 2.0)), (2, [2, 3, -1]), (0, [True, 2])]
        ),
        (
            {"batch_size": 1, "global_batch_size": 2},
            "exactly one of batch_size and global_batch_size must be given; got both; pass "
            "batch_size for the units of one rank, or global_batch_size for those of all",
        ),
        *(
            (
                {"remainder": value},
                f"remainder must be one of {', '.join(REMAINDERS)}; got {value!r}; "
                f"{meant}{LEAVE_OUT} for spread",
            )
            for value, meant in (
                ("Spread", "did you mean spread? "),
                ("", ""),
                (None, ""),
                (3, ""),
            )
        ),
        *(
            (
                {"order": value},
                f"order must be an Order; got {value!r}; pass indexplan.Shuffle(len(dataset))",
            )
            for value in ("shuffle", None, [1, 2])
        ),
    ],
)
def test_a_plans_fields(fields: dict[str, Any], message: str) -> None:
    """A plan refuses a field that breaks its rule, when constructed and when replaced."""
    refuses(message, a_plan, **fields)
    refuses(message, a_plan().replace, **fields)


@pytest.mark.parametrize(
    ("ats", "message"),
    [
        (
            [(0, 1)],
            "the first phase of batch_size must be at 0; got (0, 1); "
            "start the schedule with Phase(at=0, ...)",
        ),
        *(
            (
                ats,
                "at must be rising from phase to phase; "
                f"got ({ats[-2]}, {ats[-1]}); sort the phases by their place, and keep one at each",
            )
            for ats in (
                [0, 0],
                [0, (0, 0)],
                [(0, 0), 0],
                [0, 5, 5],
                [0, (2, 0), (1, 1)],
                [0, (1, 1), (1, 1)],
                [0, 5, (0, 1)],
                [0, (0, 1), 5],
                [0, (0, 1), 4],
            )
        ),
    ],
)
def test_schedules(ats: list[Any], message: str) -> None:
    """Phases start at 0 and at places that increase."""
    phases = [ip.Phase(at, size) for size, at in enumerate(ats, 1)]
    refuses(message, a_plan, batch_size=phases)


def test_a_schedule_is_of_phases() -> None:
    """Sizes and phases do not mix, whichever comes first."""
    message = "each phase of batch_size must be a Phase; got 5; pass Phase(at, size)"
    refuses(message, a_plan, batch_size=[5, ip.Phase(1, 2)])


PLACES = "count units from the start of the run, or name (epoch, sub_epoch)"
MAPPING = "pass a dict such as {'resolution': 192}"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        *(
            ({"at": value}, f"at must be an integer from 0 to 2**95 - 1; got {value!r}; {PLACES}")
            for value in (-1, True, "5", b"ab", None, 2**95)
        ),
        *(
            (
                {"at": value},
                f"at must be a stream place or (epoch, sub_epoch); got {value!r}; {PLACES}",
            )
            for value in ((), (1,))
        ),
        *(
            (
                {"at": value},
                f"at's epoch must be an integer from 0 to 2**32 - 1; got {value[0]!r}; {PLACES}",
            )
            for value in ((-1, 0), (2**32, 0), (0.0, 1), (True, 0))
        ),
        *(
            ({"size": value}, f"size {INTEGER_TO} 2**62 - 1; got {value!r}; {NEST}")
            for value in (0, -2, 2.0, None)
        ),
        (
            {"size": ()},
            f"size must be a positive integer or a non-empty tuple of them; got (); {NEST}",
        ),
        ({"size": (3, 0)}, f"size[1] {INTEGER_TO} 2**62 - 1; got 0; {NEST}"),
        *(
            (
                {"parameters": value},
                f"parameters must be a mapping of names to JSON scalars; got {value!r}; {MAPPING}",
            )
            for value in ("ab", ["ab"], (("a", 1), ("a", 2)))
        ),
        *(
            (
                {"parameters": {"a": value}},
                "parameter 'a' must be a finite JSON scalar (str, int, float, bool or None); "
                f"got {value!r}; {MAPPING}",
            )
            for value in (float("nan"), float("inf"), np.int64(1))
        ),
    ],
)
def test_a_phases_fields(fields: dict[str, Any], message: str) -> None:
    """A phase refuses a field that breaks its rule."""
    refuses(message, ip.Phase, **fields)


def test_an_order_that_takes_anothers_name() -> None:
    """Two orders of one algorithm's name would read each other's plans."""

    class Impostor(ip.Sequential):
        algorithm = "sequential-v1"

    message = (
        "algorithm must be a name that no other class has registered; got 'sequential-v1'; give "
        "it another name"
    )
    refuses(message, ip.register, Impostor)
    plan = ip.Plan.from_json(a_plan().to_json())
    assert type(plan.order) is ip.Sequential


@pytest.mark.parametrize("name", [name for name in dir(ip.Order) if name.startswith("ip_")])
def test_a_field_named_like_what_the_library_asks(name: str) -> None:
    """It would answer in place of the method, and batches would be others."""
    message = (
        "a field of Odd must be given another name, as orders have a method or property of that "
        f"name; got '{name}'; call it {name}_ or another word"
    )
    refuses(message, type, "Odd", (ip.Order,), {"__annotations__": {name: "int"}})
    assert type("Even", (ip.Order,), {"__annotations__": {f"{name}_": "int", "ip_of": "str"}})


@pytest.mark.parametrize("text", ["32", "5x3", "0:512 250000:768", " ", "[Phase(0, 2)]"])
def test_text_for_a_batch_size(text: str) -> None:
    """It's refused, in Python and in a plan's JSON: a number that nobody converted, for one."""
    cure = "pass how many units a batch holds, or a tuple such as (5, 3)"
    for name in ("batch_size", "global_batch_size"):
        message = f"{name} must be an integer from 1 to 2**62 - 1; got {text!r}; {cure}"
        refuses(message, ip.Plan, ip.Sequential(10), **{name: text})
        given = {**a_plan().to_dict(), "batch_size": None, "global_batch_size": None, name: text}
        refuses(message, ip.Plan.from_dict, given)
