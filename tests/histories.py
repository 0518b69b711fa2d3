"""Look for histories of loops in which a batch is not the model's: as long as you like.

    python -m tests.histories [--examples 2000] [--steps 25] [--workers 2] [kind ...]

Kinds are those of `KINDS`; all of them without one. It ends with the first history that fails, as
short as Hypothesis can make it. Workers cost some ten milliseconds a pass.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

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


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="*", choices=[*KINDS, []], default=[])
    parser.add_argument("--examples", type=int, default=2000)
    parser.add_argument("--steps", type=int, default=25)
    parser.add_argument("--workers", type=int, default=0)
    given = parser.parse_args()
    warnings.filterwarnings("ignore", "'set_vital' is deprecated")
    for kind in given.kinds or KINDS:
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
        sys.stdout.write(f"{kind}: {given.examples} histories are the model's\n")


if __name__ == "__main__":
    main()
