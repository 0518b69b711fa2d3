"""Loaders, trainers and groups that get histories: `python -m tests.histories loaders`."""
