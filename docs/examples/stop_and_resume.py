"""Two ranks read half an epoch of the files of a folder; the job stops; three ranks read the rest.

    indexplan build stdlib.plan --dataset FOLDER --pattern "*.py" --world-size 2 --batch-size 4
    python docs/examples/stop_and_resume.py stdlib.plan FOLDER

It prints the steps around the stop, and counts how often each file was read. One loop stands for
all ranks here; in training, each rank's PlanLoader reads its own batches.
"""

import sys

import numpy as np

import indexplan as ip

EPOCH = 0


def main(path: str, folder: str) -> None:
    """Read one epoch, with a stop in the middle of it."""
    dataset = ip.Dataset.scan(folder, "*.py")
    plan = ip.load(path, dataset=dataset)
    stop = plan.steps(EPOCH).stop // 2
    checkpoint = plan.cursor(EPOCH, step=stop).to_json()
    rest = plan.replace(world_size=3).resume(ip.Cursor.from_json(checkpoint))

    times = np.zeros(len(dataset.names), int)
    for part, first, last in ((plan, 0, stop), (rest, stop, rest.steps(EPOCH).stop)):
        for step in range(first, last):
            for rank in range(part.world_size):
                batch = part.batch(EPOCH, step=step, rank=rank)
                times[batch] += 1
                if abs(step - stop + 0.5) < 2:
                    names = "  ".join(dataset.names[index] for index in batch)
                    print(f"step {step:3}  rank {rank}  {names}")
        if part is plan:
            ranks = f"{plan.world_size} ranks stop here; {rest.world_size} ranks resume"
            print(f"    -- {ranks} from a checkpoint of {len(checkpoint)} bytes --")
            before = times.sum()
    if not np.array_equal(times, np.ones_like(times)):
        raise SystemExit(f"files were read {times.min()} to {times.max()} times")
    print(
        f"Each of the {len(times)} files was read exactly once: {before} by {plan.world_size} "
        f"ranks, then {times.sum() - before} by {rest.world_size}."
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
