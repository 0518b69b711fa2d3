"""What the ranks of the tests of ShardedDataset need, imported and compiled before they fork."""

import s3fs  # noqa: F401

import indexplan as ip
from tests.together import sharded_runs  # noqa: F401

ip.Plan(ip.ShardShuffle([100] * 8, lanes=4, stripe=64), batch_size=8, world_size=2).batch(
    0, step=0, rank=0
)
