"""Shards of real datasets: where they lie, and how many samples each of them holds."""
