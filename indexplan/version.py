"""The version of this library."""

__version__ = "1.0.0rc2"
