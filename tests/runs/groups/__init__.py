"""Groups of torchft runs that come and go: `python -m tests.histories torchft`."""
