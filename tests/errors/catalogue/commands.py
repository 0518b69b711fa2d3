"""Errors of the command line: the command, and what is there."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import indexplan as ip
from tests.errors.catalogue.made import (
    AS_WRITTEN,
    BUILD,
    ORDER,
    Command,
    Odd,
    array,
    nothing,
    saved,
    written,
)


def twins() -> None:
    """Register two classes of one name."""
    for number in (1, 2):
        name = f"test-twin-v{number}"
        ip.register(type("Twin", (Odd,), {"algorithm": name, "__qualname__": f"twin{number}.Twin"}))


COMMANDS: list[Command] = [
    # words
    ("--quiet", nothing, "--help"),
    ("frobnicate", nothing, "--help"),
    ("show a.plan --colour red", nothing, "--help", "show --help"),
    # build
    ("build", nothing, "build run.plan --num-samples 1e6 --world-size 8 --batch-size 32"),
    (
        "build a.plan --batch-size 2",
        nothing,
        lambda: array("data.npy", [1, 2, 3]),
        "build a.plan --batch-size 2 --dataset data.npy",
        "build b.plan --batch-size 2 --shards data.npy",
        "build c.plan --batch-size 2 --num-samples 3",
    ),
    (
        f"{BUILD} --dataset data",
        lambda: written("data/a.txt"),
        "build b.plan --batch-size 2 --dataset data",
        BUILD,
    ),
    (
        "build a.plan --batch-size 2 --dataset data --shards data",
        nothing,
        lambda: array("a.npy", [1, 2]),
        "build a.plan --batch-size 2 --shards a.npy",
    ),
    (
        "show a.plan --shards sizes.npy",
        lambda: (np.save("sizes.npy", [3, 1]), saved()),
        lambda: (written("data/a.npy"), array("data/a.npy", [1, 2, 3])),
        "shards data --json",
        lambda: Path("shards.json").write_text(ip.shard_sizes("data").to_json()),
        "build b.plan --shards shards.json --batch-size 2",
        "show b.plan --shards data",
        "show b.plan --shards shards.json",
    ),
    # orders
    ("orders BlokShuffle", nothing, "orders BlockShuffle", "orders"),
    # shards
    (f"{ORDER} 'Epochs(3)'", nothing, f"{ORDER} 'Epochs(Shuffle(3), epoch_size=2)'"),
    (f"{ORDER} 'Epochs(Shuffle(3), 0)'", nothing, f"{ORDER} 'Epochs(Shuffle(3), 2)'"),
    (f"{ORDER} 'Subset(Shuffle(3), Shuffle(3).fill, 3)'", nothing, AS_WRITTEN),
    (f"{ORDER} 'Shuffle(3'", nothing, AS_WRITTEN),
    (f"{ORDER} 'Shuffle(*[3])'", nothing, f"{ORDER} 'Shuffle(3)'"),
    (f"{ORDER} 'Mixture({{[1]: Shuffle(3)}}, [1])'", nothing, AS_WRITTEN),
    (
        f"{ORDER} \"Mixture({{'a': Shuffle(3), 'a': Shuffle(4)}}, [1])\"",
        nothing,
        f"{ORDER} \"Mixture({{'a': Shuffle(3)}}, {{'a': 1}})\"",
    ),
    (f"{ORDER} 'Shuffle(3, 4, 5)'", nothing, f"{ORDER} 'Shuffle(3, 4)'"),
    (f"{ORDER} 'Shuffle(9, num_samples=9)'", nothing, f"{ORDER} 'Shuffle(9)'"),
    (f"{ORDER} 'Shuffle(3, seed=10**1000)'", nothing, f"{ORDER} 'Shuffle(3, seed=10)'"),
    (f"{ORDER} 'Shuffle(seed=1)'", nothing, f"{ORDER} 'Shuffle(num_samples=9, seed=1)'"),
    (f"{ORDER} Shuffle", nothing, f"{ORDER} 'Shuffle(9)'"),
    (f"{ORDER} shuffle", nothing, f"{ORDER} 'Shuffle(9)'"),
    (f"{ORDER} 'Twin(3)'", twins),
    (f"{ORDER} 'Shuffle(9, seed=1, seed=2)'", nothing, f"{ORDER} 'Shuffle(9, seed=1)'"),
    (f"{ORDER} 'Shufle(3)'", nothing, f"{ORDER} 'Shuffle(3)'"),
    (f"{ORDER} 'Shuffle(3, sed=1)'", nothing, f"{ORDER} 'Shuffle(3, seed=1)'"),
    (f"{ORDER} 'range(3)'", nothing, "orders", f"{ORDER} 'Sequential(3)'"),
    (f"{ORDER} 'Shuffle(10)' --num-samples 9", nothing, f"{ORDER} 'Shuffle(10)' --num-samples 10"),
    (
        "build a.plan --num-samples 9",
        nothing,
        BUILD,
        "build b.plan --num-samples 9 --global-batch-size 2",
    ),
    ("build a.plan --num-samples many --batch-size 2", nothing, "build --help"),
    ("build a.plan --num-samples 0 --batch-size 2", nothing, BUILD),
    ("build a.plan --num-samples 9 --batch-size x", nothing, BUILD),
    (
        "build a.plan --dataset data --batch-size 2",
        nothing,
        lambda: written("data/a.txt"),
        "build a.plan --dataset data --batch-size 2",
    ),
    (
        "build a.plan --dataset data --pattern *.jpg --batch-size 2",
        lambda: written("data/a.txt"),
        "build a.plan --dataset data --pattern *.txt --batch-size 2",
        "build b.plan --dataset data --batch-size 2",
    ),
    (
        f"{BUILD} --pattern *.jpg",
        nothing,
        lambda: written("data/a.jpg"),
        "build a.plan --batch-size 2 --dataset data --pattern *.jpg",
    ),
    (f"{BUILD} --global-batch-size 2", nothing, BUILD),
    (f"{BUILD} --order ''", nothing, AS_WRITTEN),
    (f"{BUILD} --order block-shuffle", nothing, f"{BUILD} --order 'BlockShuffle(block_size=2)'"),
    (f"{BUILD} --order 'BlockShuffle()'", nothing, f"{BUILD} --order 'BlockShuffle(block_size=2)'"),
    (f"{BUILD} --order 'Shuffle(seed=-1)'", nothing, f"{BUILD} --order 'Shuffle(seed=1)'"),
    (f"{BUILD} --order 'Odd()'", nothing, f"{BUILD} --order 'Shuffle(9)'"),
    (f"{BUILD} --order \"Listed('rows.npy')\"", nothing),
    (f"{BUILD} --import not_there", nothing, f"{BUILD} --import json"),
    (f"{BUILD} --world-size 0", nothing, BUILD),
    (f"{BUILD} --sub-epochs 0", nothing, BUILD),
    (f"{BUILD} --epochs 0", nothing, BUILD),
    (f"{BUILD} --epochs", nothing, "build --help", f"{BUILD} --epochs 2"),
    (f"{BUILD} --part 2", nothing, f"{BUILD} --part 1/4", BUILD),
    (f"{BUILD} --part 5/4", nothing, f"{BUILD} --part 4/4"),
    ("build no/a.plan --num-samples 9 --batch-size 2", nothing, BUILD),
    (
        "build zz://a.plan --num-samples 9 --batch-size 2",
        nothing,
        "build memory://a --num-samples 9 --batch-size 2",
    ),
    (BUILD, saved, "build b.plan --num-samples 9 --batch-size 2"),
]
