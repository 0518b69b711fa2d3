"""Whoever is measured beside others, ours among them: a folder for each contest."""
