"""Tests of what is kept for several processes."""
