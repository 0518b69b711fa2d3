"""Shards of an object store, kept in a bounded folder that the processes of a node share."""
