"""Tests of the torch adapters in one process."""
