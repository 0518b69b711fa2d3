"""Draw histories of Megatron's runs: does every optimizer step read exactly the next places?

    python -m tests.megatron_histories [--histories 10000] [--seed 0]

Each draws an order and some jobs in a row, of other data-parallel sizes, micro-batches and
ramp-ups, that hand on nothing but how many samples are consumed. 10,000 take some ten minutes.
"""

from __future__ import annotations

import argparse
import sys

from tests.support.megatron_histories import draw, run


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--histories", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    legs = steps = consumed = 0
    for number in range(given.histories):
        order, jobs = draw(f"{given.seed} {number}")
        consumed += run(order, jobs)
        legs += len(jobs)
        steps += sum(len(job.per_step) for job in jobs)
    sys.stdout.write(
        f"{given.histories} histories of {legs} jobs: each of {steps} optimizer steps read the "
        f"next places, {consumed} samples in all\n"
    )


if __name__ == "__main__":
    main()
