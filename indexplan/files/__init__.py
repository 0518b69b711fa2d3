"""Plan directories: their format, how they are built, and how they are read."""
