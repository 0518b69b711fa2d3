"""Measure a plan on this machine, for `indexplan bench`."""
