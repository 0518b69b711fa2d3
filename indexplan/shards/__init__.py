"""Shards of real datasets: where they are, and how many samples each of them holds."""
