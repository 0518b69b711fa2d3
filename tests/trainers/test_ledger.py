"""A run's ledger under real ranks: written by one, computed by all, through stops and returns."""

from pathlib import Path
from typing import Any

import pytest

import indexplan as ip
from tests.histories.listing import Leg, Listed
from tests.trainers.ranks import run_ranks

RUNS = "tests.trainers.ledger_runs"
# passes of 5 and 4 steps on 4 ranks, 6 on 3, and 9 on 2
LEGS = [
    Leg(4, None, (3, "a", 8, "b", 1)),  # stopped in the middle of epoch 1, past its last state
    Leg(3, "b", (3, "c", 9)),
    Leg(4, "a", (2, "d")),  # a return to an earlier checkpoint
    Leg(2, "c", (20, "e", 3)),  # and to one whose steps are void since
]


def test_ranks_write_what_they_read(tmp_path: Path) -> None:
    """4, 3, 4 and 2 ranks read one run: states are equal, each sample is where it was read."""
    listed = Listed()
    for leg in LEGS:
        told = run_ranks(
            f"{RUNS}:leg", leg.ranks, str(tmp_path), [leg.ranks, leg.load, leg.actions]
        )
        listed.add(leg, told)
        listed.check(ip.Ledger(tmp_path / "run.ledger"))


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """What two ranks tell of ledgers that cannot be written."""
    return run_ranks(f"{RUNS}:refused", 2, str(tmp_path_factory.mktemp("runs")))


def test_all_ranks_say_what_the_first_cannot_write(told: list[Any]) -> None:
    """The error of the rank that writes is that of the others, and nobody waits."""
    for name, start in {
        "of another run": "the checkpoint's ledger, for {here}/run.ledger, must be the hash of one",
        "damaged": "{here}/damaged.ledger, line 1: previous must be the sha256 of the line before",
        "on one rank": "ranks must read the same plan; got ledger False, not True (rank 0, ",
    }.items():
        assert told[0][name][1].startswith(start)
        assert told[0][name] == told[1][name]
    assert told[0]["damaged"][0] == "PlanFileError"


def test_a_state_that_rank_0_saved_alone_counts(told: list[Any]) -> None:
    """Others have written no line there, and go on with what the first rank loads."""
    assert [4, 4] == [each["saved by rank 0"] for each in told]
    expected = (
        "{here}/alone.ledger: 9 steps in 2 segments, 1 plan, 1 return to a checkpoint, 4 void"
    )
    assert [expected, expected] == [each["after"] for each in told]


@pytest.mark.parametrize("given", ["a part of a mesh", "ranks"])
def test_ranks_that_read_the_same_do_not_both_write(given: str, tmp_path: Path) -> None:
    """The first that takes itself for the first rank writes; the next one is refused."""
    told = run_ranks(f"{RUNS}:same_batches", 4, str(tmp_path), given)
    expected = "run.ledger must be written by one rank; got rank 1, and rank 0 writes it; pass the"
    untold = "where rank= and world_size= are those of no process group; got rank 1; pass ledger="
    refused = {1, 3} if given == "a part of a mesh" else {1}
    others = set[int]() if given == "a part of a mesh" else {2, 3}  # which nobody tells the end
    assert refused == {rank for rank, words in enumerate(told) if expected in words}
    assert others == {rank for rank, words in enumerate(told) if untold in words}
    assert {"read"} == {told[rank] for rank in {0, 1, 2, 3} - refused - others}
    account = ip.Ledger(tmp_path / "run.ledger").account()
    assert (103, 0) == (account.num_read, account.num_void)


def test_a_rank_that_nobody_tells_says_so(told: list[Any]) -> None:
    """If the rank that writes never begins, the others end after the group's timeout."""
    expected = (
        "a ledger must be begun by rank 0, which writes it, before other ranks read; got nothing "
        "from it before the timeout of the process group; read the loader on all ranks, or pass "
        "ledger= on one that rank reads"
    )
    assert ["IndexPlanError", expected] == told[1]["nobody writes"]
