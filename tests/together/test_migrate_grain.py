"""What the page on coming from Grain says of Grain; its own blocks run in test_pages.py."""

from __future__ import annotations

import grain
import numpy as np

import indexplan as ip


def test_slices_of_unequal_length() -> None:
    """Ranks of a sliced dataset have other numbers of batches; those of a plan have not."""
    whole = [grain.MapDataset.range(97).shuffle(seed=0)[rank::4].batch(4) for rank in range(4)]
    assert [7, 6, 6, 6] == [len(list(part)) for part in whole]
    spread = ip.Plan(ip.Shuffle(97, seed=0), world_size=4, batch_size=4)
    assert [7, 7, 7, 7] == [len(list(spread.batches(epoch=0, rank=rank))) for rank in range(4)]


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


def test_random_maps_after_slicing() -> None:
    """All ranks draw the same numbers."""
    draws = [
        grain.MapDataset.range(100)[rank::2].random_map(lambda _, rng: rng.random(), seed=0)
        for rank in range(2)
    ]
    assert draws[0][5] == draws[1][5]
