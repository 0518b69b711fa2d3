"""Plans through trainers and frameworks of large runs; .ci/run installs what these tests need."""
