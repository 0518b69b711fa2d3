"""Shards in an object store, kept in a folder of limited size that a node's processes share."""
