"""What the page on coming from MosaicML Streaming says of its downloads and streams."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from streaming.base import MDSWriter, Stream

import indexplan as ip


def check(page: dict[str, Any]) -> None:
    """Hold the page to what it says."""
    downloading_ahead(page)
    sources(page)


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
