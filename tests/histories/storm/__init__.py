"""ShardedDataset under a store that misbehaves and processes that are killed, counted outside."""
