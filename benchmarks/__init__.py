"""Benchmarks: `python -m benchmarks.report` runs them all and keeps benchmarks/results."""
