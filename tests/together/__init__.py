"""Many processes at once: builders that are killed or meet, executors, readers, object stores."""
