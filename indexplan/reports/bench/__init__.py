"""Measuring a plan on the machine at hand, for `indexplan bench`."""
