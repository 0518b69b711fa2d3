"""Pages and pictures of what was measured: every number in them comes from the measurements."""
