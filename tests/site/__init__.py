"""Checks of the documentation site: with the extra docs, `pytest -m site`."""
