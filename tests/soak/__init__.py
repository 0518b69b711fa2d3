"""Random histories of runs, counted sample by sample: `python -m tests.soak SECONDS`."""
