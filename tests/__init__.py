"""The specification of indexplan, as tests."""
