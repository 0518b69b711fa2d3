"""The pages on coming from other libraries, with those libraries."""
