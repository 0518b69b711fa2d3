"""What is measured, and how: nothing here knows what a page looks like."""
