"""Random histories of stops and resumes, each named by its number: `python -m tests.histories`."""
