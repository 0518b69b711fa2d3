"""Pages whose libraries are not installed with the others: see .ci/run."""

from __future__ import annotations

import io
import json
import os
import re
import runpy
import sys
import tarfile
from contextlib import redirect_stdout
from dataclasses import replace
from itertools import pairwise
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
    # with packages whose `__init__.py` imports more than these pages use: torchvision, what trains
    "migrate/megatron": (),
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

    `SHOWN` holds it to that, by the page's names.
    """
    sys.path.insert(0, "")  # for the files that it shows
    name_packages(*PAGES[page])
    names = check_page(page, Path())
    assert SHOWN.keys() <= PAGES.keys()  # also where a page is renamed
    for hold in SHOWN.get(page, ()):
        hold(names)


@pytest.mark.parametrize("page", PAGES)
def test_page_runs(page: str, tmp_path: Path) -> None:
    """A page's blocks print what it shows, in a process that has imported little else."""
    if page == "recipes":
        in_forks(f"{__name__}:write_for_recipes", tmp_path, ())
    in_forks(f"{__name__}:run_page", tmp_path, (page,))


# --- what pages say of a plan without showing it


def packed_rows_have_the_loss_of_their_chats(page: dict[str, Any]) -> None:
    """A packed row's loss is that of its chats one by one."""
    import torch

    row, model = page["row"], page["model"].eval()
    ends = row["cu_seq_lens_q"].tolist()

    def alone(start: int, stop: int) -> tuple[Any, Any]:
        tokens, labels = (row[name][:, start:stop] for name in ("input_ids", "labels"))
        return model(input_ids=tokens, labels=labels).loss, (labels[:, 1:] != -100).sum()

    with torch.no_grad():
        packed = model(**row).loss
        parts = [alone(start, stop) for start, stop in pairwise(ends)]
    apart = sum(loss * count for loss, count in parts) / sum(count for _, count in parts)
    assert torch.isclose(packed, apart, rtol=1e-5)


def one_shape(page: dict[str, Any]) -> None:
    """It is compiled once, and the losses are those of the images alone."""
    plan, order, mean_loss, weights = (page[x] for x in ("plan", "order", "mean_loss", "weights"))
    images, labels, losses = page["images"], page["labels"], page["losses"]
    assert 1 == mean_loss._cache_size()
    assert 5 == plan.step_size(epoch=0, step=28)
    rows = order.take(0, 28 * 64, 1797)  # the last five images alone
    alone = mean_loss(weights, images[rows], labels[rows], np.ones(5), np.float32(5))
    assert abs(losses[28] - float(alone)) < 1e-5
    sizes = [plan.step_size(epoch=0, step=step) for step in range(29)]
    everything = mean_loss(weights, images, labels, np.ones(1797), np.float32(1797))
    assert abs(np.dot(losses, sizes) / 1797 - float(everything)) < 1e-5
    nested = ip.Plan(order, world_size=4, batch_size=(5, 3), remainder="pad")
    micro_batches = nested.units(epoch=0, step=29, rank=2).micro_batches
    assert [3] * 5 == [len(part) for part in micro_batches]


def on_the_device(page: dict[str, Any]) -> None:
    """Each device's rows are those of its rank."""
    full = page["full"]
    expected = [full.batch(epoch=3, step=17, rank=rank) for rank in range(4)]
    assert np.concatenate(expected).tolist() == page["rows_of_devices"](17).tolist()


def splits(page: dict[str, Any]) -> None:
    """A subset of the documents has the windows of `--split`."""
    from megatron.core.datasets.blended_megatron_dataset_builder import (
        BlendedMegatronDatasetBuilder,
    )

    config = replace(page["config"], split="99,1,0")
    sizes = (None, None, None)  # of train, valid and test
    build = BlendedMegatronDatasetBuilder(page["GPTDataset"], sizes, lambda: True, config).build
    kept = np.arange(594)  # of 600 documents
    lengths = page["documents"].sequence_lengths
    train = ip.Subset(ip.DocumentWindows(lengths[kept], length=64, seed=1), kept, len(lengths))
    assert train.num_units(epoch=0) == len(build()[0])


def downloading_ahead(page: dict[str, Any]) -> None:
    """What was prepared serves a node's steps, and is less than half of the shards."""
    node = page["Samples"](remote="web", local="ahead")
    four_nodes = page["plan"].replace(world_size=8)
    stop = page["download_ahead"](node, four_nodes, epoch=0, step=0, ranks=range(2, 4))
    fetched = set(os.listdir("ahead"))  # noqa: PTH208 (names)
    for step in range(stop):
        for rank in (2, 3):
            indices = four_nodes.batch(epoch=0, step=step, rank=rank).tolist()
            assert indices == [node[index]["id"] for index in indices]
    assert set(os.listdir("ahead")) == fetched  # noqa: PTH208
    assert len(fetched) < len(page["sizes"]) / 2


def sources(page: dict[str, Any]) -> None:
    """All of 300 books are read in three epochs, 100 at a time, of streams one after another."""
    from streaming.base import MDSWriter, Stream

    with MDSWriter(out="books", columns={"id": "int"}, size_limit=256) as writer:
        for number in range(300):
            writer.write({"id": number})
    both = page["Samples"](streams=[Stream(local="web"), Stream(local="books")])
    assert 2300 == len(both)  # one after another
    assert (1999, 0) == (both[1999]["id"], both[2000]["id"])
    orders = {"web": ip.Shuffle(2000), "books": ip.Shuffle(300, seed=1)}
    mixture = ip.Mixture(orders, {"web": 0.9, "books": 0.1}, epoch_size=1000)
    parts = [mixture.split(mixture.take(epoch, 0, 1000)) for epoch in range(3)]
    books = [samples[source == 1] for source, samples in parts]
    assert [100, 100, 100] == [len(part) for part in books]
    assert 300 == len(set(np.concatenate(books)))


SHOWN: dict[str, tuple[Any, ...]] = {
    "migrate/hugging-face": (packed_rows_have_the_loss_of_their_chats,),
    "migrate/jax": (one_shape, on_the_device),
    "migrate/megatron": (splits,),
    "migrate/streaming": (downloading_ahead, sources),
}


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
