"""Where plan directories are kept: folders and object stores, and what is safe to do there."""
