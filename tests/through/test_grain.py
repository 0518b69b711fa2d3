"""Plans in Grain with worker processes, JAX's processes, and Orbax: see .ci/run."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from tests.migrate.test_library import finish, start
from tests.support.ports import free_port

PROGRAM = """
import json, sys
from pathlib import Path
from absl import flags
import grain
import numpy as np
flags.FLAGS.mark_as_parsed()  # as absl.app does; beside JAX, Grain looks them up
import indexplan as ip
from indexplan_jax.grain import PlanIterDataset

order = ip.Shuffle(1000, seed=1)
spread = ip.Plan(order, global_batch_size=24)

def dataset(shard, **options):
    return iter(PlanIterDataset(range(1000), spread, shard, num_epochs=1, **options))
"""

WITH_WORKERS = """
def workers(number):
    return grain.MultiprocessingOptions(num_workers=number)

if __name__ == "__main__":  # Grain starts its workers as new processes
    shard = grain.sharding.ShardOptions(1, 3)
    alone, shared = dataset(shard), dataset(shard, multiprocessing_options=workers(2))
    for _ in range(7):
        assert next(alone).tolist() == next(shared).tolist()
    assert alone.get_state() == shared.get_state()
    other = dataset(shard, multiprocessing_options=workers(1))
    other.set_state(shared.get_state())
    assert [b.tolist() for b in alone] == [b.tolist() for b in other]
    for each in (shared, other):
        getattr(each, "close", lambda: None)()
"""

ONE_OF_JAX = """
import jax
address, rank, count, steps, loaded, saved = sys.argv[1:]
jax.distributed.initialize(address, int(count), int(rank))
handler, shard = grain.checkpoint.CheckpointHandler(), grain.sharding.ShardByJaxProcess()
iterator = dataset(shard)
if loaded:
    iterator.set_state(json.loads(sorted(Path(loaded).iterdir())[-1].read_text()))
read = [batch.tolist() for _, batch in zip(range(int(steps)), iterator)]
if saved:
    Path(saved).mkdir(parents=True, exist_ok=True)
    handler.save(Path(saved), iterator)
print("READ", json.dumps(read))
"""

WITH_ORBAX = """
import orbax.checkpoint as ocp

shard = grain.sharding.NoSharding()
first, second = dataset(shard), dataset(shard)
next(first), next(first)
with ocp.CheckpointManager(Path.cwd() / "saved") as manager:
    args = ocp.args.Composite(data=grain.checkpoint.CheckpointSave(first))
    manager.save(2, args=args)
    manager.wait_until_finished()
    args = ocp.args.Composite(data=grain.checkpoint.CheckpointRestore(second))
    manager.restore(2, args=args)
assert next(first).tolist() == next(second).tolist() == order.take(0, 48, 72).tolist()
"""


def program(folder: Path, code: str) -> Path:
    """Write a program."""
    file = folder / "program.py"
    file.write_text(PROGRAM + code)
    return file


def test_workers_change_nothing(tmp_path: Path) -> None:
    """Neither what a step reads nor what resumes it."""
    finish(start(tmp_path, program(tmp_path, WITH_WORKERS)))


def test_jax_processes_resume_from_the_files_of_others(tmp_path: Path) -> None:
    """4, then 3, then 2 processes, each leg from a file that one process of the last one wrote."""
    file, loaded = program(tmp_path, ONE_OF_JAX), ""
    read: list[int] = []
    for count, steps in ((4, 11), (3, 9), (2, 22)):
        saved = "" if count == 2 else str(tmp_path / f"saved-{count}")
        address = f"127.0.0.1:{free_port()}"
        ranks = [
            start(tmp_path, file, address, rank, count, steps, loaded, saved)
            for rank in range(count)
        ]
        said = [re.findall(r"^READ (.*)", each, re.MULTILINE)[0] for each in finish(*ranks)]
        found: list[Any] = [json.loads(each) for each in said]
        assert {steps} == {len(each) for each in found}
        read += [n for each in found for batch in each for n in batch]
        if saved:
            names = {each.name for each in Path(saved).iterdir()}
            assert {f"process_{rank}-of-{count}.json" for rank in range(count)} == names
        loaded = saved
    assert list(range(1000)) == sorted(read)


def test_orbax_saves_and_restores(tmp_path: Path) -> None:
    """By Grain's arguments for its CheckpointManager."""
    finish(start(tmp_path, program(tmp_path, WITH_ORBAX)))
