"""Checks of the documentation site: with the extra docs, `pytest tests/site/*_checks.py`."""
