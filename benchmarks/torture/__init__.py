"""Random histories of stops and resumes, dealt to every loader: `python -m benchmarks.torture`."""
