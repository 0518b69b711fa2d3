"""What the pages say of a plan without showing it: `check` takes a page's names.

`tests/migrate/test_library.py` runs them, each in a process of its own, after the page.
"""
