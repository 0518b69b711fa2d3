"""Groups of torchft runs that come and go: `python -m tests.runs --live`."""
