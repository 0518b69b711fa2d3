"""Tests of what measures and of what writes the pages; `pytest benchmarks` times."""
