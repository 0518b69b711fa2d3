"""What is measured, and how; pages are written elsewhere."""
