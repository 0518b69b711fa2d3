"""Errors of the command line: the command, and what is there."""

from __future__ import annotations

import numpy as np

import indexplan as ip
from tests.errors.catalogue.made import (
    Command,
    Odd,
    nothing,
    saved,
    written,
)


def twins() -> None:
    """Register two classes of one name."""
    for number in (1, 2):
        name = f"test-twin-v{number}"
        ip.register(type("Twin", (Odd,), {"algorithm": name, "__qualname__": f"twin{number}.Twin"}))


BUILD = "build a.plan --num-samples 9 --batch-size 2"

COMMANDS: list[Command] = [
    # words
    ("--quiet", nothing),
    ("frobnicate", nothing),
    ("show a.plan --colour red", nothing),
    # build
    ("build", nothing),
    ("build a.plan --batch-size 2", nothing),
    (f"{BUILD} --dataset data", lambda: written("data/a.txt")),
    ("build a.plan --batch-size 2 --dataset data --shards data", nothing),
    (
        "build a.plan --batch-size 2 --dataset data --shards sizes.npy",
        lambda: np.save("sizes.npy", [3, 1]),
    ),
    ("show a.plan --shards sizes.npy", lambda: (np.save("sizes.npy", [3, 1]), saved())),
    ("build a.plan", nothing),
    ("build a.plan --num-samples 9 --batch-size 2 --order 'Repeat(Shuffle(), 2)'", saved),
    # orders
    ("orders BlokShuffle", nothing),
    # shards
    ("build a.plan --batch-size 2 --order 'Epochs(3)'", nothing),
    ("build a.plan --batch-size 2 --order 'Epochs(Shuffle(3), 0)'", nothing),
    ("build a.plan --batch-size 2 --order 'Subset(Shuffle(3), Shuffle(3).fill, 3)'", nothing),
    ("build a.plan --batch-size 2 --order 'Shuffle(3) + 1'", nothing),
    ("build a.plan --batch-size 2 --order 'Shuffle(3'", nothing),
    ("build a.plan --batch-size 2 --order 'Shuffle(*[3])'", nothing),
    ("build a.plan --batch-size 2 --order 'Mixture({[1]: Shuffle(3)}, [1])'", nothing),
    (
        "build a.plan --batch-size 2 --order \"Mixture({'a': Shuffle(3), 'a': Shuffle(4)}, [1])\"",
        nothing,
    ),
    ("build a.plan --batch-size 2 --order 'Shuffle(3, 4, 5)'", nothing),
    ("build a.plan --batch-size 2 --order 'Shuffle(9, num_samples=9)'", nothing),
    ("build a.plan --batch-size 2 --order 'Shuffle(3, seed=10**1000)'", nothing),
    ("build a.plan --batch-size 2 --order 'Shuffle(seed=1)'", nothing),
    ("build a.plan --batch-size 2 --order Shuffle", nothing),
    ("build a.plan --batch-size 2 --order shuffle", nothing),
    ("build a.plan --batch-size 2 --order 'Twin(3)'", twins),
    ("build a.plan --batch-size 2 --order 'Shuffle(9, seed=1, seed=2)'", nothing),
    ("build a.plan --batch-size 2 --order 'Shuffle(Shuffle)'", nothing),
    ("build a.plan --batch-size 2 --order 'Shufle(3)'", nothing),
    ("build a.plan --batch-size 2 --order 'Shuffle(3, sed=1)'", nothing),
    ("build a.plan --batch-size 2 --order 'range(3)'", nothing),
    ("build a.plan --batch-size 2 --order 'Shuffle(10)' --num-samples 9", nothing),
    ("build a.plan --num-samples 9", nothing),
    ("build a.plan --num-samples many --batch-size 2", nothing),
    ("build a.plan --num-samples 0 --batch-size 2", nothing),
    ("build a.plan --num-samples 9 --batch-size x", nothing),
    ("build a.plan --dataset data --batch-size 2", nothing),
    ("build a.plan --dataset data --pattern *.jpg --batch-size 2", lambda: written("data/a.txt")),
    (f"{BUILD} --pattern *.jpg", nothing),
    (f"{BUILD} --global-batch-size 2", nothing),
    (f"{BUILD} --order ''", nothing),
    (f"{BUILD} --order block-shuffle", nothing),
    (f"{BUILD} --order 'BlockShuffle()'", nothing),
    (f"{BUILD} --order 'Shuffle(seed=-1)'", nothing),
    (f"{BUILD} --order 'Odd()'", nothing),
    (f"{BUILD} --order \"Listed('rows.npy')\"", nothing),
    (f"{BUILD} --import not_there", nothing),
    (f"{BUILD} --world-size 1.5", nothing),
    (f"{BUILD} --world-size 0", nothing),
    (f"{BUILD} --sub-epochs 0", nothing),
    (f"{BUILD} --remainder wrap", nothing),
    ("build a.plan --num-samples 1e12 --batch-size 2", nothing),
    (f"{BUILD} --epochs 0", nothing),
    (f"{BUILD} --epochs", nothing),
    (f"{BUILD} --part 2", nothing),
    (f"{BUILD} --part 5/4", nothing),
    ("build no/a.plan --num-samples 9 --batch-size 2", nothing),
    ("build zz://a.plan --num-samples 9 --batch-size 2", nothing),
    (BUILD, saved),
]
