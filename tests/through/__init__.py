"""Plans through the frameworks of large runs; .ci/run installs them for these tests alone."""
