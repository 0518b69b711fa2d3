"""Pages whose libraries are not installed with the others: see .ci/run."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import indexplan as ip
from tests.support.ports import free_port
from tests.trainers.ranks import ROOT

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
EXAMPLE = ROOT / "docs" / "examples" / "jax_digits.py"


def start(folder: Path, *command: Any, devices: int = 1) -> subprocess.Popen[str]:
    """Start Python in a process of its own, with so many devices for JAX."""
    paths = [str(ROOT), str(ROOT / "adapters"), os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(paths),
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}",
    }
    return subprocess.Popen(
        [sys.executable, *map(str, command)],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finish(*processes: subprocess.Popen[str]) -> list[str]:
    """Wait for processes that have to do well; return what each printed."""
    try:
        said = [process.communicate(timeout=300)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    assert [0] * len(processes) == [process.returncode for process in processes], "\n".join(said)
    return said


WIDS_AND_LANCE = """
import glob, sys
import lancedb
import pyarrow as pa
from wids import wids_index

lancedb.connect("lance").create_table("numbers", pa.table({"n": range(1000)}))
tars = sorted(glob.glob("*.tar"))
sys.argv = ["widsindex", "create", *tars, "--output", "shards.json", "--name", "numbers"]
wids_index.main()
"""


def write_for_recipes(folder: Path) -> None:
    """Write what the recipes read: a LanceDB table, and tars with wids' index."""
    for number in range(8):
        with tarfile.open(folder / f"{number}.tar", "w") as tar:
            for each in range(number * 125, number * 125 + 125):
                content = json.dumps(each).encode()
                entry = tarfile.TarInfo(f"{each:04}.json")
                entry.size = len(content)
                tar.addfile(entry, io.BytesIO(content))
    finish(start(folder, "-c", WIDS_AND_LANCE))


@pytest.mark.parametrize("page", PAGES)
def test_page_runs(page: str, tmp_path: Path) -> None:
    """A page's blocks print what it shows, in a process that has imported nothing else.

    What a page says of a plan without showing it is in `shown`, which has the page's names.
    """
    if page == "recipes":
        write_for_recipes(tmp_path)
    code = f"""
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from benchmarks.contenders import name_packages
from tests.test_docs import check_page
name_packages(*{PAGES[page]})
names = check_page("{page}", Path())
spec = find_spec("tests.migrate.shown.{Path(page).name.replace("-", "_")}")
if spec is not None:
    spec.loader.exec_module(shown := module_from_spec(spec))
    shown.check(names)
"""
    finish(start(tmp_path, "-c", code))


ACROSS = """
import sys
from pathlib import Path
import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

jax.config.update("jax_cpu_collectives_implementation", "gloo")
jax.distributed.initialize(sys.argv[1], 2, int(sys.argv[2]))
import indexplan as ip

images = np.random.default_rng(0).random((1797, 64))
plan = ip.Plan(ip.Shuffle(1797), global_batch_size=64, remainder="pad")
exec(sys.argv[3])  # the page's function
across = np.array(jax.devices()).reshape(2, 2).T  # each process has half of each row of devices
assert {0, 1} == {device.process_index for device in across[0]}
sharding = NamedSharding(Mesh(across, ("data", "model")), PartitionSpec("data", "model"))
expected = images[plan.replace(world_size=1).batch(epoch=0, step=3, rank=0)].astype(np.float32)
shards = global_array(sharding, step=3).addressable_shards
assert 2 == len(shards)
for shard in shards:
    assert (expected[shard.index] == shard.data).all() and (32, 32) == shard.data.shape
"""


def test_jax_arrays_whose_model_axis_crosses_processes(tmp_path: Path) -> None:
    """Each device of each process asks for its own rows and columns of the global batch."""
    page = (ROOT / "docs" / "migrate" / "jax.md").read_text()
    (function,) = re.findall(r"^def global_array.*?\n\n", page, re.DOTALL | re.MULTILINE)
    address = f"127.0.0.1:{free_port()}"
    arguments = [("-c", ACROSS, address, rank, function) for rank in range(2)]
    finish(*[start(tmp_path, *each, devices=2) for each in arguments])


def weights(file: Path) -> dict[str, np.ndarray]:
    """Read a checkpoint of the example, which has to stand at the end of the last epoch."""
    with np.load(file) as saved:
        cursor = ip.Cursor.from_json(str(saved["cursor"]))
        assert (3, 0) == (cursor.epoch, cursor.step)
        return {name: saved[name] for name in saved if name != "cursor"}


def test_jax_learns_the_same_on_other_devices_and_processes(tmp_path: Path) -> None:
    """Stopped on 4 devices; gone on with 3, and with 2 processes of 2 devices each."""
    (said,) = finish(start(tmp_path, EXAMPLE, "--checkpoint", "whole.npz", devices=4))
    assert re.search(r"loss 0\.0\d+; 90 of 90 steps read the global batch", said)
    stop = (EXAMPLE, "--checkpoint", "part.npz", "--max-steps", 40)
    finish(start(tmp_path, *stop, devices=4))
    (tmp_path / "shared.npz").write_bytes((tmp_path / "part.npz").read_bytes())
    (said,) = finish(start(tmp_path, EXAMPLE, "--checkpoint", "part.npz", devices=3))
    assert "process 0 of 1, 3 devices, starts at epoch 1, step 10" in said
    shared = (EXAMPLE, "--checkpoint", "shared.npz", "--address", f"127.0.0.1:{free_port()}")
    both = [start(tmp_path, *shared, "--process", rank, devices=2) for rank in range(2)]
    for rank, said in enumerate(outputs := finish(*both)):
        assert f"process {rank} of 2, 4 devices, starts at epoch 1, step 10" in said
    assert "50 of 50 steps read the global batch" in outputs[0]
    expected = weights(tmp_path / "whole.npz")
    for name in ("part.npz", "shared.npz"):
        for key, array in weights(tmp_path / name).items():
            np.testing.assert_allclose(array, expected[key], rtol=0, atol=1e-5)
