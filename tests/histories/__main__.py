"""Look for histories in which a run loses a sample, or reads what it should not.

A history is drawn from its number: a run is stopped or killed anywhere, and goes on with other
ranks, batches, workers or data. What was read is counted, or compared with lists and models that
are too simple to be wrong. Exits with 1 if anything is not as it should be.

plans: any order under any partition, computed or from a plan directory; each sample counted.
runs: samples are left out, sources join, checkpoints are loaded, and a ledger is kept.
Megatron: jobs of its loop, on other ranks and with other micro-batches and ramp-ups.
PlanLoader to InStep: what loops and trainers do with a loader, held against a model of a loop; a
history is 100 of Hypothesis's examples, and what fails is made short.
quorums: simulated groups of ranks that fail, join and are split.
groups: real groups of torchft runs that are killed (torchft==0.2.0).
shards, tars: ranks read from an S3 store on loopback that answers short, stale, late or not at all,
and are killed; counted by code that does not import indexplan.
changes: a ledger's bytes are changed, and each change is seen.
kills: processes that keep a ledger are killed at any instant.

loaders: the loaders of others and ours, which get drawn stops and resumes (`--workers 2` others);
what they lose is counted, and only what ours lose is wrong.
trainers: trainers and frameworks, through their own code: 0 is an epoch without a stop, 1 to 4 have
two stops in epoch 0 or 1, where ranks stay or change.
torchft: groups under torchft, by its sampler and by ours; in 1 and 2 one of them dies.
These three run in processes of their own; `--only NAME` chooses some, and `--keep` writes results.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import warnings
from collections.abc import Sequence

from tests.histories import stories

RIVALS = ("loaders", "trainers", "torchft")
KINDS = {
    "plans": "plans:live",
    "runs": "runs:live",
    "Megatron": "megatron:live",
    "PlanLoader": "loops:Histories",
    "DataLoader": "loops:InADataLoader",
    "StatefulDataLoader": "torchdata:TorchdataHistories",
    "Trainer": "trainers:TrainerHistories",
    "InStep": "trainers:InStep",
    "Accelerate": "wrapped:Prepared",
    "Fabric": "wrapped:InFabric",
    "Transformers": "wrapped:InTransformers",
    "quorums": "quorums:live",
    "groups": "groups:live",
    "shards": "storm.driver:live",
    "tars": "storm.driver:live_of_tars",
    "changes": "ledgers:changes",
    "kills": "ledgers:kills",
}


def driver(kind: str) -> stories.Live:
    """Return what goes through histories of a kind; its module is imported only now."""
    module, _, name = KINDS[kind].partition(":")
    found = getattr(importlib.import_module(f"tests.histories.{module}"), name)
    live: stories.Live = getattr(found, "live", found)
    return live


def main(arguments: Sequence[str]) -> int:
    """Run as a script."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.histories",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    kinds = (*KINDS, *RIVALS)
    parser.add_argument("kinds", nargs="+", choices=kinds, metavar="KIND", help=", ".join(kinds))
    parser.add_argument("--histories", type=int, help="at most so many; default: 100, or all")
    parser.add_argument("--seconds", type=float, help="begin none after them")
    parser.add_argument("--first", type=int, help="the number of the first; default: 0")
    parser.add_argument("--steps", type=int, help="of each history, where it has a length")
    parser.add_argument("--workers", type=int, help="of loaders in loops")
    parser.add_argument("--words", action="store_true", help="tell every history in words")
    parser.add_argument("--fault", action="store_true", help="shards: ranks resume a step early")
    parser.add_argument("--only", action="append", help="a rival; may be repeated")
    parser.add_argument("--keep", action="store_true", help="write rivals' results and tables")
    given = parser.parse_args(arguments, namespace=stories.Given())
    warnings.filterwarnings("ignore", "'set_vital' is deprecated")  # torchdata's and Accelerate's
    with given.stack:
        return max([run(kind, given) for kind in given.kinds])


def run(kind: str, given: stories.Given) -> int:
    """Run histories of a kind; 1 if any was wrong."""
    if kind in RIVALS:
        return int(importlib.import_module("tests.runs.rivals").run(kind, given))
    return int(stories.run(kind, driver(kind), given)[0] > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
