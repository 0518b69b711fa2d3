"""Pages whose libraries are not installed with the others: see .ci/run."""

from __future__ import annotations

import importlib
import io
import json
import os
import re
import runpy
import sys
import tarfile
from contextlib import redirect_stdout
from importlib.util import find_spec
from pathlib import Path
from typing import Any

os.environ.update(HF_HUB_OFFLINE="1", JAX_PLATFORMS="cpu")  # before what reads it is imported

import numpy as np
import pytest

import indexplan as ip
from benchmarks.contenders import name_packages
from tests.support.ports import free_port
from tests.test_docs import check_page
from tests.trainers.ranks import ROOT, in_forks

IMPORTED_BY_RANKS = (
    "jax",
    "lightning.pytorch",
    "sklearn.datasets",
    "transformers.trainer",
    "trl.trainer.grpo_trainer",
    "trl.trainer.sft_trainer",
)

PAGES: dict[str, tuple[str, ...]] = {
    "migrate/hugging-face": (),
    "migrate/jax": (),
    # with packages whose `__init__.py` imports more than these pages use: torchvision, AutoBridge,
    # what trains
    "migrate/megatron": ("megatron", "megatron.bridge", "megatron.bridge.data"),
    "migrate/large-runs": (),
    "migrate/streaming": ("streaming",),
    "reinforcement-learning": (),
    "recipes": ("axolotl", "axolotl.utils"),
}


def write_for_recipes() -> None:
    """Write what the recipes read: a LanceDB table, and tars with wids' index."""
    import lancedb
    import pyarrow as pa
    from wids import wids_index

    for number in range(8):
        with tarfile.open(f"{number}.tar", "w") as tar:
            for each in range(number * 125, number * 125 + 125):
                content = json.dumps(each).encode()
                entry = tarfile.TarInfo(f"{each:04}.json")
                entry.size = len(content)
                tar.addfile(entry, io.BytesIO(content))
    lancedb.connect("lance").create_table("numbers", pa.table({"n": range(1000)}))
    tars = [f"{number}.tar" for number in range(8)]
    sys.argv = ["widsindex", "create", *tars, "--output", "shards.json", "--name", "numbers"]
    wids_index.main()


def run_page(page: str) -> None:
    """Run a page's blocks, and hold it to what it says of a plan without showing it.

    That is in `shown`, which has the page's names.
    """
    sys.path.insert(0, "")  # for the files that it shows
    name_packages(*PAGES[page])
    names = check_page(page, Path())
    shown = f"tests.migrate.shown.{Path(page).name.replace('-', '_')}"
    if find_spec(shown):
        importlib.import_module(shown).check(names)


@pytest.mark.parametrize("page", PAGES)
def test_page_runs(page: str, tmp_path: Path) -> None:
    """A page's blocks print what it shows, in a process that has imported little else."""
    if page == "recipes":
        in_forks(f"{__name__}:write_for_recipes", tmp_path, ())
    in_forks(f"{__name__}:run_page", tmp_path, (page,))


# --- JAX


def devices(num: int) -> str:
    """Return the flags by which JAX has so many devices."""
    return f"--xla_force_host_platform_device_count={num}"


def across(address: str, rank: int, function: str) -> None:
    """Make a global array, whose model axis crosses two processes, by the page's function."""
    import jax
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(address, 2, rank)
    images = np.random.default_rng(0).random((1797, 64))
    plan = ip.Plan(ip.Shuffle(1797), global_batch_size=64, remainder="pad")
    names = {"jax": jax, "np": np, "images": images, "plan": plan}
    exec(function, names)  # noqa: S102 (our own page)
    rows = np.array(jax.devices()).reshape(2, 2).T  # each process has half of each row of devices
    assert {0, 1} == {device.process_index for device in rows[0]}
    sharding = NamedSharding(Mesh(rows, ("data", "model")), PartitionSpec("data", "model"))
    read = plan.replace(world_size=1).batch(epoch=0, step=3, rank=0)
    expected = images[read].astype(np.float32)
    shards = names["global_array"](sharding, step=3).addressable_shards
    assert 2 == len(shards)
    for shard in shards:
        assert (32, 32) == shard.data.shape
        assert (expected[shard.index] == shard.data).all()
    jax.distributed.shutdown()


def test_jax_arrays_whose_model_axis_crosses_processes(tmp_path: Path) -> None:
    """Each device of each process asks for its own rows and columns of the global batch."""
    page = (ROOT / "docs" / "migrate" / "jax.md").read_text()
    (function,) = re.findall(r"^def global_array.*?\n\n", page, re.DOTALL | re.MULTILINE)
    address = f"127.0.0.1:{free_port()}"
    both = [(address, rank, function) for rank in range(2)]
    in_forks(f"{__name__}:across", tmp_path, *both, XLA_FLAGS=devices(2))


def example(*options: Any) -> str:
    """Run the example; return what it printed."""
    import jax

    sys.argv = ["jax_digits.py", *map(str, options)]
    with redirect_stdout(io.StringIO()) as said:
        runpy.run_path(str(ROOT / "docs" / "examples" / "jax_digits.py"), run_name="__main__")
    if jax.distributed.is_initialized():
        jax.distributed.shutdown()
    return said.getvalue()


def weights(file: Path) -> dict[str, np.ndarray]:
    """Read a checkpoint of the example, which has to stand at the end of the last epoch."""
    with np.load(file) as saved:
        cursor = ip.Cursor.from_json(str(saved["cursor"]))
        assert (3, 0) == (cursor.epoch, cursor.step)
        return {name: saved[name] for name in saved if name != "cursor"}


def test_jax_learns_the_same_on_other_devices_and_processes(tmp_path: Path) -> None:
    """Stopped on 4 devices; gone on with 3, and with 2 processes of 2 devices each."""

    def run(num_devices: int, *each: tuple[Any, ...]) -> list[Any]:
        return in_forks(f"{__name__}:example", tmp_path, *each, XLA_FLAGS=devices(num_devices))

    (said,) = run(4, ("--checkpoint", "whole.npz"))
    assert re.search(r"loss 0\.0\d+; 90 of 90 steps read the global batch", said)
    run(4, ("--checkpoint", "part.npz", "--max-steps", 40))
    (tmp_path / "shared.npz").write_bytes((tmp_path / "part.npz").read_bytes())
    (said,) = run(3, ("--checkpoint", "part.npz"))
    assert "process 0 of 1, 3 devices, starts at epoch 1, step 10" in said
    shared = ("--checkpoint", "shared.npz", "--address", f"127.0.0.1:{free_port()}", "--process")
    outputs = run(2, (*shared, 0), (*shared, 1))
    for rank, said in enumerate(outputs):
        assert f"process {rank} of 2, 4 devices, starts at epoch 1, step 10" in said
    assert "50 of 50 steps read the global batch" in outputs[0]
    expected = weights(tmp_path / "whole.npz")
    for name in ("part.npz", "shared.npz"):
        for key, array in weights(tmp_path / name).items():
            np.testing.assert_allclose(array, expected[key], rtol=0, atol=1e-5)
