"""What the page on coming from Grain says of Grain; its own blocks run in test_pages.py."""

from __future__ import annotations

from typing import Any

import grain
import numpy as np
import pytest

import indexplan as ip
from indexplan_jax.grain import PlanIterDataset


def test_slices_of_unequal_length() -> None:
    """Ranks of a sliced dataset have other numbers of batches; those of a plan have not."""
    whole = [grain.MapDataset.range(97).shuffle(seed=0)[rank::4].batch(4) for rank in range(4)]
    assert [7, 6, 6, 6] == [len(list(part)) for part in whole]
    spread = ip.Plan(ip.Shuffle(97, seed=0), world_size=4, batch_size=4)
    assert [7, 7, 7, 7] == [len(list(spread.batches(epoch=0, rank=rank))) for rank in range(4)]
    assert [8, 9, 0, 1] == grain.MapDataset.range(10).repeat(2).batch(4)[2].tolist()


def test_shuffles() -> None:
    """The first of two ranks reads the first half, by any seed; seed 5 in epoch 1 is 6 in epoch 0.

    Of 65,537 samples one is read twice, and one never.
    """
    shard = grain.sharding.ShardOptions(0, 2)
    for seed in (0, 1):
        sampler = grain.samplers.IndexSampler(100, shard, shuffle=True, num_epochs=1, seed=seed)
        assert list(range(50)) == sorted(sampler[i].record_key for i in range(0, 100, 2))
        halves = ip.Plan(ip.Shuffle(100, seed=seed), world_size=2, batch_size=50)
        assert halves.indices(0, rank=0).max() > 90
    five, six = (grain.MapDataset.range(1000).shuffle(seed=seed) for seed in (5, 6))
    assert [five[1000 + i] for i in range(1000)] == [six[i] for i in range(1000)]
    ours = [ip.Shuffle(1000, seed=seed).take(epoch, 0, 1000) for seed, epoch in ((5, 1), (6, 0))]
    assert (ours[0] != ours[1]).any()
    shuffled = grain.MapDataset.range(65_537).shuffle(seed=0)
    assert shuffled[0] == shuffled[65_536]
    assert 65_537 == len(np.unique(ip.Shuffle(65_537, seed=0).take(0, 0, 65_537)))


def batches_of(rank: int, world_size: int) -> Any:
    """The page's pipeline of the Dataset API, over numbers."""
    samples = grain.MapDataset.range(1797).shuffle(seed=0).repeat(2)
    return samples[rank::world_size].batch(16).to_iter_dataset()


def loader_of(rank: int, world_size: int) -> Any:
    """The page's DataLoader, over numbers."""
    shard = grain.sharding.ShardOptions(rank, world_size)
    sampler = grain.samplers.IndexSampler(1797, shard, shuffle=True, num_epochs=2, seed=0)
    return grain.DataLoader(
        data_source=range(1797),
        sampler=sampler,
        operations=[grain.transforms.Batch(16, drop_remainder=True)],
        shard_options=shard,
    )


def test_states_on_other_ranks() -> None:
    """A sliced dataset skips in its new slice; a DataLoader refuses."""
    four, three = iter(batches_of(0, 4)), iter(batches_of(0, 3))
    next(four)
    three.set_state(four.get_state())  # no error
    second = list(batches_of(0, 3))[1]  # its own second batch of 16
    assert second.tolist() == next(three).tolist()
    state = iter(loader_of(0, 4)).get_state()
    with pytest.raises(ValueError, match="does not match"):
        iter(loader_of(0, 3)).set_state(state)


def test_mix_gives_one_rank_the_small_source() -> None:
    """Shares of 7 to 1 on eight ranks."""
    sources = [grain.MapDataset.range(700), grain.MapDataset.range(700, 800)]
    mixed = grain.MapDataset.mix(sources, [7, 1])
    assert [0] * 7 + [100] == [sum(x >= 700 for x in mixed[rank::8]) for rank in range(8)]
    mixture = ip.Mixture({"a": ip.Shuffle(700), "b": ip.Shuffle(100, seed=1)}, {"a": 7, "b": 1})
    shares = ip.Plan(mixture, world_size=8, batch_size=1)
    small = [int((shares.indices(0, rank=rank) >= 700).sum()) for rank in range(8)]
    assert 100 == sum(small)
    assert min(small) > 5


def looks(world_size: int, size: int) -> list[tuple[int, float]]:
    """How each of 100 samples looks in each of two epochs."""
    noisy = grain.MapDataset.range(100).random_map(lambda i, rng: (i, rng.random()), seed=0)
    hundred = ip.Plan(ip.Shuffle(100), batch_size=size)
    shards = [grain.sharding.ShardOptions(rank, world_size) for rank in range(world_size)]
    read = [PlanIterDataset(noisy, hundred, each, num_epochs=2) for each in shards]
    return sorted(
        (int(i), float(look))
        for each in read
        for batch in each
        for i, look in zip(*batch, strict=True)
    )


def test_random_maps() -> None:
    """Samples look the same on any ranks; after slicing, all ranks draw the same numbers."""
    assert looks(world_size=2, size=10) == looks(world_size=5, size=4)
    draws = [
        grain.MapDataset.range(100)[rank::2].random_map(lambda _, rng: rng.random(), seed=0)
        for rank in range(2)
    ]
    assert draws[0][5] == draws[1][5]
