"""Random histories of stops and resumes, given to every loader: `python -m tests.runs`."""
