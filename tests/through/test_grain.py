"""Plans in Grain with worker processes, JAX's processes, and Orbax: see .ci/run."""

from __future__ import annotations

import json
import os
from itertools import islice
from pathlib import Path
from typing import Any

os.environ["JAX_PLATFORMS"] = "cpu"  # before JAX is imported, in ranks

import indexplan as ip
from tests.support.ports import free_port
from tests.trainers.ranks import in_forks

IMPORTED_BY_RANKS = ("grain", "jax", "orbax.checkpoint", "indexplan_jax.grain")

ORDER = ip.Shuffle(1000, seed=1)


def iterator_of(shard: Any, **options: Any) -> Any:
    """Return an iterator over a process's part of an epoch."""
    from absl import flags

    from indexplan_jax.grain import PlanIterDataset

    flags.FLAGS.mark_as_parsed()  # as absl.app does; beside JAX, Grain looks them up
    plan = ip.Plan(ORDER, global_batch_size=24)
    return iter(PlanIterDataset(range(1000), plan, shard, num_epochs=1, **options))


def with_workers() -> None:
    """Read with no, one and two workers, which Grain starts as new processes."""
    import grain

    def workers(number: int) -> dict[str, Any]:
        return {"multiprocessing_options": grain.MultiprocessingOptions(num_workers=number)}

    shard = grain.sharding.ShardOptions(1, 3)
    alone, shared = iterator_of(shard), iterator_of(shard, **workers(2))
    for _ in range(7):
        assert next(alone).tolist() == next(shared).tolist()
    assert alone.get_state() == shared.get_state()
    other = iterator_of(shard, **workers(1))
    other.set_state(shared.get_state())
    assert [b.tolist() for b in alone] == [b.tolist() for b in other]
    for each in (shared, other):
        getattr(each, "close", lambda: None)()


def test_workers_change_nothing(tmp_path: Path) -> None:
    """Neither what a step reads nor what resumes it."""
    in_forks(f"{__name__}:with_workers", tmp_path, ())


def read(address: str, count: int, steps: int, loaded: str, saved: str, rank: int) -> Any:
    """Read some steps in one of JAX's processes, from a file of one of the last leg's."""
    import grain
    import jax

    jax.distributed.initialize(address, count, rank)
    iterator = iterator_of(grain.sharding.ShardByJaxProcess())
    if loaded:
        iterator.set_state(json.loads(max(Path(loaded).iterdir()).read_text()))
    batches = [batch.tolist() for batch in islice(iterator, steps)]
    Path(saved).mkdir(parents=True, exist_ok=True)
    grain.checkpoint.CheckpointHandler().save(Path(saved), iterator)
    jax.distributed.shutdown()
    return batches


def test_jax_processes_resume_from_the_files_of_others(tmp_path: Path) -> None:
    """2, then 3, then 1 process, each leg from a file that one process of the last one wrote."""
    samples: list[int] = []
    loaded = ""
    for count, steps in ((2, 11), (3, 9), (1, 22)):
        saved = str(tmp_path / f"saved-{count}")
        given = f"127.0.0.1:{free_port()}", count, steps, loaded, saved
        found = in_forks(f"{__name__}:read", tmp_path, *((*given, rank) for rank in range(count)))
        assert {steps} == {len(each) for each in found}
        samples += [n for each in found for batch in each for n in batch]
        names = {each.name for each in Path(saved).iterdir()}
        assert {f"process_{rank}-of-{count}.json" for rank in range(count)} == names
        loaded = saved
    assert list(range(1000)) == sorted(samples)


def with_orbax() -> None:
    """Save and restore by Grain's arguments for Orbax's CheckpointManager."""
    import grain
    import orbax.checkpoint as ocp

    first, second = (iterator_of(grain.sharding.NoSharding()) for _ in range(2))
    for _ in range(2):
        next(first)
    with ocp.CheckpointManager(Path.cwd() / "saved") as manager:
        manager.save(2, args=ocp.args.Composite(data=grain.checkpoint.CheckpointSave(first)))
        manager.wait_until_finished()
        args = ocp.args.Composite(data=grain.checkpoint.CheckpointRestore(second))
        manager.restore(2, args=args)
    assert next(first).tolist() == next(second).tolist() == ORDER.take(0, 48, 72).tolist()


def test_orbax_saves_and_restores(tmp_path: Path) -> None:
    """A second iterator continues where the first was saved."""
    in_forks(f"{__name__}:with_orbax", tmp_path, ())
