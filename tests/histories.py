"""Look for histories in which a run reads what it should not: as long as you like.

    python -m tests.histories [--examples 2000] [--steps 25] [--workers 2] [kind ...]
    python -m tests.histories LeftOut Megatron [--first 0] [--examples 2000] [--steps 25]

Kinds are those of `KINDS`, which hold each batch of a loop against the model; all of them without
one. They end with the first history that fails, as short as Hypothesis can make it. Workers cost
some ten milliseconds a pass. LeftOut takes data out and in, and is compared with lists of units;
Megatron restarts with other ranks, micro-batches and ramp-ups, and each optimizer step has to read
the next places. These two draw a history from its number, and end with the first that fails.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.support import left_out, megatron_histories
from tests.support.histories import Histories, InADataLoader
from tests.support.torchdata_histories import TorchdataHistories
from tests.support.trainer_histories import InStep, TrainerHistories
from tests.support.wrapped_histories import InFabric, InTransformers, Prepared

KINDS: dict[str, Any] = {
    "PlanLoader": Histories,
    "DataLoader": InADataLoader,
    "StatefulDataLoader": TorchdataHistories,
    "Trainer": TrainerHistories,
    "InStep": InStep,
    "Accelerate": Prepared,
    "Fabric": InFabric,
    "Transformers": InTransformers,
}
NUMBERED: dict[str, Any] = {
    "LeftOut": left_out.live,
    "Megatron": lambda number, _: megatron_histories.run(*megatron_histories.draw(f"0 {number}")),
}


def drawn(kind: str, given: argparse.Namespace) -> None:
    """Draw histories of a loop, each batch of which has to be the model's."""
    run_state_machine_as_test(
        KINDS[kind].with_workers(given.workers),
        settings=settings(
            max_examples=given.examples,
            stateful_step_count=given.steps,
            report_multiple_bugs=False,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


def numbered(kind: str, given: argparse.Namespace) -> None:
    """Run the histories of some numbers."""
    for number in range(given.first, given.first + given.examples):
        try:
            NUMBERED[kind](number, given.steps)
        except BaseException:
            sys.stdout.write(f"{kind}: history {number} of {given.steps} steps:\n")
            raise


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="*", choices=[*KINDS, *NUMBERED, []], default=[])
    parser.add_argument("--examples", type=int, default=2000)
    parser.add_argument("--steps", type=int, default=25)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="the first number, of those that have")
    given = parser.parse_args()
    warnings.filterwarnings("ignore", "'set_vital' is deprecated")
    for kind in given.kinds or KINDS:
        (numbered if kind in NUMBERED else drawn)(kind, given)
        sys.stdout.write(f"{kind}: {given.examples} histories are as they should be\n")


if __name__ == "__main__":
    main()
