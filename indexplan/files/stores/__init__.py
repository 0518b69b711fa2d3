"""Where plan directories live: folders and object stores, and what is safe to do there."""
