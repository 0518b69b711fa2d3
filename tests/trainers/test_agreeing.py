"""Ranks that should read the same plan: compared once, by two real ranks."""

import re
from pathlib import Path
from typing import Any

import pytest

import indexplan as ip
from tests.trainers.ranks import run_ranks

SWITCH = "pass compare=False to a loader that not all ranks read"
CURE = "make the plan from the same arguments on every rank, move to it at the same step, or "
CURE += SWITCH


BALANCE = f"{ip.Balance(range(1, 104)).to_dict()!r:.60}..."

ENDS = {
    "equal": "read",
    "seeds": f"ranks must read the same plan; .*; {re.escape(CURE)}",
    "new.ledger": "read",
    "loaded.ledger": "read",
    "damaged.ledger": ".*damaged.ledger, line 1: .*",
}

# what the first to come says of itself and of the other, in either order
DIFFER = {
    "seeds": ("order.seed", "8", "9"),
    "batch sizes": ("batch_size", "6", "5"),
    "times": ("again", "1", "2"),
    "passes": ("pass", "[0, 0]", "[1, 0]"),
    "jumps": ("moved at", "[0, 12, 0]", "[0, 24, 0]"),
    "states": ("resumed.position", "12", "24", "resumed.step", "1", "2"),
    "repeats": ("dealt", "1", "2"),
    "moves": ("dealt", "1", "2", "moved at", "[0, 0, 1]", "[0, 0, 2]"),
    "seeds, given ranks": ("order.seed", "8", "9"),
    "seeds, a mesh": ("order.seed", "8", "9"),
    "seeds, once more": ("order.seed", "8", "9"),
    "seeds, a sampler": ("order.seed", "8", "9"),
    "balance": ("balance", BALANCE, "none"),
}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """What two ranks read, or the words of their errors, by name."""
    folder = tmp_path_factory.mktemp("stores")
    return run_ranks("tests.trainers.agreeing_runs:everything", 2, str(folder))


@pytest.mark.parametrize("name", DIFFER)
def test_ranks_that_differ_all_say_how(told: list[Any], name: str) -> None:
    """Another seed, size, `again`, pass, balance, state or step of a move: one error on both."""
    each = [DIFFER[name][place : place + 3] for place in range(0, len(DIFFER[name]), 3)]
    words = "; ".join(f"{what} {here}, not {there}" for what, here, there in each)
    expected = f"ranks must read the same plan; got {words} (rank 0, not rank 1); {CURE}"
    assert [expected, expected] == [told[0][name], told[1][name]]


def test_ranks_that_would_read_the_same_part_are_refused(told: list[Any]) -> None:
    """Such as those that take LOCAL_RANK for the rank: one part twice, and another never."""
    expected = (
        "ranks must read different parts of a plan, unless a mesh makes them peers; got rank=0, "
        "world_size=2 on several processes; leave rank= and world_size= out, or pass mesh= if they "
        "share samples"
    )
    assert [expected, expected] == [each["one part"] for each in told]


@pytest.mark.parametrize("name", ["equal", "equal, twice", "one state", "in workers"])
def test_ranks_that_agree_read(told: list[Any], name: str) -> None:
    """Equal plans are read as ever, each loader compared on its own."""
    assert ["read", "read"] == [each[name] for each in told]


@pytest.mark.parametrize("name", ["switched off", "one rank, given"])
def test_what_only_one_rank_reads_waits_for_nobody(told: list[Any], name: str) -> None:
    """A loader with compare=False, or that is told to be the only rank, goes on alone."""
    assert ["read", "idle"] == [each[name] for each in told]


def test_an_iterator_asked_again_after_an_error_waits_for_nobody(told: list[Any]) -> None:
    """The others have no error, and do not compare once more."""
    assert ["read", "read"] == [each["again on one rank"] for each in told]


def test_a_rank_that_waits_in_vain_says_for_whom(told: list[Any]) -> None:
    """If the others never begin, it is an error after the group's timeout, and no hang."""
    expected = (
        "ranks must begin their first pass together, to compare plans; got 1 of 2 before the "
        f"timeout of the process group; {SWITCH}"
    )
    assert [expected, "idle"] == [each["alone"] for each in told]


@pytest.mark.parametrize("name", ENDS)
def test_rank_0_takes_the_store_along_only_when_all_have_read_it(name: str, tmp_path: Path) -> None:
    """Whether it ends well or by an error, a slower rank ends like it, not by a lost connection."""
    Path(tmp_path, "damaged.ledger").write_text("{}\n")
    told = run_ranks("tests.trainers.agreeing_runs:rank_0_ends", 2, str(tmp_path), name)
    assert told[0] == told[1]
    assert re.fullmatch(ENDS[name], told[0])
