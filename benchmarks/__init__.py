"""Benchmarks: `python -m benchmarks.report` runs them all and writes docs/benchmarks.md."""
